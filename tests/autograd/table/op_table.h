// The operation table: one row (or more) for each public function, and the checks that every row
// goes through.
//
// A row says how to call the function, which inputs to give it, which dtypes LibTorch takes, and
// what it computes. That is a float64 reference written with plain loops and libm, independent of
// the library. Rows stand in op_table_<group>_test.cc and in the parts of a long group,
// op_table_<group>_<part>.cc. op_checks.cc has the checks, and op_table_suite.h makes tests of
// them. Factories and random draws have a shape of row of their own: op_table_factory_test.cc,
// op_table_random_test.cc.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tests/autograd/table/op_calls.h"

namespace ramet {
namespace op_table {

using Index = std::vector<int64_t>;

/// Row-major float64 values with sizes: what a reference takes and gives.
struct Plain {
  Index sizes;
  std::vector<double> v;
  int64_t rank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t size(int64_t d) const { return sizes[static_cast<size_t>(d < 0 ? d + rank() : d)]; }
  double at(const Index& i) const;
  /// The element that broadcasting puts at index i of a larger shape.
  double broadcast(const Index& i) const;
};
/// Number of elements.
int64_t count(const Index& sizes);
/// A Plain of these sizes with f(index) as elements.
Plain made(const Index& sizes, const std::function<double(const Index&)>& f);
/// The common shape under broadcasting.
Index common(const Index& a, const Index& b);
/// Replaces every line along dimension d by f(line). That has one value, with keepdim or without,
/// or any other length that is the same for all lines.
enum class Line { kDrop, kKeep, kResize };
Plain along(const Plain& x, int64_t d, Line way,
            const std::function<std::vector<double>(const std::vector<double>&)>& f);

enum class Kind : uint8_t { kReal, kIndex, kDistinct, kMask };
struct Input {
  Index sizes;
  double lo = -2, hi = 2;  ///< values; an index takes lo <= i < hi
  Kind kind = Kind::kReal;
};
using Sample = std::vector<Input>;
using Samples = std::vector<Sample>;
inline Input real(Index sizes, double lo = -2, double hi = 2) {
  return {std::move(sizes), lo, hi, Kind::kReal};
}
inline Input index(Index sizes, int64_t below) {
  return {std::move(sizes), 0, static_cast<double>(below), Kind::kIndex};
}
/// An index without repetitions in its last dimension; `below` is no multiple of 3.
inline Input distinct(Index sizes, int64_t below) {
  return {std::move(sizes), 0, static_cast<double>(below), Kind::kDistinct};
}
inline Input mask(Index sizes) { return {std::move(sizes), 0, 1, Kind::kMask}; }
/// Samples of one real input.
Samples shapes(const std::vector<Index>& sizes, double lo = -2, double hi = 2);

/// Sets of dtypes.
constexpr uint16_t set_of(ScalarType t) { return static_cast<uint16_t>(1u << static_cast<int>(t)); }
inline constexpr uint16_t kWide = set_of(kFloat) | set_of(kDouble),
                          kFloats = kWide | set_of(kHalf) | set_of(kBFloat16),
                          kSigned = set_of(kChar) | set_of(kShort) | set_of(kInt) | set_of(kLong),
                          kInts = kSigned | set_of(kByte), kTruth = set_of(kBool),
                          kBits = kInts | kTruth, kNumbers = kFloats | kInts,
                          kAll = kNumbers | kTruth;

/// With uint16 and uint32 where uint8 is: LibTorch has few of their operations, so rows do not name
/// them (tests/autograd/ops/unsigned_test.cc).
constexpr uint16_t with_unsigned(uint16_t dtypes) {
  return static_cast<uint16_t>(dtypes |
                               (dtypes & set_of(kByte) ? set_of(kUInt16) | set_of(kUInt32) : 0));
}

/// Rules for a result's dtype.
inline ScalarType same(ScalarType t) { return t; }
inline ScalarType floating(ScalarType t) { return is_floating(t) ? t : kFloat; }
inline ScalarType widened(ScalarType t) { return is_floating(t) ? t : kLong; }
inline ScalarType integer_at_least(ScalarType t) { return t == kBool ? kLong : t; }
inline ScalarType boolean(ScalarType) { return kBool; }
inline ScalarType boolean_or_byte(ScalarType t) { return t == kByte ? kByte : kBool; }
inline ScalarType positions(ScalarType) { return kLong; }

using P = const std::vector<Plain>&;
using D = const double*;
using Reference = std::function<Plain(P)>;
using Point = std::function<double(D)>;

/// The first input's elements in their order, with other sizes.
Reference as(Index (*sizes)(const Plain&));
/// Element i of the result is element from(i) of the first input.
Reference moved(Index (*sizes)(const Plain&), Index (*from)(const Index& i, const Plain& x));
/// For both, of the first input x: moved(SIZES(2, x.size(0)), FROM(i[1])).
#define SIZES(...) [](const Plain& x [[maybe_unused]]) { return Index{__VA_ARGS__}; }
#define FROM(...)                                                        \
  [](const Index& i [[maybe_unused]], const Plain& x [[maybe_unused]]) { \
    return Index{__VA_ARGS__};                                           \
  }

struct Row {
  std::string name;     ///< the function, and after a dot the word of this row
  uint16_t dtypes;      ///< of the real inputs, those LibTorch takes
  uint16_t gaps = 0;    ///< of them, those Ramet does not take: counted
  uint16_t beyond = 0;  ///< those Ramet takes and LibTorch does not
  uint16_t tried = kAll;
  Samples samples;  ///< the first is the one for all checks that need one alone
  Call call;
  Reference reference;
  Point point;  ///< pointwise rows: the value from one value of each input
  ScalarType (*result)(ScalarType) = same;
  bool differentiable = true;
  bool constant_gradient = false;  ///< 0 everywhere and without history: no gradgradcheck
  bool first_order = false;    ///< gradcheck alone; LibTorch does not differentiate twice either
  double slack = 1;            ///< multiplies the tolerances
  Sample large;                ///< more than 32 KB, to be cut among threads
  Samples slim_samples;        ///< further ones, for GPUs
  Index slices;                ///< the dimension of each input of `large` with slices that give the
  int64_t sliced_result = 0;   ///< result's slices along this one; -1: the whole input
  Sample whole;                ///< what is sliced, where that is not `large`
  uint32_t ordinary = 0;       ///< inputs (bits) that get no NaN and no infinities
  int64_t fewest = 1;          ///< least number of elements of a slice
  bool sums_products = false;  ///< linear in each input; long sums of products
  bool view = false;           ///< the result is the first input's memory
  Call in_place;               ///< changes and returns its first argument
  OutCall out;
  // The reasons why a row is not checked for what all other rows are checked for (check_complete).
  std::string no_special, no_empty, no_scalar, no_threads, no_slices, why_ordinary, why_fewest;
  std::string reads_host, gradient_asks, few_threads, no_million;  ///< reasons for GPUs, likewise
  std::string no_capture, refusing;
  bool host_computes = false;

