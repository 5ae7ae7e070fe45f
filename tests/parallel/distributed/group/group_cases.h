// What process groups do over every transport: the same cases for threads and for Gloo.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "parallel/distributed/group/process_group.h"
#include "tests/error_text.h"
#include "tests/parallel/distributed/group/caps_cases.h"
#include "tests/parallel/distributed/groups.h"

namespace ramet::distributed {

// [n] numbers of a rank that differ in magnitude, so that the order of a sum shows.
inline Tensor numbers_of(int rank, int64_t n, ScalarType dtype = kFloat) {
  Tensor t = empty({n}, TensorOptions(kDouble));
  double* p = t.data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    p[i] = std::sin(0.37 * static_cast<double>(i + 1) * (rank + 1)) *
           std::pow(10.0, (i * 7 + rank * 3) % 9 - 4);
  return t.to(dtype);
}

TEST(ProcessGroup, BroadcastAndGatherAndTheirLike) {
  for (int n : {1, 2, 3, 4})
    with_groups(n, seconds(60), [n](const Group& g) {
      const int me = g->rank();
      EXPECT_EQ(g->size(), n);
      for (int64_t length : {int64_t{0}, int64_t{1}, int64_t{5}, int64_t{20011}}) {
        const int root = n - 1;
        for (bool undefined : {false, true}) {
          CollectiveOptions o;
          o.undefined_on_failure = undefined;
          Tensor t = numbers_of(me, length);
          g->broadcast(t, root, o).wait();
          EXPECT_TRUE(same_bits(t, numbers_of(root, length)));

          // One output is not contiguous, one holds the input.
          std::vector<Tensor> all;
          for (int i = 0; i < n; ++i)
            all.push_back(i == root ? zeros({length, 2}).slice(1, 0, 1).squeeze(1)
                                    : zeros({length}));
          const Tensor& mine = all[static_cast<size_t>(me)];
          mine.copy_(numbers_of(me, length));
          const uint32_t version = mine.version();
          g->all_gather(all, mine, o).wait();
          EXPECT_GT(mine.version(), version);
          for (int i = 0; i < n; ++i)
            EXPECT_TRUE(same_bits(all[static_cast<size_t>(i)].contiguous(), numbers_of(i, length)));
        }

        std::vector<Tensor> at_root;
        for (int i = 0; me == root && i < n; ++i) at_root.push_back(zeros({length}));
        g->gather(at_root, numbers_of(me, length), root).wait();
        for (size_t i = 0; i < at_root.size(); ++i)
          EXPECT_TRUE(same_bits(at_root[i], numbers_of(static_cast<int>(i), length)));
        Tensor part = zeros({length});
        g->scatter(part, at_root, root).wait();
        EXPECT_TRUE(same_bits(part, numbers_of(me, length)));
      }
    });
}

TEST(ProcessGroup, AllToAllOfUnequalPieces) {
  with_groups(3, seconds(60), [](const Group& g) {
    const int me = g->rank();
    // Rank i gives rank j i + 2 j numbers, some of them none.
    std::vector<Tensor> in, out;
    for (int j = 0; j < 3; ++j) {
      in.push_back(full({me + 2 * j}, 10.0 * me + j));
      out.push_back(zeros({j + 2 * me}));
    }
    g->all_to_all(out, in).wait();
    for (int j = 0; j < 3; ++j)
      EXPECT_TRUE(same_bits(out[static_cast<size_t>(j)], full({j + 2 * me}, 10.0 * j + me)));
  });
}

TEST(ProcessGroup, SumsHaveTheirOrder) {
  for (int n : {1, 2, 3, 4, 5})
    with_groups(n, seconds(60), [n](const Group& g) {
      for (int64_t length : {int64_t{1}, int64_t{7}, int64_t{1000}, int64_t{40013}})
        for (bool tree : {false, true}) {
          CollectiveOptions o;
          o.order = tree ? ReduceOrder::tree(8) : ReduceOrder::fixed();
          std::vector<Tensor> parts;
          for (int i = 0; i < n; ++i) parts.push_back(numbers_of(i, length));
          const Tensor expected = summed(parts, tree);
          Tensor t = numbers_of(g->rank(), length);
          g->all_reduce(t, o).wait();
          EXPECT_TRUE(same_bits(t, expected)) << n << " ranks, " << length;
          Tensor at_root = numbers_of(g->rank(), length);
          g->reduce(at_root, n / 2, o).wait();
          EXPECT_TRUE(
              same_bits(at_root, g->rank() == n / 2 ? expected : numbers_of(g->rank(), length)));
          // Piece j of rank i is row j of what has i + j as its rank.
          std::vector<Tensor> in, column;
          for (int j = 0; j < n; ++j) {
            in.push_back(numbers_of(g->rank() + j, length));
            column.push_back(numbers_of(j + g->rank(), length));
          }
          Tensor mine = zeros({length});
          g->reduce_scatter(mine, in, o).wait();
          EXPECT_TRUE(same_bits(mine, summed(column, tree)));
        }
    });
}

TEST(ProcessGroup, KnownSums) {
  with_groups(4, seconds(60), [](const Group& g) {
    const double values[] = {1e8, 1, -1e8, 1};
    for (const auto& [order, expected] :
         {std::pair(ReduceOrder::fixed(), 1.0), std::pair(ReduceOrder::tree(4), 0.0)}) {
      CollectiveOptions o;
      o.order = order;
      Tensor t = full({3}, values[g->rank()]);
      g->all_reduce(t, o).wait();
      EXPECT_EQ(t[1].item<double>(), expected);
    }
    Tensor half = full({1}, g->rank() == 0 ? 2048.0 : g->rank() == 3 ? 0.0 : 1.0, kHalf);
    g->all_reduce(half).wait();
    EXPECT_EQ(half.item<double>(), 2050.0);
    Tensor flag = full({2}, g->rank() == 2 ? 1 : 0, kBool), count = full({2}, 3, kLong);
    g->all_reduce(flag).wait();
    g->all_reduce(count).wait();
    EXPECT_TRUE(flag.all().item<bool>());
    EXPECT_EQ(count[0].item<int64_t>(), 12);
    Tensor mean = full({2}, static_cast<double>(g->rank()), kDouble), low = mean.clone(),
           high = mean.clone(), product = mean + 1;
    g->all_reduce(mean, ReduceOp::average).wait();
    g->all_reduce(low, ReduceOp::min).wait();
    g->all_reduce(high, ReduceOp::max).wait();
    g->all_reduce(product, ReduceOp::product).wait();
    EXPECT_EQ(mean[0].item<double>(), 1.5);
    EXPECT_EQ(low[0].item<double>(), 0);
    EXPECT_EQ(high[0].item<double>(), 3);
    EXPECT_EQ(product[0].item<double>(), 24);
  });
}

TEST(ProcessGroup, TensorsOfAnyStrides) {
  with_groups(2, seconds(60), [](const Group& g) {
    Tensor whole = zeros({4, 6});
    Tensor part = whole.slice(1, 1, 4).t();  // [3, 4], not contiguous
    part.fill_(g->rank() + 1.0);
    const auto version = whole.version();
    g->all_reduce(part).wait();
    EXPECT_GT(whole.version(), version);
    EXPECT_EQ(whole.sum().item<double>(), 12 * 3.0);
    EXPECT_EQ(whole[0][0].item<double>(), 0);
    Tensor scalar = full({}, 2.0);
    g->all_reduce(scalar).wait();
    EXPECT_EQ(scalar.item<double>(), 4);
  });
}

TEST(ProcessGroup, MembersThatSomeRanksDoNotHave) {
  for (bool adjacent : {false, true})
    for (int64_t scale : {1, 5000})
      with_groups(3, seconds(60), [=](const Group& g) {
        const int me = g->rank();
        const std::vector<int64_t> lengths = {3 * scale, 16 * scale, 1, 40 * scale};
        Tensor flat = full({100000 + 64 * scale}, me + 1.0);
        std::vector<Tensor> members;
        int64_t at = 0;
        for (int64_t length : lengths) {
          members.push_back(adjacent ? flat.slice(0, at, at + length) : empty({length}));
          at += (length + 15) / 16 * 16;
          members.back().copy_(numbers_of(me, length));
        }
        // Member 0: all; 1: ranks 0 and 2; 2: no rank; 3: rank 1.
        const std::vector<bool> mine = {true, me != 1, false, me == 1};
        const auto report = std::make_shared<MemberReport>();
        g->all_reduce_members(members, "members", mine, 0.5 * me, report).wait();
        EXPECT_EQ(report->present, (std::vector<bool>{true, true, false, true}));
        EXPECT_EQ(report->notes, (std::vector<double>{0, 0.5, 1}));
        const auto n = [&](int rank, size_t member) { return numbers_of(rank, lengths[member]); };
        EXPECT_TRUE(same_bits(members[0], summed({n(0, 0), n(1, 0), n(2, 0)}, false)));
        EXPECT_TRUE(same_bits(members[1], n(0, 1) + n(2, 1)));
        EXPECT_TRUE(same_bits(members[2], n(me, 2)));
        EXPECT_TRUE(same_bits(members[3], n(1, 3)));
        // The gap between them does not belong to any member.
        const Tensor gap = flat.slice(0, 3 * scale, (3 * scale + 15) / 16 * 16);
        EXPECT_TRUE(same_bits(gap, full_like(gap, me + 1.0)));
      });
}

TEST(ProcessGroup, NotInACapturedStep) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Tensor t = full({3}, g->rank() + 1.0);
    Captured sum([&] { g->all_reduce(t.slice(0, 0, 3, 2)).wait(); });
    EXPECT_ERROR_TEXT(sum(), "[all_reduce] not capturable");
    Captured meeting([&] { g->barrier().wait(); });
    EXPECT_ERROR_TEXT(meeting(), "[barrier] not capturable");
    g->all_reduce(t).wait();
    EXPECT_EQ(t.sum().item<double>(), 9);
  });
}

