// Buckets of parameters in several dtypes under DistributedDataParallel: sums of 16-bit gradients
// are float inside and rounded once, for any number of ranks.
#include <gtest/gtest.h>

#include <utility>

#include "autograd/autograd.h"
#include "nn/module/cloneable.h"
#include "parallel/distributed/ddp/data_parallel.h"
#include "parallel/distributed/ddp/replicate.h"
#include "runtime/devices/generator.h"
#include "tests/parallel/distributed/local_groups.h"

namespace ramet::distributed {
namespace {

const ScalarType kDtypes[] = {kBFloat16, kFloat, kHalf, kBFloat16, kHalf, kHalf};
const int64_t kLengths[] = {65, 7, 300, 3, 1, 40};
constexpr size_t kCount = 6;

// The gradient of w<i> in a shard is its row of x[i].
struct SeveralDtypesImpl : nn::Cloneable<SeveralDtypesImpl> {
  SeveralDtypesImpl() { SeveralDtypesImpl::reset(); }
  void reset() override {
    w.clear();
    for (size_t i = 0; i < kCount; ++i)
      w.push_back(register_parameter("w" + std::to_string(i),
                                     ones({kLengths[i]}, TensorOptions(kDtypes[i]))));
  }
  Tensor forward(const std::vector<Tensor>& x) {
    Tensor sum;
    for (size_t i = 0; i < kCount; ++i) {
      const Tensor part = (w[i] * x[i]).sum().to(kFloat).view({1});
      sum = i ? sum + part : part;
    }
    return sum;
  }
  std::vector<Tensor> w;
};
RAMET_MODULE(SeveralDtypes);

// A row for each of four shards, of different magnitudes: every rounding shows.
std::vector<Tensor> four_rows(uint64_t seed) {
  const auto host = TensorOptions(kFloat).device(Device(kCPU, 0));
  std::vector<Tensor> out;
  for (size_t i = 0; i < kCount; ++i) {
    const Generator g(Device(kCPU, 0), seed + i);
    const Tensor scale = tensor({1., 8., 64., 512.}, host).view({4, 1});
    out.push_back((randn({4, kLengths[i]}, g, host) * scale).to(kDtypes[i]));
  }
  return out;
}

// The sum over rows first, first + 1, ...; then on top of what is there.
Tensor expected_sum(const Tensor& before, const Tensor& rows, int count, bool tree) {
  std::vector<Tensor> parts;
  for (int k = 0; k < count; ++k) parts.push_back(rows[k].clone());
  const Tensor sum = summed(parts, tree);
  return before.defined() ? (before.to(kFloat) + sum.to(kFloat)).to(rows.scalar_type()) : sum;
}

// Three backwards: to nothing, to what all ranks have, and after zero_grad() to nothing again.
template <class Run>
void expect_bits(SeveralDtypes& net, int shards, bool tree, const Run& backward) {
  std::vector<Tensor> before(kCount);
  for (uint64_t step = 0; step < 3; ++step) {
    if (step == 2) {
      net->zero_grad();
      before.assign(kCount, Tensor());
    }
    const std::vector<Tensor> rows = four_rows(10 * step + 1);
    backward(rows);
    for (size_t i = 0; i < kCount; ++i) {
      before[i] = expected_sum(before[i], rows[i], shards, tree);
      EXPECT_TRUE(same_bits(net->w[i].grad(), before[i])) << "w" << i << ", step " << step;
    }
  }
}
std::vector<Tensor> row(const std::vector<Tensor>& rows, int k) {
  std::vector<Tensor> out;
  for (const Tensor& x : rows) out.push_back(x.slice(0, k, k + 1));
  return out;
}

TEST(NarrowBuckets, InTheOrderOfTheRanks) {
  for (const int n : {1, 2, 3, 4})
    for (const int64_t bytes : {int64_t{100}, int64_t{1} << 20})
      with_groups_of(n, [n, bytes](const Group& g) {
        SeveralDtypes net;
        DdpOptions o;
        o.average = Average::sum;
        o.bucket_bytes = bytes;
        DistributedDataParallel<SeveralDtypes> ddp(net, g, o);
        expect_bits(net, n, false,
                    [&](const auto& rows) { ddp(row(rows, g->rank())).sum().backward(); });
      });
}

// The same four shards on one, two and four ranks, and on one rank of two devices.
TEST(NarrowBuckets, AlongOneTree) {
  const std::vector<Device> two = {"cpu:0", "cpu:1"};
  for (const auto& [n, devices] :
       {std::pair(1, std::vector<Device>{}), std::pair(1, two), std::pair(2, std::vector<Device>{}),
        std::pair(4, std::vector<Device>{})})
    with_groups_of(n, [&, devices = devices](const Group& g) {
      SeveralDtypes net;
      DdpOptions o;
      o.average = Average::sum;
      o.order = ReduceOrder::tree(4);
      o.batch = Batch::whole;
      o.devices = devices;
      DistributedDataParallel<SeveralDtypes> ddp(net, g, o);
      expect_bits(net, 4, true, [&](const auto& rows) { ddp(rows).sum().backward(); });
    });
}

TEST(NarrowBuckets, UnderReplicate) {
  for (const int n : {2, 4})
    with_groups_of(n, [n](const Group& g) {
      SeveralDtypes net;
      ReplicateOptions o;
      o.average = Average::sum;
      replicate(net, g, o);
      expect_bits(net, n, false,
                  [&](const auto& rows) { net(row(rows, g->rank())).sum().backward(); });
    });
}

// What a rank collects without synchronisation is added in the parameter's dtype, as in one
// process.
TEST(NarrowBuckets, CollectedBefore) {
  with_groups_of(4, [](const Group& g) {
    SeveralDtypes net;
    DdpOptions o;
    o.average = Average::sum;
    DistributedDataParallel<SeveralDtypes> ddp(net, g, o);
    const std::vector<Tensor> first = four_rows(1), second = four_rows(11);
    {
      const auto quiet = ddp.no_sync();
      ddp(row(first, g->rank())).sum().backward();
    }
    ddp(row(second, g->rank())).sum().backward();
    for (size_t i = 0; i < kCount; ++i) {
      const Tensor both = (first[i].to(kFloat) + second[i].to(kFloat)).to(kDtypes[i]);
      EXPECT_TRUE(same_bits(net->w[i].grad(), expected_sum({}, both, 4, false))) << "w" << i;
    }
  });
}

// More ranks than the kernel has operands.
TEST(NarrowBuckets, SumsOfManyRanks) {
  constexpr int kRanks = 19;
  with_groups_of(kRanks, [](const Group& g) {
    for (const ScalarType dtype : {kBFloat16, kHalf, kFloat}) {
      const auto part = [dtype](int rank) {
        const Generator draws(Device(kCPU, 0), static_cast<uint64_t>(rank));
        const auto host = TensorOptions(kFloat).device(Device(kCPU, 0));
        return randn({kRanks, 70}, draws, host).mul_(1 << (rank % 5 * 3)).to(dtype);
      };
      std::vector<Tensor> parts;
      for (int r = 0; r < kRanks; ++r) parts.push_back(part(r));
      const Tensor expected = summed(parts, false);
      const Tensor all = part(g->rank());
      g->all_reduce(all).wait();
      EXPECT_TRUE(same_bits(all, expected)) << dtype;
      std::vector<Tensor> pieces;
      for (int r = 0; r < kRanks; ++r) pieces.push_back(part(g->rank())[r].clone());
      const Tensor piece = empty({70}, TensorOptions(dtype));
      g->reduce_scatter(piece, pieces).wait();
      EXPECT_TRUE(same_bits(piece, expected[g->rank()])) << dtype;
      // A rank without a member is skipped.
      const Tensor member = part(g->rank()).clone();
      g->all_reduce_members({member}, {}, {g->rank() != 3}, 0, nullptr).wait();
      parts.erase(parts.begin() + 3);
      EXPECT_TRUE(same_bits(member, summed(parts, false))) << dtype;
    }
  });
}

}  // namespace
}  // namespace ramet::distributed
