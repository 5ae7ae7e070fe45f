// What a group's operations do with tensors of GPUs, by every way that these may travel: the same
// bits as on the host.
#include "runtime/cuda/copies.h"
#include "tests/parallel/distributed/cuda/gpu_groups.h"
#include "tests/parallel/distributed/group/caps_cases.h"

namespace ramet::testing {
namespace {

using parallel::ReduceOrder;

const std::vector<ScalarType> kTypes{kFloat, kDouble, kBFloat16, kHalf, kLong, kInt, kByte, kBool};

// Every rank's numbers of this length and type.
std::vector<Tensor> of_all(int ranks, int64_t n, ScalarType dtype, int first = 0) {
  std::vector<Tensor> out;
  for (int i = 0; i < ranks; ++i) out.push_back(numbers(first + i, n, dtype));
  return out;
}
Tensor on(int rank, const Tensor& t) { return t.to(gpu(rank)); }
std::vector<Tensor> blanks(int count, int64_t n, ScalarType dtype, int rank) {
  std::vector<Tensor> out;
  for (int i = 0; i < count; ++i) out.push_back(zeros({n}, TensorOptions(dtype).device(gpu(rank))));
  return out;
}
const Tensor& at(const std::vector<Tensor>& list, int i) { return list[static_cast<size_t>(i)]; }

TEST(GpuGroups, Moves) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways())
    for (int n : {1, 3}) {
      SCOPED_TRACE(::testing::PrintToString(n) + " ranks");
      with_gpu_groups(way, n, seconds(60), [&](const Group& g) {
        const int me = g->rank();
        EXPECT_STREQ(g->backend(kCUDA), way.nccl() ? "nccl" : way.gloo ? "gloo" : "inproc");
        for (ScalarType dtype : kTypes)
          for (int64_t length : {int64_t{0}, int64_t{5}, int64_t{20011}}) {
            if (length > 5 && dtype != kFloat && dtype != kBool) continue;
            const std::vector<Tensor> all = of_all(n, length, dtype);
            const int root = n - 1;
            for (bool undefined : {false, true}) {
              CollectiveOptions o;
              o.undefined_on_failure = undefined;
              Tensor t = on(me, at(all, me));
              g->broadcast(t, root, o).wait();
              EXPECT_TRUE(same(t, at(all, root))) << way << " " << short_name_of(dtype);

              const std::vector<Tensor> gathered = blanks(n, length, dtype, me);
              g->all_gather(gathered, on(me, at(all, me)), o).wait();
              for (int i = 0; i < n; ++i) EXPECT_TRUE(same(at(gathered, i), at(all, i))) << way;
            }

            const std::vector<Tensor> at_root =
                me == root ? blanks(n, length, dtype, me) : std::vector<Tensor>{};
            g->gather(at_root, on(me, at(all, me)), root).wait();
            for (int i = 0; i < n && me == root; ++i)
              EXPECT_TRUE(same(at(at_root, i), at(all, i))) << way;
            Tensor part = at(blanks(1, length, dtype, me), 0);
            g->scatter(part, at_root, root).wait();
            EXPECT_TRUE(same(part, at(all, me))) << way;

            // Rank i gives rank j i + 2 j numbers.
            std::vector<Tensor> in, out;
            for (int j = 0; j < n; ++j) {
              in.push_back(on(me, numbers(10 * me + j, me + 2 * j, dtype)));
              out.push_back(at(blanks(1, j + 2 * me, dtype, me), 0));
            }
            g->all_to_all(out, in).wait();
            for (int j = 0; j < n; ++j)
              EXPECT_TRUE(same(at(out, j), numbers(10 * j + me, j + 2 * me, dtype))) << way;
          }
        g->barrier().wait();
      });
    }
}

TEST(GpuGroups, CapsSayWhatWorks) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      SCOPED_TRACE(::testing::PrintToString(way));
      distributed::expect_caps(g, gpu(g->rank()));
      EXPECT_EQ(g->caps(kCUDA).operations().size(), way.nccl() ? 10u : 12u);
      EXPECT_STREQ(g->caps(kCPU).backend(), way.gloo ? "gloo" : "inproc");
    });
}