// More than goes in one piece, between two ranks and more; members that no rank has stay.
TEST(ProcessGroup, LargeSums) {
  constexpr int64_t part = 750000, length = 3 * part + 7;
  std::vector<Tensor> numbers;
  for (int i = 0; i < 3; ++i) numbers.push_back(rand({length}).mul_(std::pow(10.0, i)));
  const Tensor two = numbers[0] + numbers[1];
  with_groups(2, seconds(60), [&](const Group& g) {
    Tensor t = numbers[static_cast<size_t>(g->rank())].clone();
    g->all_reduce(t).wait();
    EXPECT_TRUE(same_bits(t, two));
  });
  const auto members_of = [&](const Tensor& flat) {
    return std::vector<Tensor>{flat.slice(0, 0, part), flat.slice(0, part, 2 * part),
                               flat.slice(0, 2 * part, length)};
  };
  const Tensor first = members_of(two)[0] + members_of(numbers[2])[0];
  with_groups(3, seconds(60), [&](const Group& g) {
    const Tensor& mine = numbers[static_cast<size_t>(g->rank())];
    CollectiveOptions options("members");
    for (bool undefined : {false, true}) {
      options.undefined_on_failure = undefined;
      const Tensor t = mine.clone();
      // Member 0: all; 1: no rank; 2: rank 1.
      g->all_reduce_members(members_of(t), options, {true, false, g->rank() == 1}).wait();
      EXPECT_TRUE(same_bits(members_of(t)[0], first));
      EXPECT_TRUE(same_bits(members_of(t)[1], members_of(mine)[1]));
      EXPECT_TRUE(same_bits(members_of(t)[2], members_of(numbers[1])[2]));
    }
  });
}

