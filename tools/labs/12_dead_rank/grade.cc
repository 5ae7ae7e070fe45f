// Ranks as threads with a clock that goes on only while all wait: nothing depends on the machine.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tools/labs/12_dead_rank/lab.h"

namespace ramet::labs {

/// Thrown into answers that would wait for ever. It is no std::exception, so that an answer does
/// not catch it as one.
struct WaitsForEver {};

class Ranks {
 public:
  explicit Ranks(int count) : states_(static_cast<size_t>(count)) {}
  int count() const { return static_cast<int>(states_.size()); }

  double now() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return now_;
  }
  void send(int from, int to, const Message& m) {
    const std::lock_guard<std::mutex> lock(mutex_);
    expect(to >= 0 && to < count(), "rank ", from, " sends to rank ", to, ", which there is not");
    queues_[{from, to}].push_back(m);
    changed_.notify_all();
  }
  Message receive(int rank, int from, double until) {
    std::unique_lock<std::mutex> lock(mutex_);
    expect(from >= 0 && from < count(), "rank ", rank, " receives from rank ", from,
           ", which there is not");
    State& me = state(rank);
    me = {true, from, until};
    clock_goes_on();
    changed_.wait(lock, [&] { return can_go_on(rank) || stuck_; });
    auto& queue = queues_[{from, rank}];
    const bool for_ever = stuck_ && !can_go_on(rank);
    me.waits = false;
    if (for_ever) throw WaitsForEver();
    if (!me.late && !queue.empty()) {
      const Message m = queue.front();
      queue.pop_front();
      return m;
    }
    if (!me.late && state(from).gone)
      throw Gone(words("the connection to rank ", from, " is closed"));
    throw TimedOut(words("nothing came from rank ", from, " until second ", until));
  }
  /// Until that second, as a rank that computes does.
  void sleep(int rank, double until) {
    std::unique_lock<std::mutex> lock(mutex_);
    state(rank) = {true, -1, until};
    clock_goes_on();
    changed_.wait(lock, [&] { return now_ >= until; });
    state(rank).waits = false;
  }
  /// `gone`: and its connections are closed.
  void end(int rank, bool gone) {
    const std::lock_guard<std::mutex> lock(mutex_);
    state(rank).ended = true;
    state(rank).gone = gone;
    clock_goes_on();
    changed_.notify_all();
  }

 private:
  struct State {
    bool waits = false;
    int from = -1;
    double until = 0;
    bool late = false;  // the clock has reached `until`, whatever comes after that
    bool ended = false, gone = false;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> states_;
  std::map<std::pair<int, int>, std::deque<Message>> queues_;
  double now_ = 0;
  bool stuck_ = false;