  Row& gives(ScalarType (*rule)(ScalarType)) { return result = rule, *this; }
  Row& lacks(uint16_t missing) { return gaps = missing, *this; }
  Row& also(uint16_t more) { return beyond = more, *this; }
  Row& no_gradient() { return differentiable = false, *this; }
  Row& flat() { return constant_gradient = true, *this; }
  Row& once() { return first_order = true, *this; }
  /// No NaN and infinities.
  Row& tame(const char* reason) { return no_special = reason, *this; }
  /// NaN and infinities not in these inputs (bits).
  Row& partly_tame(uint32_t inputs, const char* reason) {
    return ordinary = inputs, why_ordinary = reason, *this;
  }
  /// No sample without elements.
  Row& not_empty(const char* reason) { return no_empty = reason, *this; }
  /// No 0-dim sample, though the function takes 0-dim tensors.
  Row& not_scalar(const char* reason) { return no_scalar = reason, *this; }
  /// One thread computes it, for any size.
  Row& alone(const char* reason) { return no_threads = reason, *this; }
  /// Slices of the inputs do not give slices of the result.
  Row& in_one(const char* reason) { return no_slices = reason, *this; }
  /// Slices have at least so many elements.
  Row& slices_from(int64_t least, const char* reason) {
    return fewest = least, why_fewest = reason, *this;
  }
  /// On a GPU the operation itself waits for a value.
  Row& waits(const char* reason) { return reads_host = reason, *this; }
  /// And the host computes the result, which is copied to the GPU.
  Row& by_host(const char* reason) { return host_computes = true, waits(reason); }
  /// On a GPU, a gradient that itself has a history waits for a value.
  Row& asks(const char* reason) { return gradient_asks = reason, *this; }
  /// A capture refuses it, on a CPU too.
  Row& uncapturable(const char* reason) { return no_capture = reason, *this; }
  /// In the name of this function, which the call makes before it.
  Row& refused_as(const char* function) { return refusing = function, *this; }
  /// On a GPU fewer than 1,024 threads work on 10^6 elements.
  Row& narrow(const char* reason) { return few_threads = reason, *this; }
  /// On a GPU also many elements in few columns, channels or lines, or in many short ones, where
  /// that is an ordinary use. They are fewer than 10^6 where emulated threads take long.
  Row& slim(Sample inputs) { return slim_samples.push_back(std::move(inputs)), *this; }
  /// On a GPU not with 10^6 elements.
  Row& small(const char* reason) { return no_million = reason, *this; }
  Row& products() { return sums_products = true, *this; }
  Row& moves_nothing() { return view = true, *this; }
  Row& within(double factor) { return slack = factor, *this; }
  /// The inputs (bits) of `batch` have a batch as dimension 0, as the result then has.
  Row& big(Sample inputs, uint32_t batch = 0);
  /// Slices of each input along its dimension (-1: the whole input) give slices of the result.
  Row& sliced(Index dimensions, int64_t result, Sample inputs = {}) {
    return slices = std::move(dimensions), sliced_result = result, whole = std::move(inputs), *this;
  }
  Row& changes(Call f) { return in_place = std::move(f), *this; }
  Row& writes(OutCall f) { return out = std::move(f), *this; }