TEST(ProcessGroup, ManyAtATime) {
  with_groups(3, seconds(60), [](const Group& g) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 40; ++i) {
      tensors.push_back(full({i * 100 + 1}, g->rank() + i * 1.0));
      works.push_back(g->all_reduce(tensors.back()));
    }
    for (Work& w : works) w.wait();
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(tensors[static_cast<size_t>(i)][0].item<double>(), 3 + 3.0 * i);
      EXPECT_TRUE(works[static_cast<size_t>(i)].is_success());
    }
  });
}

TEST(ProcessGroup, MessagesBetweenTwo) {
  with_groups(3, seconds(60), [](const Group& g) {
    const int me = g->rank(), next = (me + 1) % 3, before = (me + 2) % 3;
    // All send before any rank receives; two of one tag keep their order.
    const Tensor a = full({1000}, me * 1.0), b = full({3}, me + 10.0);
    Work first = g->send(a, next), second = g->send(b, next), other = g->send(b, before, 7);
    Tensor from_before = zeros({1000}), more = zeros({3}), from_next = zeros({3});
    g->recv(from_next, next, 7).wait();
    g->recv(from_before, before).wait();
    g->recv(more, before).wait();
    first.wait(), second.wait(), other.wait();
    EXPECT_EQ(from_before[999].item<double>(), before);
    EXPECT_EQ(more[0].item<double>(), before + 10);
    EXPECT_EQ(from_next[0].item<double>(), next + 10);
    EXPECT_NE(error_of([&] { g->send(a, me).wait(); }), "no error");
    EXPECT_NE(error_of([&] { g->recv(more, 3).wait(); }), "no error");
    EXPECT_NE(error_of([&] { g->send(a, next, -1).wait(); }), "no error");
  });
}

