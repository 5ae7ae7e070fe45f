// A process a rank, over Gloo. The test's own process starts no thread, so that its children may.
#pragma once
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <vector>

#include "parallel/distributed/process_group.h"
#include "tests/parallel/distributed/support.h"

namespace ramet::distributed {

/// What children and parent see alike.
struct Shared {
  std::atomic<int> step{0}, done{0}, wrong{0};
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
        _exit(code);
      }
      children_.push_back(child);
    }
  }
  void signal(int rank, int number) { kill(children_[static_cast<size_t>(rank)], number); }
  /// The exit code, or 128 + a signal's number.
  int finish(int rank) {
    pid_t& child = children_[static_cast<size_t>(rank)];
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {}
    child = 0;
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
  TempFolder folder_;
  Shared* shared_;
  std::vector<pid_t> children_;
};

inline GroupOptions within(Milliseconds timeout) {
  GroupOptions o;
  o.timeout = timeout;
  return o;
}

/// Rank 1 of 3 is killed at a random moment of all-reduces of 8 MiB, `rounds` times, which go by
/// shared memory or by messages; RAMET_SEED draws other moments. What fails leaves its tensor as it
/// was, and the survivors go on without the dead one.
void kill_in_the_middle(int rounds, bool share);

}  // namespace ramet::distributed
