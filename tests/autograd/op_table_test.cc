// Runs every row of the operation table (op_cases.cc) through every check: OpTable/<Check>.<row>.
#include "tests/autograd/op_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "autograd/gradcheck.h"
#include "kernels/kernel.h"
#include "runtime/thread_pool.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace op_table {
namespace {

using kernels::Variant;

int64_t count(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

// A fixed sequence in [0, 1).
double unit(uint64_t i, uint64_t seed) {
  uint64_t h = (i + 1) * 0x9E3779B97F4A7C15u + (seed + 1) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 29)) * 0x94D049BB133111EBu;
  return static_cast<double>(h >> 11) * 0x1p-53;
}

// Values every dtype that is tried holds exactly: float32 ones, or integers in the range.
Plain plain_of(const Input& in, uint64_t seed, bool whole) {
  Plain p{in.sizes, {}};
  for (int64_t i = 0; i < count(in.sizes); ++i) {
    const double u = unit(static_cast<uint64_t>(i), seed);
    if (in.kind == Kind::kMask) p.v.push_back(u < 0.5);
    else if (in.kind == Kind::kIndex) p.v.push_back(std::floor(in.lo + u * (in.hi - in.lo)));
    else if (whole)
      p.v.push_back(std::ceil(in.lo) + std::floor(u * (std::floor(in.hi) - std::ceil(in.lo) + 1)));
    else p.v.push_back(static_cast<double>(static_cast<float>(in.lo + u * (in.hi - in.lo))));
  }
  return p;
}

void store(const Tensor& t, int64_t at, double v) {
  switch (t.scalar_type()) {
    case kDouble: static_cast<double*>(t.ptr())[at] = v; break;
    case kFloat: static_cast<float*>(t.ptr())[at] = static_cast<float>(v); break;
    case kLong: static_cast<int64_t*>(t.ptr())[at] = static_cast<int64_t>(v); break;
    case kInt: static_cast<int32_t*>(t.ptr())[at] = static_cast<int32_t>(v); break;
    case kByte: static_cast<uint8_t*>(t.ptr())[at] = static_cast<uint8_t>(v); break;
    case kBool: static_cast<bool*>(t.ptr())[at] = v != 0; break;
    default: FAIL() << "dtype";
  }
}

ScalarType dtype_of(Kind kind, ScalarType real) {
  return kind == Kind::kIndex ? kLong : kind == Kind::kMask ? kBool : real;
}

Tensor tensor_of(const Plain& p, ScalarType dtype) {
  Tensor t(TensorBase::empty(IntArrayRef(p.sizes), dtype, Device(kCPU, 0)));
  for (size_t i = 0; i < p.v.size(); ++i) store(t, static_cast<int64_t>(i), p.v[i]);
  return t;
}

struct Operands {
  std::vector<Plain> plain;
  std::vector<Tensor> tensors;
};
Operands operands(const std::vector<Input>& inputs, ScalarType dtype, bool whole = false) {
  Operands o;
  for (size_t i = 0; i < inputs.size(); ++i) {
    o.plain.push_back(plain_of(inputs[i], i, whole));
    o.tensors.push_back(tensor_of(o.plain.back(), dtype_of(inputs[i].kind, dtype)));
  }
  return o;
}

// `point` over the broadcast inputs.
Plain pointwise(const Row& row, const std::vector<Plain>& in) {
  size_t rank = 0;
  for (const Plain& p : in) rank = std::max(rank, p.sizes.size());
  Plain out{std::vector<int64_t>(rank, 1), {}};
  for (const Plain& p : in)
    for (size_t d = 0; d < p.sizes.size(); ++d)
      if (p.sizes[d] != 1) out.sizes[rank - p.sizes.size() + d] = p.sizes[d];
  std::vector<double> arguments(in.size());
  for (int64_t i = 0; i < count(out.sizes); ++i) {
    for (size_t k = 0; k < in.size(); ++k) {
      int64_t rest = i, at = 0, stride = 1;
      for (size_t d = rank; d-- > 0; rest /= out.sizes[d]) {
        const size_t missing = rank - in[k].sizes.size();
        if (d < missing) continue;
        const int64_t extent = in[k].sizes[d - missing];
        if (extent != 1) at += rest % out.sizes[d] * stride;
        stride *= extent;
      }
      arguments[k] = in[k].v[static_cast<size_t>(at)];
    }
    out.v.push_back(row.point(arguments.data()));
  }
  return out;
}
Plain expected(const Row& row, const std::vector<Plain>& in) {
  return row.point ? pointwise(row, in) : row.reference(in);
}

std::vector<double> read(const Tensor& t) { return values(t.to(kDouble)); }