TEST(ProcessGroup, MessagesThatDiffer) {
  with_groups(2, seconds(60), [](const Group& g) {
    Tensor t = full({g->rank() ? 4 : 8}, 1.0);
    const std::string said = error_of([&] { (g->rank() ? g->recv(t, 0) : g->send(t, 1)).wait(); });
    expect_part(said,
                "Rank 1 receives send(operation 1, float32[4]), but Rank 0 sends "
                "send(operation 1, float32[8])");
    EXPECT_EQ(t.sum().item<double>(), g->rank() ? 4 : 8);
  });
}

TEST(ProcessGroup, BytesAndBarriers) {
  std::atomic<int> came{0};
  with_groups(4, seconds(60), [&](const Group& g) {
    const std::string mine(static_cast<size_t>(g->rank()) * 1000,
                           static_cast<char>('a' + g->rank()));
    const std::vector<std::string> all = g->exchange(mine);
    ASSERT_EQ(all.size(), 4u);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(all[static_cast<size_t>(i)],
                std::string(static_cast<size_t>(i) * 1000, static_cast<char>('a' + i)));
    if (g->rank() == 2) std::this_thread::sleep_for(Milliseconds(50));
    ++came;
    g->barrier().wait();
    EXPECT_EQ(came, 4);
  });
}

TEST(ProcessGroup, Subgroups) {
  with_groups(4, seconds(60), [](const Group& g) {
    const Group odd = g->subgroup({3, 1}), all = g->subgroup({0, 1, 2, 3});
    EXPECT_EQ(odd != nullptr, g->rank() % 2 == 1);
    if (odd) {
      EXPECT_EQ(odd->rank(), g->rank() == 3 ? 0 : 1);
      Tensor t = full({2}, g->rank() + 1.0);
      odd->broadcast(t, 0).wait();
      EXPECT_EQ(t[0].item<double>(), 4);
      odd->barrier().wait();
    }
    Tensor t = ones({1});
    all->all_reduce(t).wait();
    EXPECT_EQ(t.item<double>(), 4);
    EXPECT_NE(error_of([&] { g->subgroup({0, 0}); }), "no error");
    EXPECT_NE(error_of([&] { g->subgroup({4}); }), "no error");
    g->barrier().wait();
  });
}

