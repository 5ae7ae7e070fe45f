// Sums, means, norms and extrema of rows on a GPU, and sums of columns, against float64. There are
// rows of warps, of blocks and in segments, with packs and without (kernels/reduce/reduce_rows.cu).
#include <cmath>
#include <cstring>

#include "autograd/autograd.h"
#include "autograd/ops/reduce/reduce.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

struct RowResults {
  std::vector<double> sum, mean, norm, most, least;
};
RowResults of_rows(const Tensor& x) {
  return {numbers(x.sum({1})), numbers(x.mean({1})), numbers(x.norm(2, {1})), numbers(x.amax({1})),
          numbers(x.amin({1}))};
}
// `slack`: of float64 sums in another order.
void expect_close(const std::vector<double>& got, const std::vector<double>& want, double unit,
                  double slack, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    const double least = unit == 0x1p-11 ? 0x1p-25 : 0;  // half a step between subnormal float16
    ASSERT_LE(std::abs(got[i] - want[i]), unit * std::abs(want[i]) + least + slack)
        << what << " " << i << ": " << got[i] << ", not " << want[i];
  }
}
void check_typed_rows(ScalarType t, int64_t rows, int64_t cols, bool special) {
  SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(rows) + " x " + std::to_string(cols));
  const Tensor drawn_rows = drawn({rows, cols}, kDouble, cols);
  if (special) {
    double* p = drawn_rows.data_ptr<double>();
    p[0] = NAN, p[2 * cols - 1] = NAN, p[3 * cols - 1] = INFINITY, p[3 * cols] = -INFINITY;
    p[5 * cols - 1] = INFINITY, p[4 * cols] = -INFINITY;
  }
  const Tensor x = drawn_rows.to(t), wide = x.to(kDouble);
  const RowResults got = of_rows(x.to(kGpu));
  const double unit = t == kFloat  ? 0x1p-24
                      : t == kHalf ? 0x1p-11
                                   : 0x1p-8,
               slack = 1e-14 * static_cast<double>(cols);
  expect_close(got.sum, numbers(wide.sum({1})), unit, slack, "sum");
  expect_close(got.mean, numbers(wide.mean({1})), unit, slack, "mean");
  expect_close(got.norm, numbers(wide.norm(2, {1})), unit, slack, "norm");
  expect_close(got.most, numbers(wide.amax({1})), 0, 0, "largest");
  expect_close(got.least, numbers(wide.amin({1})), 0, 0, "smallest");
  // One element further every row is read otherwise.
  const Tensor all = zeros({rows * cols + 1}, t);
  all.slice(0, 1).copy_(x.view({rows * cols}));
  const RowResults apart = of_rows(all.to(kGpu).slice(0, 1).view({rows, cols}));
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
  };
  EXPECT_TRUE(same(got.sum, apart.sum) && same(got.mean, apart.mean) &&
              same(got.norm, apart.norm) && same(got.most, apart.most) &&
              same(got.least, apart.least))
      << "where it lies makes a difference";
}

TEST(TypedSums, Rows) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    // Of warps: a pack or two for each lane, and four and a piece.
    for (int64_t cols : {259, 264}) check_typed_rows(t, 2115, cols, false);
    if (t != kHalf) check_typed_rows(t, 2112, 1032, true);
    // Of groups of less than a block, of blocks, and in segments.
    for (int64_t cols : {1, 31, 33, 1025, 4096, 8192, 8200, 8203})
      check_typed_rows(t, 3, cols, false);
    check_typed_rows(t, 5, 4096, true);
    check_typed_rows(t, 40, 2056, true);
    check_typed_rows(t, 2, 50257, false);
    check_typed_rows(t, 2, 65536, false);
    check_typed_rows(t, 1, 100008, false);
  }
}
// Sums and means of columns: whole packs of them and not, in one part and in many.
TEST(TypedSums, Columns) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16})
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 8}, {2, 9}, {70, 264}, {1000, 24}, {5000, 3}, {3000, 40}, {129, 1001}}) {
      SCOPED_TRACE(std::string(name_of(t)) + " " + std::to_string(rows) + " x " +
                   std::to_string(cols));
      const Tensor x = drawn({rows, cols}, t, cols), wide = x.to(kDouble), there = x.to(kGpu),
                   all = zeros({rows * cols + 1}, t);
      all.slice(0, 1).copy_(x.view({rows * cols}));
      const Tensor apart = all.to(kGpu).slice(0, 1).view({rows, cols});
      const double unit = t == kFloat  ? 0x1p-24
                          : t == kHalf ? 0x1p-11
                                       : 0x1p-8,
                   slack = 1e-14 * static_cast<double>(rows);
      const std::vector<double> sum = numbers(there.sum({0})), mean = numbers(there.mean({0}));
      expect_close(sum, numbers(wide.sum({0})), unit, slack, "sum");
      expect_close(mean, numbers(wide.mean({0})), unit, slack, "mean");
      EXPECT_EQ(numbers(apart.sum({0})), sum) << "where it lies makes a difference";
      EXPECT_EQ(numbers(apart.mean({0})), mean) << "where it lies makes a difference";
      expect_close(numbers(there.slice(1, 0, cols / 2 + 1).sum({0})),
                   numbers(wide.slice(1, 0, cols / 2 + 1).sum({0})), unit, slack, "a part");
    }
}
// The rows of a larger matrix, and rows that are all the same one.
TEST(TypedSums, Strides) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    const Tensor x = drawn({40, 8, 528}, t, 3), part = x.select(1, 2).slice(1, 8, 520),
                 wide = part.to(kDouble), there = x.to(kGpu).select(1, 2).slice(1, 8, 520);
    const double unit = t == kFloat ? 0x1p-24 : t == kHalf ? 0x1p-11 : 0x1p-8;
    expect_close(numbers(there.sum({1})), numbers(wide.sum({1})), unit, 1e-12, "a part");
    const Tensor one = drawn({1, 3000}, t, 4), same = one.to(kGpu).expand({2200, 3000});
    const std::vector<double> sums(2200, numbers(one.to(kDouble).sum())[0]);
    expect_close(numbers(same.sum({1})), sums, unit, 1e-11, "the same row");
  }
}
TEST(TypedSums, Nothing) {
  for (ScalarType t : {kFloat, kHalf, kBFloat16}) {
    EXPECT_EQ(zeros({0, 4096}, t).to(kGpu).sum({1}).numel(), 0);
    EXPECT_EQ(numbers(zeros({2112, 0}, t).to(kGpu).sum({1})), std::vector<double>(2112, 0));
    EXPECT_TRUE(std::isnan(numbers(zeros({2112, 0}, t).to(kGpu).mean({1}))[2111]));
    EXPECT_EQ(numbers(zeros({0, 24}, t).to(kGpu).sum({0})), std::vector<double>(24, 0));
    EXPECT_TRUE(std::isnan(numbers(zeros({0, 24}, t).to(kGpu).mean({0}))[23]));
  }
}

}  // namespace
}  // namespace ramet::kernels
