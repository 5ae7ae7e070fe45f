// The GPU's sort gives the CPU's order, which tests/kernels/index/sort_test.cc compares with the
// standard library's.
#include "kernels/index/sort.h"

#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "autograd/ops/front/sort_internal.h"

namespace ramet {
namespace {

TEST(GpuSort, SameOrderAsOnTheCpu) {
  const int64_t tile = kernels::kSortTile;
  for (int bits : {1, 6, 20, 63})
    for (int64_t n : {int64_t{1}, int64_t{100}, tile - 1, tile, tile + 1, 5 * tile + 7}) {
      const int64_t rows = n < 200 ? 70 : 3, most = int64_t{1} << std::min(bits, 62);
      Tensor keys = randint(0, most, {rows, n}, kLong);
      Tensor there = keys.to(Device(kCUDA, 0));
      const Tensor got = autograd::sorted_positions(there, bits).to(kCPU),
                   want = autograd::sorted_positions(keys, bits);
      EXPECT_TRUE(equal(got, want)) << bits << " bits, " << n;
      EXPECT_TRUE(equal(there.to(kCPU), keys)) << bits << " bits, " << n;
    }
}

// Long lines are sorted, and what is wanted taken from them; of short ones elements are counted.
TEST(GpuSort, SameResultsAsOnTheCpu) {
  for (ScalarType t : {kByte, kShort, kHalf, kFloat, kDouble})
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{4, 512}, {3, 2100}, {600, 2}}) {
      Tensor x = randn(sizes).mul(40).to(t);
      if (is_floating(t))
        x.index_put_({0}, NAN), x.index_put_({1, 0}, -0.0), x.select(-1, 1).zero_();
      const Tensor there = x.to(Device(kCUDA, 0));
      const int64_t dim = sizes[0] == 600 ? 0 : 1;
      SCOPED_TRACE(::testing::Message() << name_of(t) << x.sizes());
      for (bool descending : {false, true}) {
        const auto [v, at] = sort(there, dim, descending);
        const auto [want, want_at] = sort(x, dim, descending);
        EXPECT_TRUE(equal(at.to(kCPU), want_at));
        EXPECT_TRUE(v.to(kCPU).eq(want).logical_or(want.isnan()).all().item<bool>());
        const auto [top, top_at] = topk(there, 7, dim, descending);
        EXPECT_TRUE(equal(top_at.to(kCPU), want_at.narrow(dim, 0, 7)));
      }
      using Two = std::tuple<Tensor, Tensor>;
      const auto same = [&](const char* name, Two (*f)(const Tensor&, int64_t)) {
        const auto [v, at] = f(there, dim);
        const auto [want, want_at] = f(x, dim);
        EXPECT_TRUE(equal(at.to(kCPU), want_at)) << name;
        EXPECT_TRUE(v.to(kCPU).eq(want).logical_or(want.isnan()).all().item<bool>()) << name;
      };
      same("kthvalue", [](const Tensor& y, int64_t d) { return kthvalue(y, 100, d); });
      same("median", [](const Tensor& y, int64_t d) { return median(y, d); });
      same("nanmedian", [](const Tensor& y, int64_t d) { return nanmedian(y, d); });
      same("mode", [](const Tensor& y, int64_t d) { return mode(y, d); });
    }
}

}  // namespace
}  // namespace ramet