TEST(ProcessGroup, ArgumentsAreCheckedFirst) {
  with_groups(2, seconds(60), [](const Group& g) {
    const Tensor t = ones({4}), i = ones({4}, kLong);
    const auto says = [&](const std::string& part, const std::function<Work()>& call) {
      EXPECT_ERROR_TEXT(call().wait(), part);
    };
    says("tensor is undefined", [&] { return g->all_reduce(Tensor()); });
    says("invalid root rank: got 2", [&] { return g->broadcast(t, 2); });
    says("average: got int64", [&] { return g->all_reduce(i, ReduceOp::average); });
    says("expected one for each of 2 ranks", [&] { return g->all_gather({t.clone()}, t); });
    says("invalid tensor size", [&] { return g->all_gather({zeros({4}), zeros({3})}, t); });
    says("invalid tensor type", [&] { return g->all_gather({zeros({4}), i}, t); });
    const Tensor twice = zeros({4}), parts = zeros({6}), columns = zeros({4, 2});
    const std::string shared = "outputs: those at indices 0 and 1 share memory";
    says(shared, [&] { return g->all_gather({twice, twice}, t); });
    says(shared, [&] { return g->all_gather({parts.slice(0, 0, 4), parts.slice(0, 2, 6)}, t); });
    says(shared, [&] { return g->all_gather({columns.select(1, 0), columns.select(1, 0)}, t); });
    says(shared, [&] { return g->all_to_all({twice, twice}, {t, t}); });
    if (g->rank() == 0) says(shared, [&] { return g->gather({twice, twice}, t, 0); });
    g->all_gather({columns.select(1, 0), columns.select(1, 1)}, t).wait();
    EXPECT_TRUE(same_bits(columns, ones({4, 2})));
    g->all_gather({zeros({0}), zeros({0})}, zeros({0})).wait();
    says("expected at least as many leaves", [&] {
      CollectiveOptions o;
      o.order = ReduceOrder::tree(1);
      return g->all_reduce(t, o);
    });
    says("timeout: got 0 ms", [&] {
      CollectiveOptions o;
      o.timeout = Milliseconds(0);
      return g->barrier(o);
    });
    says("[work] got a Work of no operation", [] { return Work(); });
    if (g->rank() == 1)
      says("requires empty input on non-root", [&] { return g->scatter(t, {t, t}, 0); });
    g->barrier().wait();  // the group is whole
  });
}

TEST(ProcessGroup, CapsSayWhatWorks) {
  with_groups(2, seconds(60), [](const Group& g) {
    expect_caps(g, Device(kCPU, 0));
    const BackendCaps& caps = g->caps();
    EXPECT_EQ(caps.operations(),
              (std::vector<std::string>{"broadcast", "all_reduce", "reduce", "all_reduce_members",
                                        "all_gather", "reduce_scatter", "all_to_all", "scatter",
                                        "gather", "barrier", "exchange", "send"}));
    EXPECT_EQ(caps.reductions("all_reduce_members"),
              (std::vector<ReduceOp>{ReduceOp::sum, ReduceOp::average}));
    EXPECT_TRUE(caps.reductions("broadcast").empty());
    EXPECT_EQ(&caps, &backend_caps(g->backend()));
    EXPECT_ERROR_TEXT(caps.supports("all_reduced", kFloat),
                      "[caps] operation: got \"all_reduced\"");
    // Every order has the bits of the fixed one here, except the tree's own.
    for (const ReduceOrder order : {ReduceOrder::fixed(), ReduceOrder::any()}) {
      EXPECT_TRUE(caps.same_bits(order.kind()));
      CollectiveOptions o;
      o.order = order;
      Tensor t = numbers_of(g->rank(), 999);
      g->all_reduce(t, o).wait();
      EXPECT_TRUE(same_bits(t, summed({numbers_of(0, 999), numbers_of(1, 999)}, false)));
    }
  });
  // NCCL has all that moves tensors, and no others.
  const BackendCaps& nccl = backend_caps("nccl");
  EXPECT_FALSE(nccl.takes(kCPU));
  EXPECT_TRUE(nccl.takes(kCUDA));
  EXPECT_EQ(nccl.operations().size(), 10u);
  EXPECT_TRUE(nccl.reductions("exchange").empty());
  EXPECT_FALSE(nccl.same_bits(ReduceOrder::Kind::kAny));
  EXPECT_TRUE(nccl.same_bits(ReduceOrder::Kind::kTree));
  EXPECT_EQ(nccl.why_not(), "the program was linked without GPUs");
  EXPECT_ERROR_TEXT(backend_caps("mpi"), "[backend_caps] backend: got \"mpi\"");
}

