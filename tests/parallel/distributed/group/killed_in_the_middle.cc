#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <utility>

#include "autograd/ops.h"
#include "tests/fuzz.h"
#include "tests/parallel/distributed/groups.h"
#include "tests/parallel/distributed/processes.h"
#include "tests/share.h"

namespace ramet::distributed {
namespace {

constexpr int kRanks = 3, kVictim = 1;
constexpr int64_t k8MiB = 2 << 20, k4MiB = 1 << 20;  // floats; 4 MiB: of lists of three

// Tensors by number, with different values in every place, and sums of them, which are exact.
Tensor sum_of(const std::vector<int>& numbers, int64_t n) {
  int64_t first = 0;
  for (const int i : numbers) first += i + 1;
  const auto step = static_cast<int64_t>(numbers.size());
  return arange(first, first + step * n, step, TensorOptions(kFloat));
}
Tensor values(int number, int64_t n) { return sum_of({number}, n); }
// What results replace.
Tensor before(int64_t n) { return full({n}, -1.0); }

// One call of an operation. Undefined results: what that tensor was before.
struct Call {
  Call(std::vector<Tensor> all, std::vector<Tensor> results,
       std::function<Work(const std::vector<Tensor>&)> run)
      : tensors(std::move(all)), right(std::move(results)), start(std::move(run)) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      untouched.push_back(tensors[i].clone());
      writes = writes || right[i].defined();
      if (!right[i].defined()) right[i] = untouched[i];
    }
  }
  std::vector<Tensor> tensors, right, untouched;
  std::function<Work(const std::vector<Tensor>&)> start;
  Work work;
  bool writes = false, lost = false, names_victim = true;

  void attempt(const std::function<void()>& step) {
    if (lost) return;
    try {
      step();
    } catch (const CommLost& e) {
      lost = true;
      names_victim = e.ranks() == std::vector<int>{kVictim};
    }
  }
  bool tensors_are(const std::vector<Tensor>& these) const {
    for (size_t i = 0; i < tensors.size(); ++i)
      if (std::memcmp(tensors[i].data_ptr(), these[i].data_ptr(), these[i].nbytes()) != 0)
        return false;
    return true;
  }
};
using Calls = std::vector<Call>;

// Some of a call's tensors.
std::vector<Tensor> part(const std::vector<Tensor>& t, int first, int last) {
  return {t.begin() + first, t.begin() + last};
}

Calls all_reduce(const Group& g) {
  return {{{values(g->rank(), k8MiB)}, {sum_of({0, 1, 2}, k8MiB)}, [g](const auto& t) {
             return g->all_reduce(t[0]);
           }}};
}

// Neighbours in memory, which are summed in place; one that no rank has, and one that rank 2 has
// not.
Calls all_reduce_members(const Group& g) {
  const auto members = [](const Tensor& t) {
    constexpr int64_t from = 1 << 18, to = 3 << 18;
    return std::vector<Tensor>{t.slice(0, 0, from), t.slice(0, from, to), t.slice(0, to, k8MiB)};
  };
  const Tensor mine = values(g->rank(), k8MiB), right = sum_of({0, 1, 2}, k8MiB);
  members(right)[1].copy_(members(mine)[1]);
  members(right)[2].copy_(members(sum_of({0, 1}, k8MiB))[2]);
  return {{{mine}, {right}, [g, members](const auto& t) {
             return g->all_reduce_members(members(t[0]), {}, {true, false, g->rank() != 2});
           }}};
}

Calls reduce(const Group& g) {
  return {{{values(g->rank(), k8MiB)},
           {g->rank() == 0 ? sum_of({0, 1, 2}, k8MiB) : Tensor()},
           [g](const auto& t) { return g->reduce(t[0], 0); }}};
}

// Of the victim: both survivors have parts of it when it dies.
Calls broadcast(const Group& g) {
  return {{{values(g->rank(), k8MiB)},
           {g->rank() == kVictim ? Tensor() : values(kVictim, k8MiB)},
           [g](const auto& t) { return g->broadcast(t[0], kVictim); }}};
}

Calls all_gather(const Group& g) {
  const auto of = [](int i) { return values(i, k4MiB); };
  return {{{before(k4MiB), before(k4MiB), before(k4MiB), of(g->rank())},
           {of(0), of(1), of(2), {}},
           [g](const auto& t) { return g->all_gather(part(t, 0, 3), t[3]); }}};
}

Calls reduce_scatter(const Group& g) {
  const int me = g->rank();
  const auto in = [&](int i) { return values(3 * me + i, k4MiB); };
  return {{{before(k4MiB), in(0), in(1), in(2)},
           {sum_of({me, 3 + me, 6 + me}, k4MiB), {}, {}, {}},
           [g](const auto& t) { return g->reduce_scatter(t[0], part(t, 1, 4)); }}};
}

Calls all_to_all(const Group& g) {
  const int me = g->rank();
  const auto from_to = [](int from, int to) { return values(3 * from + to, k4MiB); };
  return {{{before(k4MiB), before(k4MiB), before(k4MiB), from_to(me, 0), from_to(me, 1),
            from_to(me, 2)},
           {from_to(0, me), from_to(1, me), from_to(2, me), {}, {}, {}},
           [g](const auto& t) { return g->all_to_all(part(t, 0, 3), part(t, 3, 6)); }}};
}

