#include "kernels/index/sort.h"

#include <algorithm>
#include <numeric>

#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

struct Case {
  int64_t rows, n;
  int bits;
};

// Keys with many equal ones among them, in all bits that there are.
std::vector<uint64_t> keys_of(const Case& c) {
  raw::Values values(static_cast<uint64_t>(c.n * 65 + c.bits));
  std::vector<uint64_t> keys(static_cast<size_t>(c.rows * c.n));
  for (uint64_t& k : keys) {
    k = values.bits() >> (64 - c.bits);
    if (values.below(3) == 0) k &= ~uint64_t{0} << std::min(c.bits - 1, 60);
  }
  return keys;
}

TEST(Sort, IsStdStableSortOfEachRow) {
  for (const Case& c : std::vector<Case>{{1, 1, 64},
                                         {3, 2, 1},
                                         {9, 31, 12},
                                         {9, 32, 64},
                                         {9, 33, 12},
                                         {2, 1000, 9},
                                         {5, 333, 64},
                                         {1, 100000, 64},
                                         {1, 100000, 17},
                                         {0, 5, 8},
                                         {4, 0, 8}}) {
    SCOPED_TRACE(::testing::Message() << c.rows << " x " << c.n << ", " << c.bits << " bits");
    const std::vector<uint64_t> keys = keys_of(c);
    raw::for_each_variant([&](Variant) {
      for (int threads : {1, 3}) {
        set_num_threads(threads);
        std::vector<uint64_t> got = keys;
        std::vector<int64_t> order(keys.size(), -1);
        std::vector<char> workspace(static_cast<size_t>(sort_workspace(c.rows, c.n)));
        sort_pairs(raw::kCpuStream,
                   {got.data(), order.data(), c.rows, c.n, c.bits, workspace.data()});
        for (int64_t r = 0; r < c.rows; ++r) {
          const uint64_t* row = keys.data() + r * c.n;
          std::vector<int64_t> want(static_cast<size_t>(c.n));
          std::iota(want.begin(), want.end(), 0);
          std::stable_sort(want.begin(), want.end(),
                           [&](int64_t a, int64_t b) { return row[a] < row[b]; });
          for (int64_t i = 0; i < c.n; ++i) {
            const auto at = static_cast<size_t>(r * c.n + i);
            ASSERT_EQ(order[at], want[static_cast<size_t>(i)]) << "place " << i;
            ASSERT_EQ(got[at], row[want[static_cast<size_t>(i)]]);
          }
        }
      }
    });
    set_num_threads(2);
  }
}

}  // namespace
}  // namespace ramet::kernels