TEST(ProcessGroup, DifferentShapes) {
  std::string said[2];  // the same on all ranks, whichever saw it first
  with_groups(2, seconds(60), [&](const Group& g) {
    Tensor t = full({g->rank() ? 8 : 4}, g->rank() + 1.0);
    const Tensor before = t.clone();
    try {
      g->all_reduce(t, "bucket 3").wait();
      ADD_FAILURE() << "no error";
    } catch (const CommMismatch& e) {
      expect_part(e.what(),
                  "Rank 0 is running collective: all_reduce(operation 1, \"bucket 3\", "
                  "float32[4], sum, fixed)");
      expect_part(e.what(),
                  "Rank 1 is running collective: all_reduce(operation 1, \"bucket 3\", "
                  "float32[8], sum, fixed)");
      EXPECT_EQ(e.ranks(), (std::vector<int>{0, 1}));
      said[g->rank()] = e.what();
    }
    EXPECT_TRUE(same_bits(t, before));
  });
  EXPECT_EQ(said[0], said[1]);
  EXPECT_EQ(said[0].find(", rank "), std::string::npos) << said[0];
}

// Both of a pair disagree with the other: the error begins with the lower rank.
TEST(ProcessGroup, DifferentPieces) {
  std::string said[2];
  with_groups(2, seconds(60), [&](const Group& g) {
    const int me = g->rank();
    std::vector<Tensor> out{zeros({2}), zeros({2})}, in{ones({me ? 4 : 2}), ones({me ? 2 : 3})};
    said[me] = error_of([&] { g->all_to_all(out, in).wait(); });
    expect_part(said[me],
                "group 'world': Detected mismatch between collectives on ranks. Rank 0 expects 8 "
                "bytes of rank 1, which gives it 16: ");
  });
  EXPECT_EQ(said[0], said[1]);
}

TEST(ProcessGroup, EverythingThatMayDiffer) {
  using Call = std::function<void(const Group&)>;
  const auto tree = [] {
    CollectiveOptions o;
    o.order = ReduceOrder::tree(4);
    return o;
  };
  const std::vector<std::pair<Call, std::string>> odd = {
      {[](const Group& g) { g->all_reduce(ones({4}, kDouble)).wait(); }, "float64[4]"},
      {[](const Group& g) {
         g->all_reduce(ones({2, 2})).wait();
       },
       "float32[2, 2]"},
      {[](const Group& g) { g->all_reduce(ones({4}), ReduceOp::max).wait(); }, "max"},
      {[tree](const Group& g) { g->all_reduce(ones({4}), tree()).wait(); }, "tree:4"},
      {[](const Group& g) { g->all_reduce(ones({4}), "name").wait(); }, "\"name\""},
      {[](const Group& g) { g->broadcast(ones({4}), 1).wait(); }, "broadcast(operation 1, float32"},
      {[](const Group& g) { g->barrier().wait(); }, "barrier(operation 1)"},
      {[](const Group& g) { g->exchange("x"); }, "exchange(operation 1"},
      {[](const Group& g) { g->all_reduce_members({ones({4})}).wait(); }, "1 members of 4"}};
  for (const auto& [call, part] : odd)
    with_groups(3, seconds(60), [&, &call = call, &part = part](const Group& g) {
      try {
        if (g->rank() == 2) call(g);
        else g->all_reduce(ones({4})).wait();
        ADD_FAILURE() << "no error";
      } catch (const CommMismatch& e) {
        expect_part(e.what(), "all_reduce(operation 1, float32[4], sum, fixed)");
        expect_part(e.what(), part);
      }
    });
  // The members' shapes differ.
  with_groups(2, seconds(60), [&](const Group& g) {
    const std::vector<Tensor> members = g->rank()
                                            ? std::vector<Tensor>{ones({2}), ones({16}), ones({4})}
                                            : std::vector<Tensor>{ones({2}), ones({4}), ones({16})};
    EXPECT_THROW(g->all_reduce_members(members, "m").wait(), CommMismatch);
  });
  // A difference after the eighth size; a text shows eight sizes.
  with_groups(2, seconds(60), [&](const Group& g) {
    std::vector<int64_t> sizes(10, 1);
    sizes[g->rank() ? 8 : 9] = 3;
    EXPECT_THROW(g->all_reduce(ones(sizes)).wait(), CommMismatch);
  });
}