TEST(GpuGroups, SumsHaveTheBitsOfTheHost) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways())
    for (int n : {1, 2, 3})
      with_gpu_groups(way, n, seconds(60), [&](const Group& g) {
        const int me = g->rank();
        for (ScalarType dtype : kTypes)
          for (int64_t length : {int64_t{7}, int64_t{30011}})
            for (bool tree : {false, true}) {
              if (length > 7 && dtype != kFloat && dtype != kHalf) continue;
              CollectiveOptions o;
              o.order = tree ? ReduceOrder::tree(4) : ReduceOrder::fixed();
              const std::vector<Tensor> all = of_all(n, length, dtype);
              const Tensor expected = summed(all, tree);
              Tensor t = on(me, at(all, me)), host = at(all, me).clone();
              g->all_reduce(t, o).wait();
              g->all_reduce(host, o).wait();
              EXPECT_TRUE(same(t, expected))
                  << way << " " << n << " ranks, " << short_name_of(dtype) << " " << length;
              EXPECT_TRUE(same(t, host));
              Tensor at_root = on(me, at(all, me));
              g->reduce(at_root, n / 2, o).wait();
              EXPECT_TRUE(same(at_root, me == n / 2 ? expected : at(all, me))) << way;
              std::vector<Tensor> in;
              for (int j = 0; j < n; ++j) in.push_back(on(me, numbers(me + j, length, dtype)));
              Tensor mine = at(blanks(1, length, dtype, me), 0);
              g->reduce_scatter(mine, in, o).wait();
              EXPECT_TRUE(same(mine, summed(of_all(n, length, dtype, me), tree))) << way;
            }
        const std::vector<Tensor> all = of_all(n, 40, kDouble);
        const auto reduced = [&](ReduceOp op) {
          Tensor t = on(me, at(all, me));
          g->all_reduce(t, op).wait();
          return t;
        };
        Tensor low = all[0], high = all[0], product = all[0];
        for (int i = 1; i < n; ++i) {
          low = minimum(low, at(all, i)), high = maximum(high, at(all, i));
          product = product * at(all, i);
        }
        EXPECT_TRUE(same(reduced(ReduceOp::min), low)) << way;
        EXPECT_TRUE(same(reduced(ReduceOp::max), high)) << way;
        EXPECT_TRUE(same(reduced(ReduceOp::product), product)) << way;
        EXPECT_TRUE(same(reduced(ReduceOp::average), summed(all, false) / n)) << way;
      });
}

// NCCL's own sum, where it has the type; the double adds in the order of ranks.
TEST(GpuGroups, AnyOrder) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : ways({kStagedThreads, kNcclThreads, kNcclGloo}))
    with_gpu_groups(way, 3, seconds(60), [&](const Group& g) {
      for (ScalarType dtype : {kFloat, kBFloat16, kLong, kBool}) {
        const std::vector<Tensor> all = of_all(3, 2000, dtype);
        CollectiveOptions o;
        o.order = ReduceOrder::any();
        Tensor t = on(g->rank(), at(all, g->rank()));
        g->all_reduce(t, o).wait();
        EXPECT_TRUE(same(t, summed(all, false))) << way << " " << short_name_of(dtype);
      }
    });
}

TEST(GpuGroups, MembersThatSomeRanksDoNotHave) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways())
    for (bool adjacent : {false, true})
      for (int64_t scale : {1, 5000})
        with_gpu_groups(way, 3, seconds(60), [&](const Group& g) {
          const int me = g->rank();
          const std::vector<int64_t> lengths =
              adjacent ? std::vector<int64_t>{16 * scale, 32 * scale, 16, 48 * scale}
                       : std::vector<int64_t>{3 * scale, 16 * scale, 1, 40 * scale};
          const Tensor flat = full({96 * scale + 100}, me + 1.0, gpu(me));
          std::vector<Tensor> members;
          int64_t from = 0;
          for (int64_t length : lengths) {
            members.push_back(adjacent ? flat.slice(0, from, from + length)
                                       : empty({length}, gpu(me)));
            from += length;
            members.back().copy_(numbers(me, length, kFloat));
          }
          // Member 0: all; 1: ranks 0 and 2; 2: no rank; 3: rank 1.
          const std::vector<bool> mine = {true, me != 1, false, me == 1};
          const auto report = std::make_shared<distributed::MemberReport>();
          CollectiveOptions o("members");
          if (scale > 1) o.order = ReduceOrder::any();
          g->all_reduce_members(members, o, mine, 0.5 * me, report).wait();
          EXPECT_EQ(report->present, (std::vector<bool>{true, true, false, true}));
          EXPECT_EQ(report->notes, (std::vector<double>{0, 0.5, 1}));
          const auto n = [&](int rank, size_t i) { return numbers(rank, lengths[i], kFloat); };
          EXPECT_TRUE(same(members[0], summed({n(0, 0), n(1, 0), n(2, 0)}, false))) << way;
          EXPECT_TRUE(same(members[1], n(0, 1) + n(2, 1))) << way;
          EXPECT_TRUE(same(members[2], n(me, 2))) << way;
          EXPECT_TRUE(same(members[3], n(1, 3))) << way;
          const Tensor rest = flat.slice(0, 96 * scale + 16).to(kHost);
          EXPECT_TRUE(rest.equal(full_like(rest, me + 1.0))) << "somebody else's";
          // All members of all ranks, by NCCL's own sum where that is asked for.
          g->all_reduce_members({members[0], members[3]}, o).wait();
          EXPECT_TRUE(same(members[3], n(1, 3) + n(1, 3) + n(1, 3))) << way;
        });
}