  State& state(int rank) { return states_[static_cast<size_t>(rank)]; }
  bool can_go_on(int rank) {
    const State& s = state(rank);
    return (s.from >= 0 && (!queues_[{s.from, rank}].empty() || state(s.from).gone)) ||
           now_ >= s.until;
  }
  void clock_goes_on() {
    double next = Mail::kForever;
    bool somebody = false;
    for (int r = 0; r < count(); ++r) {
      const State& s = state(r);
      if (s.ended) continue;
      if (!s.waits || can_go_on(r)) return;
      somebody = true;
      next = std::min(next, s.until);
    }
    if (!somebody) return;
    if (next >= Mail::kForever) {
      stuck_ = true;
    } else {
      now_ = next;
      // All of them at once: which one's thread wakes up first decides nothing.
      for (State& s : states_) s.late = s.waits && s.until <= now_;
    }
    changed_.notify_all();
  }
};

int Mail::ranks() const { return all_.count(); }
double Mail::now() const { return all_.now(); }
void Mail::send(int to, const Message& message) { all_.send(rank_, to, message); }
Message Mail::receive(int from, double until) { return all_.receive(rank_, from, until); }

namespace {

constexpr double kTimeout = 60;

struct Fate {
  enum Kind { Lives, Dies, Silent, Slow } kind = Lives;
};

struct Outcome {
  enum Kind { None, Sums, Dead, Forever, Other } kind = None;
  std::vector<double> sums;
  int dead = -1;
  std::string text;
  double at = 0;  // seconds
};

std::vector<double> numbers_of(int rank) { return {1.0 / (rank + 3), double(rank), -0.1 * rank}; }

std::vector<Outcome> run(const DeadRankLab& answer, const std::vector<Fate>& fates) {
  const int count = static_cast<int>(fates.size());
  Ranks ranks(count);
  std::vector<Outcome> outcomes(fates.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < count; ++r)
    threads.emplace_back([&, r] {
      const Fate::Kind fate = fates[static_cast<size_t>(r)].kind;
      Outcome& o = outcomes[static_cast<size_t>(r)];
      if (fate == Fate::Dies || fate == Fate::Silent) return ranks.end(r, fate == Fate::Dies);
      if (fate == Fate::Slow) ranks.sleep(r, 0.9 * kTimeout);
      Mail mail(ranks, r);
      try {
        o.sums = answer.all_reduce(mail, numbers_of(r), kTimeout);
        o.kind = Outcome::Sums;
      } catch (const DeadRank& d) {
        o.kind = Outcome::Dead;
        o.dead = d.rank;
      } catch (const WaitsForEver&) { o.kind = Outcome::Forever; } catch (const Wrong& w) {
        o.kind = Outcome::Other;
        o.text = w.text;
      } catch (const std::exception& e) {
        o.kind = Outcome::Other;
        o.text = words("threw another exception: ", e.what());
      }
      o.at = ranks.now();
      ranks.end(r, false);
    });
  for (std::thread& t : threads) t.join();
  for (size_t r = 0; r < outcomes.size(); ++r) {
    expect(outcomes[r].kind != Outcome::Other, "rank ", r, ": ", outcomes[r].text);
    expect(outcomes[r].kind != Outcome::Forever, "rank ", r,
           " waits for ever: all ranks that are left wait, and none has a deadline");
  }
  return outcomes;
}

std::string check_sums(const DeadRankLab& answer, const std::vector<Fate>& fates) {
  const int count = static_cast<int>(fates.size());
  std::vector<double> want = numbers_of(0);
  for (int r = 1; r < count; ++r)
    for (size_t i = 0; i < want.size(); ++i) want[i] += numbers_of(r)[i];
  const std::vector<Outcome> outcomes = run(answer, fates);
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const Outcome& o = outcomes[r];
    expect(o.kind == Outcome::Sums, "rank ", r, " says that rank ", o.dead,
           " is dead, and all are alive");
    expect(o.sums.size() == want.size(), "rank ", r, " has ", o.sums.size(), " sums, expected ",
           want.size());
    for (size_t i = 0; i < want.size(); ++i)
      expect(o.sums[i] == want[i], "sum ", i, " of rank ", r, " is ", o.sums[i], ", expected ",
             want[i], ", added in the order of ranks");
  }
  return words("the same bits on ", count, " ranks");
}

/// Every rank that lives names one of those that do not, in time.
std::string check_dead(const DeadRankLab& answer, const std::vector<Fate>& fates) {
  std::set<int> dead;
  std::string list;
  for (size_t r = 0; r < fates.size(); ++r)
    if (fates[r].kind != Fate::Lives) {
      dead.insert(static_cast<int>(r));
      list += words(list.empty() ? "" : " and ", r);
    }
  const std::vector<Outcome> outcomes = run(answer, fates);
  double last = 0;
  for (size_t r = 0; r < outcomes.size(); ++r) {
    const Outcome& o = outcomes[r];
    if (o.kind == Outcome::None) continue;
    expect(o.kind != Outcome::Sums, "rank ", r, " returned sums, the second of them ",
           o.sums.size() > 1 ? o.sums[1] : 0.0, ", and rank ", list,
           " never gave its numbers: a step with them would be a wrong step");
    expect(dead.count(o.dead) != 0, "rank ", r, " says that rank ", o.dead, " is dead, after ",
           o.at, " seconds, and it is rank ", list,
           " that is: whoever looks for the cause looks in the "
           "wrong place");
    expect(o.at <= 2 * kTimeout, "rank ", r, " knew it after ", o.at,
           " seconds, with a timeout of ", kTimeout);
    last = std::max(last, o.at);
  }
  return words("all others name it, the last after ", last, " seconds");
}

constexpr Fate kLives{Fate::Lives}, kDies{Fate::Dies}, kSilent{Fate::Silent}, kSlow{Fate::Slow};

}  // namespace

void grade(const DeadRankLab& answer, Report& report) {
  report.step("four ranks, all alive", "chapter 10, and the small example in task.md", [&] {
    return check_sums(answer, {kLives, kLives, kLives, kLives});
  });
  report.step("rank 2 of 4 is dead",
              "who knows it first, and how do the others hear of it? chapter 10", [&] {
                return check_dead(answer, {kLives, kLives, kDies, kLives});
              });
  report.step("rank 0 is dead", "what does receive() throw where the other end is gone? lab.h",
              [&] {
                return check_dead(answer, {kDies, kLives, kLives, kLives});
              });
  report.step("rank 3 of 4 says nothing", "a process that hangs closes no connection: chapter 10",
              [&] {
                return check_dead(answer, {kLives, kLives, kLives, kSilent});
              });
  report.step("three ranks of 5 say nothing",
              "one deadline for all that rank 0 waits for, or one for each? task.md", [&] {
                return check_dead(answer, {kLives, kLives, kSilent, kSilent, kSilent});
              });
  report.step("rank 0 says nothing", "how long do the others wait for rank 0? task.md", [&] {
    return check_dead(answer, {kSilent, kLives, kLives});
  });
  report.step("two ranks of 4 come late, but in time", "what is slow is not dead: task.md", [&] {
    return check_sums(answer, {kLives, kSlow, kLives, kSlow});
  });
}

}  // namespace ramet::labs