TEST(ProcessGroup, ARankThatDoesNotCome) {
  std::atomic<bool> over{false};
  std::atomic<int> ready{0};
  with_groups(3, seconds(60), [&](const Group& g) {
    if (g->rank() == 1) {
      while (!over) std::this_thread::sleep_for(Milliseconds(5));
      // It has received the error by now, and its calls end at once.
      const auto begun = std::chrono::steady_clock::now();
      EXPECT_THROW(g->barrier().wait(), CommTimeout);
      EXPECT_LT(std::chrono::steady_clock::now() - begun, in_time(seconds(1)));
      return;
    }
    CollectiveOptions o("bucket 2");
    o.timeout = Milliseconds(1500);
    Tensor t = full({4}, g->rank() + 1.0);
    ++ready;  // on a busy machine the other one may be late, too
    while (ready < 2) std::this_thread::sleep_for(Milliseconds(1));
    const auto begun = std::chrono::steady_clock::now();
    try {
      g->all_reduce(t, o).wait();
      ADD_FAILURE() << "no error";
    } catch (const CommTimeout& e) {
      EXPECT_EQ(e.ranks(), std::vector<int>{1});
      expect_part(e.what(),
                  "all_reduce(operation 1, \"bucket 2\", float32[4], sum, fixed): rank 1 "
                  "did not take part");
    }
    const auto took = std::chrono::steady_clock::now() - begun;
    EXPECT_GE(took, Milliseconds(1100));
    EXPECT_LT(took, in_time(Milliseconds(1500)));
    EXPECT_EQ(t[0].item<double>(), g->rank() + 1.0);
    EXPECT_THROW(g->check(), CommTimeout);
    EXPECT_THROW(g->broadcast(t).wait(), CommTimeout);
    const Group rest = g->regroup({0, 2});
    rest->all_reduce(t).wait();
    EXPECT_EQ(t[0].item<double>(), 4);
    EXPECT_EQ(rest->rank(), g->rank() / 2);
    rest->barrier().wait();
    over = true;
  });
}

TEST(ProcessGroup, Abort) {
  with_groups(3, seconds(60), [](const Group& g) {
    Tensor t = ones({4});
    if (g->rank() == 2) {
      std::this_thread::sleep_for(Milliseconds(50));
      g->abort("x");
    }
    const auto begun = std::chrono::steady_clock::now();
    try {
      g->all_reduce(t).wait();
      ADD_FAILURE() << "no error";
    } catch (const CommAborted& e) {
      EXPECT_EQ(e.origin(), 2);
      expect_part(e.what(), "aborted by rank 2: x");
    }
    EXPECT_THROW(g->barrier().wait(), CommAborted);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, in_time(seconds(1)));
    EXPECT_TRUE(same_bits(t, ones({4})));
  });
}

TEST(ProcessGroup, ARankThatLeaves) {
  std::atomic<int> waiting{0};
  with_groups(3, seconds(60), [&](const Group& group) {
    Group g = group;
    if (g->rank() == 0) {
      while (waiting < 2) std::this_thread::sleep_for(Milliseconds(5));
      return;  // its group is destroyed
    }
    Tensor t = ones({4});
    Work w = g->all_reduce(t);
    ++waiting;
    try {
      w.wait();
      ADD_FAILURE() << "no error";
    } catch (const CommLost& e) {
      EXPECT_EQ(e.ranks(), std::vector<int>{0});
      expect_part(e.what(), "rank 0 is gone");
    }
    EXPECT_TRUE(same_bits(t, ones({4})));
    EXPECT_FALSE(w.is_success());
    EXPECT_TRUE(w.exception() != nullptr);
  });
}

// Operations that are still running when a group is destroyed come to an end.
TEST(ProcessGroup, DestroyedWhileBusy) {
  with_groups(2, seconds(60), [](const Group& group) {
    Group g = group;
    if (g->rank() == 1) {
      EXPECT_THROW(g->all_reduce(ones({4})).wait(), CommError);
      EXPECT_THROW(g->all_reduce(ones({4})).wait(), CommError);
      return;
    }
    Tensor t = ones({4});
    Tensor alone = zeros({2});
    const Work message = g->recv(alone, 1, 3);
    EXPECT_FALSE(message.wait_for(Milliseconds(20)));
    g->abort("rank 0 has enough");
    EXPECT_THROW(message.wait(), CommAborted);
  });
}

}  // namespace ramet::distributed
