// Reductions against float64 references over index tuples, in every traversal, dtype, variant and
// thread count.
#include "kernels/reduce/reduce.h"

#include <limits>
#include <numeric>

#include "kernels/reduce/reduce_plan.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using Op = ReduceOp;
constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

// A strided view of a buffer and which of its dimensions go.
struct View {
  std::vector<int64_t> sizes, strides;
  std::vector<bool> reduced;
  int64_t offset = 0;

  static View dense(std::vector<int64_t> sizes, std::vector<bool> reduced) {
    View v{sizes, std::vector<int64_t>(sizes.size()), reduced};
    int64_t step = 1;
    for (size_t d = sizes.size(); d-- > 0; step *= sizes[d]) v.strides[d] = step;
    return v;
  }
  int64_t extent() const {  // elements the buffer needs
    int64_t last = offset;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (sizes[d] == 0) return 1;
      if (strides[d] > 0) last += (sizes[d] - 1) * strides[d];
    }
    return last + 1;
  }
  // The sequence of every output, in row-major order of the reduced dimensions.
  std::vector<std::vector<double>> sequences(const Buffer& b) const {
    int64_t outputs = 1;
    for (size_t d = 0; d < sizes.size(); ++d) outputs *= reduced[d] ? 1 : sizes[d];
    std::vector<std::vector<double>> all(static_cast<size_t>(outputs));
    const int64_t n = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = i, at = offset, output = 0, scale = 1;
      for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) {
        at += rest % sizes[d] * strides[d];
        if (!reduced[d]) output += rest % sizes[d] * scale, scale *= sizes[d];
      }
      all[static_cast<size_t>(output)].push_back(b[at]);
    }
    return all;
  }
};

double twin(Op op, const std::vector<double>& x, double p, int64_t* index = nullptr) {
  const double n = static_cast<double>(x.size());
  long double sum = 0, product = 1, powers = 0;
  double best = 0;
  int64_t where = -1;
  for (size_t i = 0; i < x.size(); ++i) {
    sum += x[i], product *= x[i];
    const double a = std::fabs(x[i]);
    powers += op == Op::kNorm0   ? x[i] != 0
              : op == Op::kNorm1 ? a
              : op == Op::kNormP ? std::pow(a, p)
                                 : x[i] * x[i];
    const double v = op == Op::kNormInf || op == Op::kNormNegInf ? a : x[i];
    const bool low = op == Op::kMin || op == Op::kMinIndex || op == Op::kNormNegInf;
    if (where < 0 || (!std::isnan(best) && (std::isnan(v) || (low ? v < best : v > best))))
      best = v, where = static_cast<int64_t>(i);
  }
  if (index) *index = where;
  switch (op) {
    case Op::kSum: return static_cast<double>(sum);
    case Op::kMean: return static_cast<double>(sum / n);
    case Op::kProd: return static_cast<double>(product);
    case Op::kSumSquares:
    case Op::kNorm0:
    case Op::kNorm1: return static_cast<double>(powers);
    case Op::kNorm2: return static_cast<double>(std::sqrt(powers));
    case Op::kNormP: return static_cast<double>(std::pow(powers, 1 / static_cast<long double>(p)));
    case Op::kAny: return std::any_of(x.begin(), x.end(), [](double v) { return v != 0; });
    case Op::kAll: return std::all_of(x.begin(), x.end(), [](double v) { return v != 0; });
    case Op::kVar:
    case Op::kStd: {
      long double m2 = 0;
      for (double v : x) m2 += (v - sum / n) * (v - sum / n);
      const double var = static_cast<double>(m2 / std::max(0.0, n - p));
      return op == Op::kStd ? std::sqrt(var) : var;
    }
    default: return best;
  }
}

