// The GPU's sort gives the CPU's order, which tests/kernels/sort_test compares with the standard
// library's.
#include "kernels/index/sort.h"

#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "autograd/ops/front/sort_front.h"

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

}  // namespace
}  // namespace ramet