TEST(GpuGroups, SendAndReceive) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 3, seconds(60), [&](const Group& g) {
      const int me = g->rank(), next = (me + 1) % 3, before = (me + 2) % 3;
      // All send before any rank receives; two of one tag keep their order, others may be
      // overtaken.
      const Tensor a = full({1000}, me + 0.5, gpu(me)), b = full({3}, me + 10.0, gpu(me));
      const Work first = g->send(a, next), second = g->send(b, next), other = g->send(b, before, 7),
                 third = g->send(a, next, 2);
      Tensor from_before = zeros({1000}, gpu(me)), more = zeros({3}, gpu(me)),
             from_next = zeros({3}, gpu(me)), tagged = zeros({1000}, gpu(me));
      g->recv(from_next, next, 7).wait();
      g->recv(tagged, before, 2).wait();
      g->recv(from_before, before).wait();
      g->recv(more, before).wait();
      first.wait(), second.wait(), other.wait(), third.wait();
      EXPECT_TRUE(same(from_before, full({1000}, before + 0.5))) << way;
      EXPECT_TRUE(same(tagged, full({1000}, before + 0.5))) << way;
      EXPECT_TRUE(same(more, full({3}, before + 10.0))) << way;
      EXPECT_TRUE(same(from_next, full({3}, next + 10.0))) << way;
      Tensor sum = ones({4}, gpu(me));
      g->all_reduce(sum).wait();
      EXPECT_TRUE(same(sum, full({4}, 3.0)));
      g->barrier().wait();
    });
}

TEST(GpuGroups, TensorsOfAnyStrides) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const Tensor whole = zeros({4, 6}, gpu(g->rank()));
      Tensor part = whole.slice(1, 1, 4).t();  // [3, 4], not contiguous
      part.fill_(g->rank() + 1.0);
      const auto version = whole.version();
      g->all_reduce(part).wait();
      EXPECT_GT(whole.version(), version);
      EXPECT_EQ(whole.sum().item<double>(), 12 * 3.0) << way;
      EXPECT_EQ(whole[0][0].item<double>(), 0);
      Tensor scalar = full({}, 2.0, gpu(g->rank()));
      g->all_reduce(scalar).wait();
      EXPECT_EQ(scalar.item<double>(), 4);
    });
}

// The operation begins after the kernels before it, and those after it see its result, in every
// order of streams. In the lazy order only work that something waits for runs.
TEST(GpuGroups, AmongKernels) {
  RAMET_NEEDS_CARDS(2);
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Async, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    const Gpus gpus(rank_gpus(2, mode));
    for (const Way& way : all_ways())
      with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
        const Device mine = gpu(g->rank());
        Tensor t = zeros({5000}, mine), behind = zeros({5000}, mine);
        for (int round = 0; round < 3; ++round) {
          for (int i = 0; i < 4; ++i) t.add_(1);
          const Work work = g->all_reduce(t);
          behind.add_(2);  // during the operation
          work.wait();
          behind.add_(t);
          t.mul_(0.5);
        }
        // 8, 4; 16, 8; 24, 12
        EXPECT_TRUE(same(t, full({5000}, 12.0))) << way;
        EXPECT_TRUE(same(behind, full({5000}, 6 + 8 + 16 + 24.0))) << way;
      });
  }
}