void expect_close(const Tensor& got, const Plain& want, double tolerance) {
  ASSERT_EQ(got.sizes().vec(), want.sizes);
  const std::vector<double> g = read(got);
  for (size_t i = 0; i < g.size(); ++i) {
    const double w = want.v[i];
    if (std::isnan(w)) EXPECT_TRUE(std::isnan(g[i])) << "element " << i << ": got " << g[i];
    else if (std::isinf(w)) EXPECT_EQ(g[i], w) << "element " << i;
    else EXPECT_NEAR(g[i], w, tolerance * std::max(1.0, std::fabs(w))) << "element " << i;
    if (::testing::Test::HasFailure()) return;
  }
}

std::string bits(const Tensor& t) {
  const Tensor c = t.contiguous();
  return std::string(static_cast<const char*>(c.data_ptr()),
                     static_cast<size_t>(c.numel()) * c.element_size());
}

std::vector<Input> resized(const Row& row, const std::vector<int64_t>& sizes) {
  std::vector<Input> inputs = row.inputs;
  for (Input& in : inputs) in.sizes = sizes;
  return inputs;
}

ScalarType own_type(const Row& row) { return row.dtypes & kNoFloating ? kLong : kFloat; }

class OpTable : public ::testing::TestWithParam<size_t> {
 protected:
  const Row& row() const { return rows()[GetParam()]; }
  bool whole() const { return row().dtypes & kNoFloating; }
  void TearDown() override {
    set_num_threads(2);
    for (Variant v : {Variant::kBase, Variant::kV3, Variant::kV4})
      if (kernels::variant_supported(v)) kernels::set_variant(v);
  }
};

TEST_P(OpTable, Forward) {
  if (whole()) {
    const Operands o = operands(row().inputs, kLong, true);
    return expect_close(row().call(o.tensors), expected(row(), o.plain), 0);
  }
  for (ScalarType dtype : {kDouble, kFloat}) {
    SCOPED_TRACE(dtype == kDouble ? "float64" : "float32");
    const Operands o = operands(row().inputs, dtype);
    expect_close(row().call(o.tensors), expected(row(), o.plain),
                 dtype == kDouble ? row().tolerance64 : row().tolerance);
  }
}

TEST_P(OpTable, DtypesAcceptedAndRejected) {
  bool real = false;
  for (const Input& in : row().inputs) real |= in.kind == Kind::kReal;
  if (!real) return;
  for (ScalarType dtype : {kInt, kLong, kByte, kBool, kFloat, kDouble}) {
    const bool floating = dtype == kFloat || dtype == kDouble;
    SCOPED_TRACE(short_name_of(dtype));
    std::vector<Input> inputs = row().inputs;
    for (Input& in : inputs) {
      if (in.kind != Kind::kReal) continue;
      if (dtype == kBool) in.lo = in.hi = 1;
      else if (dtype == kByte) in.lo = std::max(in.lo, 1.0), in.hi = std::max(in.hi, 1.0);
    }
    const Operands o = operands(inputs, dtype, true);
    const bool accepted =
        floating ? !whole() : row().dtypes & (dtype == kBool ? kBools : kIntegers);
    if (!accepted) {
      EXPECT_THROW(row().call(o.tensors), Error);
      continue;
    }
    const Tensor out = row().call(o.tensors);
    if (floating || is_floating(out.scalar_type()))
      expect_close(out, expected(row(), o.plain), row().tolerance);
    else if (dtype == kInt || dtype == kLong) expect_close(out, expected(row(), o.plain), 0);
  }
}

TEST_P(OpTable, Derivatives) {
  if (!row().differentiable) {
    if (whole()) return;
    Operands o = operands(row().inputs, kDouble);
    for (Tensor& t : o.tensors)
      if (is_floating(t.scalar_type())) t.requires_grad_();
    EXPECT_FALSE(row().call(o.tensors).requires_grad());
    return;
  }
  Operands o = operands(row().inputs, kDouble);
  for (Tensor& t : o.tensors)
    if (is_floating(t.scalar_type())) t.requires_grad_();
  const auto f = [this](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{row().call(in)};
  };
  EXPECT_TRUE(autograd::gradcheck(f, o.tensors));
  if (!row().constant_gradient) { EXPECT_TRUE(autograd::gradgradcheck(f, o.tensors)); }
}