struct Result {
  Buffer out, extra;
};
Result run(Op op, const View& v, const Buffer& in, ScalarType out_dtype, double p = 0) {
  ReduceArgs a{};
  bool reduced[64];
  for (size_t d = 0; d < v.sizes.size(); ++d) reduced[d] = v.reduced[d];
  a.op = op, a.parameter = p, a.in_dtype = in.dtype, a.out_dtype = out_dtype;
  EXPECT_TRUE(
      plan_reduce(a, static_cast<int>(v.sizes.size()), v.sizes.data(), v.strides.data(), reduced));
  const bool index = op == Op::kMaxIndex || op == Op::kMinIndex;
  Result r{Buffer(a.outputs, out_dtype), Buffer(a.outputs, index ? kLong : out_dtype)};
  Buffer workspace(a.workspace_bytes, kByte);
  a.in = static_cast<const char*>(in.data()) + v.offset * static_cast<int64_t>(item_size(in.dtype));
  a.out = r.out.data(), a.workspace = workspace.data();
  a.extra = index || op == Op::kVar || op == Op::kStd ? r.extra.data() : nullptr;
  reduce(raw::kCpuStream, a);
  EXPECT_TRUE(workspace.guards_intact() && r.extra.guards_intact());
  return r;
}

// Checks one operation on one view under every variant and thread count.
void check(Op op, const View& v, const Buffer& in, ScalarType out_dtype, double tolerance,
           double p = 0) {
  SCOPED_TRACE("op " + std::to_string(static_cast<int>(op)) + " dtype " + name_of(in.dtype));
  const auto sequences = v.sequences(in);
  Buffer out(static_cast<int64_t>(sequences.size()), out_dtype), extra = out;
  raw::expect_same_bits(out, [&](Buffer& o) {
    Result r = run(op, v, in, out_dtype, p);
    o = r.out, extra = r.extra;
  });
  for (size_t i = 0; i < sequences.size(); ++i) {
    int64_t index = 0;
    const double want = twin(op, sequences[i], p, &index), got = out[static_cast<int64_t>(i)];
    double scale = std::fabs(want);  // a sum is right relative to the size of its terms
    if (op == Op::kSum || op == Op::kMean)
      scale = twin(Op::kNorm1, sequences[i], 0) /
              (op == Op::kMean ? static_cast<double>(sequences[i].size()) : 1);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << "output " << i << ": got " << got;
    } else if (std::isinf(want) || tolerance == 0) {
      EXPECT_EQ(got, want) << "output " << i;
    } else {
      EXPECT_NEAR(got, want, tolerance * scale + 1e-300) << "output " << i;
    }
    const bool places = op == Op::kMaxIndex || op == Op::kMinIndex,
               moments = op == Op::kVar || op == Op::kStd;
    const double other = places || moments ? extra[static_cast<int64_t>(i)] : 0;
    if (places) { EXPECT_EQ(other, static_cast<double>(index)) << "output " << i; }
    if (moments) {
      EXPECT_NEAR(other, twin(Op::kMean, sequences[i], 0),
                  5 * tolerance * std::max(1.0, std::fabs(other)))
          << "output " << i;
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Views that take each traversal: whole tensors, rows, columns, both ends of a 4-d tensor, and
// gaps. Also reversed, transposed and repeated dimensions, and sequences long enough to be cut into
// segments.
std::vector<View> views() {
  View gaps{{5, 7, 9}, {200, 20, 2}, {true, false, true}, 3};
  View reversed{{6, 40}, {40, -1}, {false, true}, 39};
  View transposed{{33, 21}, {1, 33}, {true, false}};
  View repeated{{4, 6, 10}, {10, 0, 1}, {false, true, true}};
  View wide_columns{{37, 600}, {601, 1}, {true, false}};
  return {View::dense({}, {}),
          View::dense({1}, {true}),
          View::dense({17}, {true}),
          View::dense({3, 67}, {false, true}),
          View::dense({128, 10}, {false, true}),
          View::dense({64, 10}, {true, false}),
          View::dense({70, 3}, {true, false}),
          View::dense({2, 5, 11, 13}, {true, false, true, true}),
          View::dense({2, 5, 11, 13}, {true, false, true, false}),
          View::dense({3, 4, 5, 6, 2}, {false, true, false, true, false}),
          View::dense({140000}, {true}),
          View::dense({3, 70001}, {false, true}),
          View::dense({3000, 65}, {true, false}),
          gaps,
          reversed,
          transposed,
          repeated,
          wide_columns};
}

TEST(Reduce, FloatingPoint) {
  for (const View& v : views())
    for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
      if (t != kFloat && t != kDouble && v.extent() > 5000) continue;
      raw::Values values(7);
      Buffer in(v.extent(), t);
      in.fill(values);
      const double eps = t == kDouble ? 1e-14 : t == kFloat ? 5e-7 : t == kHalf ? 1e-3 : 8e-3;
      for (Op op : {Op::kSum, Op::kMean, Op::kSumSquares, Op::kNorm0, Op::kNorm1, Op::kNorm2})
        check(op, v, in, t, eps);
      for (Op op :
           {Op::kNormInf, Op::kNormNegInf, Op::kMax, Op::kMin, Op::kMaxIndex, Op::kMinIndex})
        check(op, v, in, t, 0);
      for (double p : {3.0, 0.5}) check(Op::kNormP, v, in, t, 4 * eps, p);
      for (double correction : {0.0, 1.0}) {
        check(Op::kVar, v, in, t, 4 * eps, correction);
        check(Op::kStd, v, in, t, 4 * eps, correction);
      }
      for (int64_t i = 0; i < in.size; ++i) in.set(i, 1 + 0.001 * in[i]);
      if (v.extent() <= 1000) check(Op::kProd, v, in, t, t == kFloat ? 5e-6 : 20 * eps);
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Reduce, Integers) {
  for (const View& v : views())
    for (ScalarType t : {kBool, kByte, kChar, kShort, kInt, kLong}) {
      if (t != kLong && t != kBool && v.extent() > 5000) continue;
      raw::Values values(11);
      Buffer in(v.extent(), t);
      in.fill(values);
      if (t == kBool)
        for (int64_t i = 0; i < in.size; ++i) in.set(i, values.below(40) != 0);
      check(Op::kSum, v, in, kLong, 0);
      for (Op op : {Op::kMax, Op::kMin, Op::kMaxIndex, Op::kMinIndex}) check(op, v, in, t, 0);
      for (Op op : {Op::kAny, Op::kAll}) check(op, v, in, kBool, 0);
      for (int64_t i = 0; i < in.size; ++i) in.set(i, i % 3 == 0 ? -1 : 1);
      if (t != kByte && t != kBool) check(Op::kProd, v, in, kLong, 0);
      if (::testing::Test::HasFailure()) return;
    }
}

TEST(Reduce, IntegersWrap) {
  Buffer in(3, kLong);
  for (int i = 0; i < 3; ++i) in.as<int64_t>()[i] = INT64_MAX;
  Result r = run(Op::kSum, View::dense({3}, {true}), in, kLong);
  EXPECT_EQ(r.out.as<int64_t>()[0], INT64_MAX - 2);
  r = run(Op::kMax, View::dense({3}, {true}), in, kLong);
  EXPECT_EQ(r.out.as<int64_t>()[0], INT64_MAX);
}

TEST(Reduce, NaNAndInfinity) {
  for (ScalarType t : {kFloat, kDouble})
    for (int64_t n : {1, 5, 16, 63, 64, 200, 5000})
      for (double special : {kNaN, kInf, -kInf})
        for (int64_t place : {int64_t{0}, n / 2, n - 1}) {
          raw::Values values(3);
          for (bool columns : {false, true}) {
            const View v =
                columns ? View::dense({n, 19}, {true, false}) : View::dense({2, n}, {false, true});
            Buffer in(v.extent(), t);
            in.fill(values);
            in.set(columns ? place * 19 + 4 : place, special);
            for (Op op : {Op::kMax, Op::kMin, Op::kMaxIndex, Op::kMinIndex, Op::kNormInf, Op::kAny,
                          Op::kAll})
              check(op, v, in, op == Op::kAny || op == Op::kAll ? kBool : t, 0);
            for (Op op : {Op::kSum, Op::kNorm2}) check(op, v, in, t, 1e-6);
          }
          if (::testing::Test::HasFailure()) return;
        }
}

TEST(Reduce, FirstOfEqualsWins) {
  for (int64_t n : {10, 64, 3000}) {
    Buffer in(n, kFloat);
    in.fill(0);
    in.set(n / 3, 1), in.set(n / 2, 1), in.set(n - 1, 1);
    EXPECT_EQ(run(Op::kMaxIndex, View::dense({n}, {true}), in, kFloat).extra[0],
              static_cast<double>(n / 3));
    EXPECT_EQ(run(Op::kMinIndex, View::dense({n}, {true}), in, kFloat).extra[0], 0);
    in.set(n - 2, kNaN), in.set(n - 3, kNaN);
    EXPECT_EQ(run(Op::kMaxIndex, View::dense({n}, {true}), in, kFloat).extra[0],
              static_cast<double>(n - 3));
    EXPECT_EQ(run(Op::kMinIndex, View::dense({n}, {true}), in, kFloat).extra[0],
              static_cast<double>(n - 3));
    in.fill(-kInf);
    EXPECT_EQ(run(Op::kMaxIndex, View::dense({n}, {true}), in, kFloat).extra[0], 0);
  }
}

TEST(Reduce, OfNothing) {
  Buffer in(1, kFloat);
  for (const View& v : {View::dense({3, 0}, {false, true}), View::dense({0, 3}, {true, false}),
                        View::dense({0}, {true})}) {
    const auto first = [&](Op op, ScalarType out, double p = 0) {
      return run(op, v, in, out, p).out[0];
    };
    EXPECT_EQ(first(Op::kSum, kFloat), 0);
    EXPECT_EQ(first(Op::kProd, kFloat), 1);
    EXPECT_TRUE(std::isnan(first(Op::kMean, kFloat)));
    EXPECT_TRUE(std::isnan(first(Op::kVar, kFloat, 1)));
    EXPECT_EQ(first(Op::kNorm2, kFloat), 0);
    EXPECT_EQ(first(Op::kAny, kBool), 0);
    EXPECT_EQ(first(Op::kAll, kBool), 1);
  }
  EXPECT_EQ(run(Op::kSum, View::dense({0, 3}, {false, true}), in, kFloat).out.size, 0);
  EXPECT_EQ(run(Op::kSum, View::dense({4, 0, 3}, {false, false, true}), in, kFloat).out.size, 0);
}

// The error of a float sum does not grow with its length.
TEST(Reduce, LongFloatSums) {
  const int64_t n = 1 << 23;
  Buffer in(n, kFloat);
  double want = 0;
  raw::Values values(5);
  for (int64_t i = 0; i < n; ++i)
    in.as<float>()[i] = static_cast<float>(values.unit()), want += in.as<float>()[i];
  for (const View& v : {View::dense({n}, {true}), View::dense({n / 2, 2}, {true, false}),
                        View::dense({2, n / 2}, {false, true})}) {
    Result r = run(Op::kSum, v, in, kFloat);
    double got = 0;
    for (int64_t i = 0; i < r.out.size; ++i) got += r.out[i];
    EXPECT_NEAR(got / want, 1, 2e-7);
  }
}

// Large mean, small deviations: the textbook formula would lose everything.
TEST(Reduce, VarianceOfCloseNumbers) {
  for (bool columns : {false, true}) {
    const View v =
        columns ? View::dense({9000, 4}, {true, false}) : View::dense({4, 9000}, {false, true});
    Buffer in(v.extent(), kFloat);
    raw::Values values(9);
    for (int64_t i = 0; i < in.size; ++i) in.set(i, 4096 + values.below(4));
    check(Op::kVar, v, in, kFloat, 3e-5, 1);
  }
}

TEST(Reduce, CorrectionAboveCount) {
  Buffer in(2, kFloat);
  in.set(0, 1), in.set(1, 2);
  EXPECT_EQ(run(Op::kVar, View::dense({2}, {true}), in, kFloat, 2).out[0], kInf);
  EXPECT_EQ(run(Op::kVar, View::dense({2}, {true}), in, kFloat, 5).out[0], kInf);
  EXPECT_TRUE(std::isnan(run(Op::kVar, View::dense({1, 2}, {true, false}), in, kFloat, 1).out[0]));
}

// Every length from 1 to 67, at every offset of a register: the same sequence gives the same bits
// wherever it lies.
TEST(Reduce, PositionDoesNotMatter) {
  raw::for_each_variant([&](Variant) {
    for (ScalarType t : {kFloat, kDouble})
      for (int64_t n = 1; n <= 67; ++n) {
        raw::Values values(static_cast<uint64_t>(n));
        Buffer plain(n, t);
        plain.fill(values);
        const Result want = run(Op::kSum, View::dense({n}, {true}), plain, t);
        for (int64_t shift = 0; shift < 16; ++shift) {
          Buffer moved(n + shift, t);
          moved.fill(9);
          for (int64_t i = 0; i < n; ++i) moved.set(i + shift, plain[i]);
          View v = View::dense({n}, {true});
          v.offset = shift;
          EXPECT_TRUE(run(Op::kSum, v, moved, t).out.same_bits(want.out));
        }
        // As one column among others, wherever it stands.
        for (int64_t columns : {17, 70}) {
          Buffer grid(n * columns, t);
          for (int64_t c = 0; c < columns; ++c)
            for (int64_t i = 0; i < n; ++i) grid.set(i * columns + c, plain[i]);
          const Result sums = run(Op::kSum, View::dense({n, columns}, {true, false}), grid, t);
          for (int64_t c = 1; c < columns; ++c) EXPECT_EQ(sums.out[c], sums.out[0]);
        }
      }
  });
}

// Work that one task would do alone is cut: few long sequences, along rows and along columns. The
// cuts follow from the shape, so they are part of the bits.
TEST(Reduce, LongSequencesAreCut) {
  const auto segments = [](std::vector<int64_t> sizes, bool first, bool last) {
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * sizes[d + 1];
    const bool reduced[] = {first, last};
    ReduceArgs a{};
    a.op = Op::kSum;
    EXPECT_TRUE(
        plan_reduce(a, static_cast<int>(sizes.size()), sizes.data(), strides.data(), reduced));
    EXPECT_EQ(a.workspace_bytes, a.segments > 1 ? a.segments * a.outputs * kReducePartial : 0);
    return a.segments;
  };
  EXPECT_EQ(segments({1 << 20}, true, false), 16) << "65536 elements a task";
  EXPECT_EQ(segments({(1 << 20) + 1}, true, false), 17);
  EXPECT_EQ(segments({65536}, true, false), 1);
  EXPECT_EQ(segments({15, 131072}, false, true), 2) << "rows";
  EXPECT_EQ(segments({16, 131072}, false, true), 1) << "enough tasks as they are";
  EXPECT_EQ(segments({131072, 15}, true, false), 30)
      << "columns: 65536 / 15, up to whole groups of 32";
  EXPECT_EQ(segments({1 << 24, 2}, true, false), 64) << "never more than 64 of a column";
  EXPECT_EQ(segments({1 << 20, 0}, true, false), 1) << "no result, no task";
  EXPECT_EQ(segments({0}, true, false), 1);
}

TEST(Reduce, TooManyDimensionsAreRefused) {
  ReduceArgs a{};
  a.op = Op::kSum;
  std::vector<int64_t> sizes(18, 2), strides(18);
  for (size_t d = 0; d < 18; ++d) strides[d] = int64_t{1} << (d * 7 % 18);
  bool reduced[18];
  for (size_t d = 0; d < 18; ++d) reduced[d] = d % 2;
  EXPECT_FALSE(plan_reduce(a, 18, sizes.data(), strides.data(), reduced));
}

}  // namespace
}  // namespace ramet::kernels