  /// Tries only these dtypes: the reference does not hold for the others.
  Row& only(uint16_t set) { return tried = set, *this; }
  /// All inputs have the sizes of the first.
  Row& alike();

  uint16_t taken() const { return (dtypes | beyond) & ~gaps; }
  bool takes(ScalarType t) const { return taken() & tried & set_of(t); }
  bool refuses(ScalarType t) const { return !(taken() & set_of(t)); }
  /// float32, or the int64 (bool) of rows that take no floating-point type.
  ScalarType own_type() const { return takes(kFloat) ? kFloat : takes(kLong) ? kLong : kBool; }
};

class Table {
 public:
  /// A row with a reference of its own.
  Row& row(const char* name, uint16_t dtypes, Samples samples, Calls calls, Reference reference);
  /// A pointwise row of one input in [lo, hi].
  Row& unary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
             double (*point)(double));
  Row& unary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls, Point point);
  /// Pointwise rows of several inputs, which broadcast.
  Row& binary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
              double (*point)(double, double));
  Row& binary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls, Point point);
  Row& pointwise(const char* name, uint16_t dtypes, Sample sample, Calls calls, Point point);
  /// The row of this name.
  Row& operator[](const std::string& name);
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
};

/// What the checks start from: inputs as tensors, and the same values as float64.
struct Operands {
  std::vector<Plain> plain;
  std::vector<Tensor> tensors;
};
Operands operands(const Sample& sample, ScalarType dtype, uint64_t seed = 0);
std::string text_of(const Sample& sample);
bool has_real(const Row& row);
/// The row's own dtype, and two with other kernels.
std::vector<ScalarType> compared_types(const Row& row);
/// Those of a floating-point type become leaves that require gradients.
void require_grad(V tensors);
/// Fixed values of any shape: the gradient that a backward starts from.
Tensor seed_like(const Tensor& y);
/// The gradients of fresh leaves with the values of `tensors`; undefined where none flows.
std::vector<Tensor> gradients(const Call& call, V tensors);
/// What flows back a second time: d(gradients . fixed values)/d(inputs).
std::vector<Tensor> second_gradients(const Call& call, V tensors);
/// int64 and bool of indices and masks, else `real`.
ScalarType dtype_of(Kind kind, ScalarType real);
Tensor tensor_of(const Plain& p, ScalarType dtype);
/// The elements of a tensor, read through its strides.
Plain plain_of(const Tensor& t);
Plain expected(const Row& row, P in);
/// |got - want| <= tolerance of the dtype * slack * max(1, |want|); integers exactly, wrapped.
void expect_close(const Tensor& got, const Plain& want, double slack = 1);
/// The elements' bytes, row by row.
std::string bits(const Tensor& t);
/// The same values with other strides: 0 dimensions reversed in memory, 1 every second element, 2
/// at an offset.
Tensor relaid(const Tensor& t, int way);

}  // namespace op_table
}  // namespace ramet