Calls scatter(const Group& g) {
  const auto of = [](int i) { return values(i, k4MiB); };
  const Tensor mine = of(g->rank());
  if (g->rank() != kVictim)
    return {
        {{before(k4MiB)}, {mine}, [g](const auto& t) { return g->scatter(t[0], {}, kVictim); }}};
  return {{{before(k4MiB), of(0), of(1), of(2)}, {mine, {}, {}, {}}, [g](const auto& t) {
             return g->scatter(t[0], part(t, 1, 4), kVictim);
           }}};
}

Calls gather(const Group& g) {
  const auto of = [](int i) { return values(i, k4MiB); };
  const Tensor mine = of(g->rank());
  if (g->rank() != 0)
    return {{{mine}, {{}}, [g](const auto& t) { return g->gather({}, t[0], 0); }}};
  return {{{before(k4MiB), before(k4MiB), before(k4MiB), mine},
           {of(0), of(1), of(2), {}},
           [g](const auto& t) { return g->gather(part(t, 0, 3), t[3], 0); }}};
}

// The victim's to both others at once.
Calls send_and_recv(const Group& g) {
  const Tensor sent = values(kVictim, k8MiB);
  if (g->rank() != kVictim)
    return {{{before(k8MiB)}, {sent}, [g](const auto& t) { return g->recv(t[0], kVictim); }}};
  return {{{sent}, {{}}, [g](const auto& t) { return g->send(t[0], 0); }},
          {{sent.clone()}, {{}}, [g](const auto& t) { return g->send(t[0], 2); }}};
}

struct Collective {
  const char* name;
  Calls (*calls)(const Group& group);
};
constexpr Collective kCollectives[] = {
    {"all_reduce", all_reduce}, {"all_reduce_members", all_reduce_members},
    {"reduce", reduce},         {"broadcast", broadcast},
    {"all_gather", all_gather}, {"reduce_scatter", reduce_scatter},
    {"all_to_all", all_to_all}, {"scatter", scatter},
    {"gather", gather},         {"send_and_recv", send_and_recv},
};

// The first thing that was wrong, as an exit code.
struct Verdict {
  int code = 0;
  void expect(bool right, int otherwise) {
    if (!right && !code) code = otherwise;
  }
};

// Calls again and again until one is lost.
void call_until_lost(Calls& calls, Progress& mine, const std::function<bool()>& right_way,
                     Verdict& verdict) {
  mine.writes = std::ranges::any_of(calls, &Call::writes);
  bool lost = false;
  for (int number = 1; !lost; ++number) {
    for (Call& c : calls)
      for (size_t i = 0; i < c.tensors.size(); ++i) c.tensors[i].copy_(c.untouched[i]);
    mine.enter(number);
    for (Call& c : calls) c.attempt([&c] { c.work = c.start(c.tensors); });
    for (Call& c : calls) c.attempt([&c] { c.work.wait(); });
    mine.leave();
    for (const Call& c : calls) {
      lost = lost || c.lost;
      if (c.lost && c.writes) mine.failed = number;
      verdict.expect(c.names_victim, 1);
      if (c.lost) verdict.expect(c.tensors_are(c.untouched), 2);
      else verdict.expect(c.tensors_are(c.right), 3);
    }
    verdict.expect(lost || right_way(), 4);
  }
}

}  // namespace

std::vector<std::string> other_collectives() {
  std::vector<std::string> names;
  for (const Collective& c : kCollectives)
    if (std::string(c.name) != "all_reduce") names.emplace_back(c.name);
  return names;
}

void kill_in_the_middle(const std::string& collective, int rounds, bool share) {
  const auto* found = std::ranges::find(kCollectives, collective, &Collective::name);
  ASSERT_NE(found, std::end(kCollectives)) << collective;
  const bool shares = share && collective.starts_with("all_reduce");
  rounds = std::max(1, rounds / testing::one_repeat_in());
  fuzz::announce(rounds);
  std::mt19937_64 random(fuzz::seed() + 19);
  until_hit(rounds, [&] {
    Ranks ranks;
    ranks.start(kRanks, [&](int rank, const std::string& url, Shared& shared) {
      setenv("RAMET_SHARED_MEMORY", share ? "1" : "0", 1);
      const auto group = init_process_group(url, within(seconds(60)));
      Calls calls = found->calls(group);
      group->barrier().wait();
      Verdict verdict;
      const auto right_way = [&] { return (group->shared_bytes() != 0) == shares; };
      call_until_lost(calls, shared.of(rank), right_way, verdict);
      const auto rest = group->regroup({0, 2}, within(seconds(60)));
      Tensor t = values(rank, k8MiB);
      rest->all_reduce(t).wait();
      verdict.expect(t.equal(sum_of({0, 2}, k8MiB)), 5);
      verdict.expect((rest->shared_bytes() != 0) == share, 6);
      for (const Call& c : calls)  // nothing has come since
        verdict.expect(c.tensors_are(c.lost ? c.untouched : c.right), 7);
      rest->barrier().wait();
      return verdict.code;
    });
    const int call = ranks.stop_inside(kVictim, random);
    ranks.signal(kVictim, SIGKILL);
    EXPECT_NE(call, 0);
    EXPECT_EQ(ranks.finish(0), 0);
    EXPECT_EQ(ranks.finish(2), 0);
    EXPECT_EQ(ranks.finish(kVictim), 128 + SIGKILL);
    return ranks.hit(call, kVictim);
  });
}

}  // namespace ramet::distributed