// Each rank may have another GPU in another operation; on the host's engines even none.
TEST(GpuGroups, DevicesMayChange) {
  RAMET_NEEDS_CARDS(3);
  const Gpus gpus(rank_gpus(3));
  for (const Way& way : all_ways())
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      for (int shift : {0, 1, 0, 1}) {
        Tensor t = full({100}, g->rank() + 1.0, gpu(g->rank() + shift));
        g->all_reduce(t).wait();
        EXPECT_TRUE(same(t, full({100}, 3.0))) << way;
      }
      if (way.nccl()) return;
      Tensor t = full({100}, g->rank() + 1.0, g->rank() ? gpu(1) : kHost);
      g->all_reduce(t).wait();
      EXPECT_EQ(t.sum().item<double>(), 300);
    });
}

// Operations of two groups on the same GPUs, which ranks begin in different orders.
TEST(GpuGroups, TwoGroupsOnOneCard) {
  RAMET_NEEDS_NCCL(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : {kNcclThreads, kNcclGloo})
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      const Group other = g->subgroup({1, 0});
      EXPECT_STREQ(other->backend(kCUDA), "nccl");  // its parent's
      for (int round = 0; round < 5; ++round) {
        Tensor a = ones({3000}, gpu(g->rank())), b = full({2000}, 2.0, gpu(g->rank()));
        const bool swapped = g->rank() == round % 2;
        const Work first = swapped ? other->all_reduce(b) : g->all_reduce(a);
        const Work second = swapped ? g->all_reduce(a) : other->all_reduce(b);
        first.wait(), second.wait();
        EXPECT_TRUE(same(a, full({3000}, 2.0)));
        EXPECT_TRUE(same(b, full({2000}, 4.0)));
      }
      other->barrier().wait();
    });
}

// With NCCL nothing but headers goes through the host.
TEST(GpuGroups, NcclLeavesTheHostAlone) {
  RAMET_NEEDS_CARDS(2);
  const Gpus gpus(rank_gpus(2));
  for (const Way& way : ways({kStagedThreads, kNcclThreads})) {
    cuda::CopyCounts before, after;
    with_gpu_groups(way, 2, seconds(60), [&](const Group& g) {
      Tensor t = ones({100}, gpu(g->rank()));
      g->barrier().wait();
      if (g->rank() == 0) before = cuda::copy_counts();
      g->barrier().wait();
      g->all_reduce(t).wait();
      g->barrier().wait();
      if (g->rank() == 0) after = cuda::copy_counts();
      g->barrier().wait();
      EXPECT_TRUE(same(t, full({100}, 2.0)));
    });
    const uint64_t through_host =
        after.to_host - before.to_host + after.to_device - before.to_device;
    EXPECT_EQ(through_host, way.nccl() ? 0u : 4u) << way;
  }
}

TEST(GpuGroups, ArgumentsAreCheckedFirst) {
  RAMET_NEEDS_NCCL(3);
  const Gpus gpus(rank_gpus(3));
  with_gpu_groups(kNcclThreads, 2, seconds(60), [](const Group& g) {
    const int me = g->rank();
    const Tensor here = ones({4}, gpu(me)), there = ones({4}, gpu(2)), host = ones({4});
    const auto says = [&](const std::string& part, const std::function<Work()>& call) {
      EXPECT_ERROR_TEXT(call().wait(), part);
    };
    says("[all_gather] tensors on two devices: got float32[4] on cuda:" + std::to_string(me) +
             " and float32[4] on cuda:2",
         [&] {
           return g->all_gather({here.clone(), there}, here);
         });
    says("[reduce_scatter] tensors on two devices: got float32[4] on cuda:" + std::to_string(me) +
             " and float32[4] on cpu",
         [&] {
           return g->reduce_scatter(here.clone(), {here, host});
         });
    says("[all_to_all] tensors on two devices", [&] {
      return g->all_to_all({host, host.clone()}, {here, here});
    });
    says("[all_reduce_members] tensors on two devices", [&] {
      return g->all_reduce_members({here, host});
    });
    EXPECT_TRUE(same(here, ones({4})));
    g->barrier().wait();  // the group is whole
  });
  GroupOptions o;
  o.backend = "mpi";
  EXPECT_ERROR_TEXT(distributed::make_local_groups(1, o),
                    "[process_group] backend: got \"mpi\", expected \"gloo\", \"nccl\" or "
                    "\"cpu:gloo,cuda:nccl\"");
}

}  // namespace
}  // namespace ramet::testing
