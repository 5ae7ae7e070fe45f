// Hashes depend on dtype, shape and values, and on nothing else.
#include "tools/ledger/hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "ramet.h"

namespace ramet::ledger {
namespace {

uint64_t one(const Tensor& t) { return hashes_of({t})[0]; }

Tensor with_nan(ScalarType dtype, bool negative) {
  Tensor t = arange(200, kDouble).to(dtype);
  t[150] = negative ? -std::nan("") : std::nan("");
  return t;
}

TEST(LedgerHash, AllNansAreOneAndZerosAreTwo) {
  for (const ScalarType dtype : {kDouble, kFloat, kHalf, kBFloat16}) {
    EXPECT_EQ(one(with_nan(dtype, false)), one(with_nan(dtype, true))) << toString(dtype);
    EXPECT_NE(one(with_nan(dtype, false)), one(arange(200, kDouble).to(dtype)));
    const Tensor infinite = full({3}, std::numeric_limits<double>::infinity()).to(dtype);
    EXPECT_NE(one(infinite), one(-infinite));
    EXPECT_NE(one(infinite), one(full({3}, std::nan("")).to(dtype)));
    EXPECT_NE(one(zeros({3}).to(dtype)), one((-zeros({3})).to(dtype)));
  }
}

TEST(LedgerHash, DtypeAndShapeCount) {
  const Tensor x = zeros({6}, kInt);
  std::set<uint64_t> all = {one(x),
                            one(x.view({2, 3})),
                            one(x.view({3, 2})),
                            one(x.to(kLong)),
                            one(x.to(kFloat)),
                            one(zeros({0}, kInt)),
                            one(zeros({0, 2}, kInt)),
                            one(tensor(0, kInt)),
                            one(zeros({1}, kInt)),
                            one(zeros({6}, kHalf)),
                            one(zeros({6}, kBFloat16)),
                            one(Tensor())};
  EXPECT_EQ(all.size(), 12u);
  EXPECT_EQ(one(Tensor()), 0u);
}

TEST(LedgerHash, StridesDevicesAndThreadsDoNot) {
  manual_seed(1);
  const Tensor x = randn({300, 500});
  const uint64_t expected = one(x);
  EXPECT_EQ(one(x.t().contiguous().t()), expected);
  EXPECT_EQ(one(x.to(Device(kCPU, 1))), expected);
  EXPECT_EQ(one(cat({x, x})[0].unsqueeze(0)), one(x[0].unsqueeze(0).clone()));
  const int threads = get_num_threads();
  for (const int n : {1, 2, 5}) {
    set_num_threads(n);
    EXPECT_EQ(one(x), expected);
  }
  set_num_threads(threads);
}

// A bit anywhere counts, at the ends of pieces too.
TEST(LedgerHash, EveryBitCounts) {
  const Tensor x = zeros({3 * 65536 + 5}, kByte);
  std::set<uint64_t> all = {one(x)};
  size_t number = 1;
  for (const int64_t i : {0, 1, 65535, 65536, 131071, 131072, 196607, 196608, 196612})
    for (const int bit : {1, 128}) {
      x[i] = bit;
      all.insert(one(x));
      x[i] = 0;
      EXPECT_EQ(all.size(), ++number) << i;
    }
}

}  // namespace
}  // namespace ramet::ledger
