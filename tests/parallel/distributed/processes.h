// A process a rank, over Gloo. The test's own process starts no thread, so that its children may.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/group/process_group.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {

/// Where a rank is, so that its parent can stop it inside a call. Calls are numbered from 1.
class Progress {
 public:
  std::atomic<int> inside{0};      // this call; 0: between two. Of a dead rank: where it died
  std::atomic<bool> writes{true};  // do calls change what this rank has?
  std::atomic<int> failed{0};      // a call that threw although it would have written
  std::atomic<int> took{0};        // microseconds, of the last call
  void enter(int call) {
    begun_ = std::chrono::steady_clock::now();
    inside = call;
  }
  void leave() {
    inside = 0;
    took = static_cast<int>(std::chrono::duration_cast<std::chrono::microseconds>(
                                std::chrono::steady_clock::now() - begun_)
                                .count());
  }

 private:
  std::chrono::steady_clock::time_point begun_;  // the rank's own
};

/// Memory that children and parent share.
struct Shared {
  std::atomic<int> step{0}, done{0}, wrong{0};  // wrong: ranks with an exit code
  std::array<Progress, 4> ranks;
  Progress& of(int rank) { return ranks.at(static_cast<size_t>(rank)); }
};

/// A group of ranks that are child processes and find each other by a file.
class Ranks {
 public:
  Ranks()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  ~Ranks() {
    for (const pid_t child : children_)
      if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    munmap(shared_, sizeof(Shared));
  }
  Shared& shared() { return *shared_; }

  /// body(rank, url, shared) returns an exit code; 90: an exception, which is printed.
  template <class Body> void start(int n, const Body& body) {
    const std::string url =
        "file://" + folder_.path("store") + "?world_size=" + std::to_string(n) + "&rank=";
    for (int rank = 0; rank < n; ++rank) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        int code = 90;
        try {
          code = body(rank, url + std::to_string(rank), *shared_);
        } catch (const std::exception& e) {
          dprintf(STDERR_FILENO, "rank %d: %s\n", rank, e.what());
        }
        if (code) ++shared_->wrong;
        _exit(code);
      }
      children_.push_back(child);
    }
  }
  /// Stops `rank` at a random moment inside a call, not before call `first`. As far as is known
  /// then, another rank is in that call too and cannot end without `rank`. Returns the call's
  /// number; 0: there was none, or a rank went wrong.
  int stop_inside(int rank, std::mt19937_64& random, int first = 3) {
    // Every other time the others then go on as far as they can without it. They have read what it
    // sent, and those that need no more have ended.
    const bool settled = random() % 2 != 0;
    for (int tries = 0; tries < 200; ++tries) {
      const auto [call, took] = common_call(first);
      if (!call) return 0;
      usleep(static_cast<useconds_t>(random() % static_cast<unsigned>(took + 1)));
      signal(rank, SIGSTOP);
      siginfo_t info;  // left for finish()
      while (waitid(P_PID, static_cast<id_t>(child(rank)), &info, WSTOPPED | WEXITED | WNOWAIT)) {}
      if (info.si_code != CLD_STOPPED) return 0;
      if (settled) usleep(static_cast<useconds_t>(std::min(2 * took, 500000)));
      // A busy machine may have stopped it in a later one.
      const int its = shared_->of(rank).inside;
      const auto waits = [&](int other) {
        const Progress& p = shared_->of(other);
        return other != rank && p.writes && p.inside == its;
      };
      // Or always too late: then the others come to the call that it has stopped in.
      const int patience = its && tries >= 50 ? 100 : 0;
      for (int i = 0; i < patience && !any_rank(waits); ++i) usleep(5000);
      if (its >= first && any_rank(waits)) return its;
      signal(rank, SIGCONT);
    }
    return 0;
  }
  /// After the end of all: did `rank` end inside this call, and did it fail for another one?
  bool hit(int call, int rank) const {
    const auto failed = [&](int other) {
      return other != rank && shared_->of(other).failed == call;
    };
    return shared_->of(rank).inside == call && any_rank(failed);
  }
  void signal(int rank, int number) { kill(child(rank), number); }
  /// The exit code, or 128 + a signal's number.
  int finish(int rank) {
    int status = 0;
    while (waitpid(child(rank), &status, 0) < 0) {}
    child(rank) = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// False: a minute was not enough.
  template <class F> static bool wait_until(const F& f) {
    for (int i = 0; i < 6000; ++i) {
      if (f()) return true;
      usleep(10000);
    }
    return false;
  }

 private:
  pid_t& child(int rank) { return children_.at(static_cast<size_t>(rank)); }
  template <class F> bool any_rank(const F& f) const {
    for (int i = 0; i < static_cast<int>(children_.size()); ++i)
      if (f(i)) return true;
    return false;
  }
  // The call that all ranks are in, and the shortest time that the last one took, in microseconds.
  // The call is 0 if a minute was not enough, or if a rank went wrong.
  std::pair<int, int> common_call(int first) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!shared_->wrong && std::chrono::steady_clock::now() < end) {
      const int call = shared_->of(0).inside;
      int took = shared_->of(0).took;
      const auto elsewhere = [&](int rank) {
        took = std::min<int>(took, shared_->of(rank).took);
        return shared_->of(rank).inside != call;
      };
      if (call >= first && !any_rank(elsewhere)) return {call, took};
      usleep(50);
    }
    return {0, 0};
  }

  TempFolder folder_;
  Shared* shared_;
  std::vector<pid_t> children_;
};

inline GroupOptions within(Milliseconds timeout) {
  GroupOptions o;
  o.timeout = timeout;
  return o;
}

/// Repeats round() until `rounds` of them report that they hit their aim; the others do not count.
/// It is a failure if most miss.
template <class Round> void until_hit(int rounds, const Round& round) {
  const int most = 3 * rounds + 20;
  int hits = 0, tries = 0;
  for (; hits < rounds && !testing::Test::HasFailure(); ++tries) {
    ASSERT_LT(tries, most) << "only " << hits << " fell inside";
    SCOPED_TRACE("try " + std::to_string(tries));
    hits += round();
  }
  std::printf("%d of %d fell inside\n", hits, tries);
  std::fflush(stdout);
}

/// Kills rank 1 of 3 at a random moment inside an operation on tensors of several MiB, until
/// `rounds` such operations have failed. RAMET_SEED draws other moments. If an operation failed on
/// a survivor, its tensors are bit for bit as before, else they have the result. The survivors go
/// on without the dead rank. share: with memory that processes share.
void kill_in_the_middle(const std::string& collective, int rounds, bool share);

/// What that accepts in addition to "all_reduce": all operations that write tensors.
std::vector<std::string> other_collectives();

}  // namespace ramet::distributed