TEST_P(OpTable, EmptyZeroDimAndBroadcast) {
  if (!row().point) return;
  const ScalarType dtype = own_type(row());
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{}, {0}, {3, 0, 2}, {1, 1}}) {
    const Operands o = operands(resized(row(), sizes), dtype, whole());
    expect_close(row().call(o.tensors), expected(row(), o.plain), row().tolerance);
  }
  if (row().inputs.size() < 2) return;
  const std::vector<int64_t> shapes[] = {{2, 1, 3}, {4, 1}, {3}};
  std::vector<Input> inputs = row().inputs;
  for (size_t shift = 0; shift < inputs.size(); ++shift) {
    for (size_t i = 0; i < inputs.size(); ++i) inputs[i].sizes = shapes[(i + shift) % 3];
    const Operands o = operands(inputs, dtype, whole());
    expect_close(row().call(o.tensors), expected(row(), o.plain), row().tolerance);
  }
}

// The same values behind other strides: reversed dimensions in memory, every second element, an odd
// offset.
Tensor relaid(const Tensor& t, int way) {
  const std::vector<int64_t> sizes = t.sizes().vec();
  if (sizes.empty()) return t;
  std::vector<int64_t> room = sizes;
  if (way == 0) std::reverse(room.begin(), room.end());
  else if (way == 1) room.back() *= 2;
  else room.back() += 3;
  Tensor memory(TensorBase::empty(IntArrayRef(room), t.scalar_type(), t.device()));
  memory.zero_();
  Tensor view = memory;
  if (way == 0) {
    std::vector<int64_t> order;
    for (size_t d = sizes.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
    view = memory.permute(IntArrayRef(order));
  } else {
    view = way == 1 ? memory.slice(-1, 0, std::nullopt, 2) : memory.narrow(-1, 1, sizes.back());
  }
  view.copy_(t);
  return view;
}

TEST_P(OpTable, Strides) {
  const Operands o = operands(row().inputs, own_type(row()), whole());
  const Plain want = expected(row(), o.plain);
  const std::string dense = bits(row().call(o.tensors));
  for (int way = 0; way < 3; ++way) {
    SCOPED_TRACE(way);
    std::vector<Tensor> in;
    for (const Tensor& t : o.tensors) in.push_back(relaid(t, way));
    const Tensor out = row().call(in);
    expect_close(out, want, row().tolerance);
    if (row().point) { EXPECT_EQ(bits(out), dense); }
  }
}

TEST_P(OpTable, NanAndInfinity) {
  if (!row().point || !row().extreme || whole()) return;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {std::nan(""), inf, -inf, 0.0, -0.0, 1.5};
  const size_t n = row().inputs.size();
  size_t total = 1;
  for (size_t k = 0; k < n; ++k) total *= special.size();
  for (ScalarType dtype : {kFloat, kDouble}) {
    Operands o;
    size_t step = 1;
    for (size_t k = 0; k < n; ++k, step *= special.size()) {
      Plain p{{static_cast<int64_t>(total)}, {}};
      for (size_t i = 0; i < total; ++i) {
        const double v = special[i / step % special.size()];
        p.v.push_back(row().inputs[k].kind == Kind::kMask ? i % 2 : v);
      }
      o.plain.push_back(p);
      o.tensors.push_back(tensor_of(p, dtype_of(row().inputs[k].kind, dtype)));
    }
    expect_close(row().call(o.tensors), expected(row(), o.plain), row().tolerance);
  }
}

TEST_P(OpTable, ThreadsAndVariantsAgree) {
  const std::vector<Input> inputs = row().point           ? resized(row(), {97, 131})
                                    : row().large.empty() ? row().inputs
                                                          : row().large;
  const Operands o = operands(inputs, own_type(row()), whole());
  std::string first;
  for (Variant v : {Variant::kV3, Variant::kV4}) {
    if (!kernels::variant_supported(v)) continue;
    kernels::set_variant(v);
    for (int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      const std::string b = bits(row().call(o.tensors));
      if (first.empty()) first = b;
      else EXPECT_TRUE(b == first) << kernels::variant_name(v) << ", " << threads << " threads";
    }
  }
}

TEST_P(OpTable, TailsRunTheBodysCode) {
  if (!row().point) return;
  const Operands o = operands(resized(row(), {67}), own_type(row()), whole());
  const std::string all = bits(row().call(o.tensors));
  for (int64_t n = 1; n <= 67; ++n) {
    std::vector<Tensor> in;
    for (const Tensor& t : o.tensors) in.push_back(t.narrow(0, 0, n));
    const std::string part = bits(row().call(in));
    ASSERT_TRUE(all.compare(0, part.size(), part) == 0) << "length " << n;
  }
}

std::vector<size_t> every_row() {
  std::vector<size_t> n(rows().size());
  for (size_t i = 0; i < n.size(); ++i) n[i] = i;
  return n;
}
INSTANTIATE_TEST_SUITE_P(Rows, OpTable, ::testing::ValuesIn(every_row()), [](const auto& info) {
  std::string name = rows()[info.param].name;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
});

}  // namespace
}  // namespace op_table
}  // namespace ramet
