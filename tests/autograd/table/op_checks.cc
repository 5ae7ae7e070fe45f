#include "tests/autograd/table/op_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "autograd/autograd.h"
#include "autograd/gradcheck.h"
#include "kernels/kernel.h"
#include "runtime/base/parallel_regions_internal.h"
#include "runtime/base/thread_pool.h"
#include "tests/share.h"
#include "tests/variants.h"

namespace ramet {
namespace op_table {
namespace {

using kernels::Variant;

constexpr ScalarType kEvery[] = {kBool, kByte, kChar,     kShort, kInt,
                                 kLong, kHalf, kBFloat16, kFloat, kDouble};

std::string gradient_bits(const Call& call, V tensors) {
  std::string out;
  for (const Tensor& g : gradients(call, tensors)) out += g.defined() ? bits(g) : "none";
  return out;
}
// Where a call costs many times as much.
bool few() { return testing::one_repeat_in() > 1; }

// Bool, integer, floating point: an in-place form may not go up.
int category(ScalarType t) { return t == kBool ? 0 : is_floating(t) ? 2 : 1; }

// Expects exactly one of `has` and a reason: both or neither is wrong.
void expect_or_reason(const Row& row, bool has, const std::string& reason, const char* what) {
  if (has) {
    EXPECT_EQ(reason, "") << what << " is there: no reason is needed";
  } else {
    EXPECT_NE(reason, "") << "the row has no " << what << " and does not say why";
  }
  if (!has) std::cout << "exception: " << row.name << ": no " << what << ": " << reason << "\n";
}
bool has_sample(const Row& row, bool (*of)(const Index&)) {
  for (const Sample& sample : row.samples)
    for (const Input& in : sample)
      if (of(in.sizes)) return true;
  return false;
}
// Whether the first sample's first input may be 0-dim, alone or with all others.
bool takes_scalars(const Row& row) {
  Sample first = row.samples.front(), every = first;
  first[0].sizes = {};
  for (Input& in : every) in.sizes = {};
  for (const Sample& sample : {first, every}) {
    try {
      row.call(operands(sample, row.own_type()).tensors);
      return true;
    } catch (const Error&) {}
  }
  return false;
}

}  // namespace

std::vector<Tensor> moved(V tensors, Device device) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(t.to(device));
  return out;
}
std::vector<ScalarType> types_on(Device device, const Row& row, std::vector<ScalarType> types) {
  return device == kHost ? types : std::vector<ScalarType>{row.own_type()};
}

std::vector<ScalarType> every_type(const Row& row) {
  std::vector<ScalarType> types;
  for (ScalarType t : kEvery)
    if (row.takes(t) && (has_real(row) || t == row.own_type())) types.push_back(t);
  return types;
}

void check_complete(const Row& row) {
  expect_or_reason(row, has_sample(row, [](const Index& sizes) { return count(sizes) == 0; }),
                   row.no_empty, "empty sample");
  const bool scalar = has_sample(row, [](const Index& sizes) { return sizes.empty(); });
  if (scalar || takes_scalars(row)) expect_or_reason(row, scalar, row.no_scalar, "0-dim sample");
  if (row.takes(kFloat) && has_real(row))
    expect_or_reason(row, row.no_special.empty(), row.no_special, "NaN and infinities");
  if (row.ordinary != 0)
    expect_or_reason(row, false, row.why_ordinary, "NaN and infinities in all inputs");
  if (row.view) {
    const Operands o = operands(row.samples.front(), row.own_type());
    EXPECT_EQ(row.call(o.tensors).storage_impl(), o.tensors[0].storage_impl()) << "not a view";
    return;
  }
  ASSERT_FALSE(row.large.empty()) << "the row has no large sample";
  const Operands o = operands(row.large, row.own_type());
  set_num_threads(7);
  const uint64_t before = detail::shared_regions();
  const Tensor y = row.call(o.tensors);
  expect_or_reason(row, detail::shared_regions() > before, row.no_threads, "work of many threads");
  if (row.fewest > 1) expect_or_reason(row, false, row.why_fewest, "slices of one element");
  // Of one number there is no slice.
  if (y.dim() > 0) expect_or_reason(row, !row.slices.empty(), row.no_slices, "slices");
}

void check_forward(const Row& row) {
  for (ScalarType dtype : every_type(row)) {
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const Operands o = operands(sample, dtype);
      const Tensor y = row.call(o.tensors);
      ASSERT_EQ(y.scalar_type(), row.result(dtype));
      ASSERT_NO_FATAL_FAILURE(expect_close(y, expected(row, o.plain), row.slack));
    }
  }
}

void check_refusals(const Row& row, Device device) {
  if (!has_real(row)) return;
  for (ScalarType dtype : kEvery) {
    if (!row.refuses(dtype)) continue;
    SCOPED_TRACE(short_name_of(dtype));
    const std::vector<Tensor> in = moved(operands(row.samples.front(), dtype).tensors, device);
    EXPECT_THROW(row.call(in), Error);
    if (row.in_place) { EXPECT_THROW(row.in_place(in), Error); }
    if (!row.out) continue;
    Tensor out = tensor_of({{0}, {}}, row.result(dtype)).to(device);
    EXPECT_THROW(row.out(out, in), Error);
  }
}

void check_derivatives(const Row& row) {
  if (!row.takes(kDouble)) return;
  const auto f = [&row](V in) { return std::vector<Tensor>{row.call(in)}; };
  for (const Sample& sample : row.samples) {
    SCOPED_TRACE(text_of(sample));
    const Operands o = operands(sample, kDouble);
    require_grad(o.tensors);
    if (!row.differentiable) {
      EXPECT_FALSE(row.call(o.tensors).requires_grad());
      continue;
    }
    EXPECT_TRUE(row.call(o.tensors).requires_grad());
    if (few()) {
      // Central differences call a function twice for each number. A sanitizer sees in one call
      // what it sees in all of them, and their values are the ordinary run's question.
      const bool once = row.constant_gradient || row.first_order;
      const std::vector<Tensor> in = operands(sample, kDouble).tensors;
      const auto found = [&] {
        if (once) return gradient_bits(row.call, in);
        std::string all;
        for (const Tensor& g : second_gradients(row.call, in))
          all += g.defined() ? bits(g) : "none";
        return all;
      };
      const std::string first = found();
      EXPECT_TRUE(found() == first) << "two backwards differ";
      continue;
    }
    EXPECT_NO_THROW(autograd::gradcheck(f, o.tensors));
    if (row.constant_gradient || row.first_order) continue;
    EXPECT_NO_THROW(autograd::gradgradcheck(f, o.tensors));
  }
}

void check_narrow_gradients(const Row& row) {
  if (!row.differentiable || !row.takes(kDouble)) return;
  for (ScalarType dtype : {kFloat, kHalf, kBFloat16}) {
    if (!row.takes(dtype)) continue;
    SCOPED_TRACE(short_name_of(dtype));
    const Operands o = operands(row.samples.front(), dtype);
    std::vector<Tensor> wide;
    for (const Tensor& t : o.tensors)
      wide.push_back(is_floating(t.scalar_type()) ? t.to(kDouble) : t);
    const std::vector<Tensor> got = gradients(row.call, o.tensors),
                              want = gradients(row.call, wide);
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_EQ(got[k].defined(), want[k].defined()) << "input " << k;
      if (!got[k].defined()) continue;
      EXPECT_EQ(got[k].scalar_type(), dtype);
      // Saved results, seeds and intermediate gradients are rounded too.
      expect_close(got[k], plain_of(want[k]), 8 * row.slack);
    }
  }
}

void check_strides(const Row& row, Device device) {
  for (ScalarType dtype : types_on(device, row, {row.own_type(), kBFloat16, kShort})) {
    if (!row.takes(dtype)) continue;
    for (const Sample& sample : row.samples) {
      const Operands o = operands(sample, dtype);
      const Plain want = expected(row, o.plain);
      const std::vector<Tensor> here = moved(o.tensors, device);
      const std::string dense = bits(row.call(here));
      for (int way = 0; way < 3; ++way) {
        SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample) + " way " +
                     std::to_string(way));
        std::vector<Tensor> in;
        for (const Tensor& t : here) in.push_back(relaid(t, way));
        const Tensor y = row.call(in);
        ASSERT_NO_FATAL_FAILURE(expect_close(y, want, row.slack));
        if (row.point) { EXPECT_EQ(bits(y), dense); }
      }
    }
  }
}

void check_special_values(const Row& row, Device device) {
  if (!row.no_special.empty() || !row.takes(kFloat) || !has_real(row)) return;
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {std::nan(""), inf, -inf, 0.0, -0.0, 1.5};
  const Sample& sample = row.samples.front();
  for (ScalarType dtype : {kDouble, kFloat, kHalf, kBFloat16}) {
    // A GPU's kernels of float64 are those of float32 with another libm, and emulated they take
    // long.
    if (!row.takes(dtype) || (dtype == kDouble && device != kHost)) continue;
    SCOPED_TRACE(short_name_of(dtype));
    const auto check = [&](std::vector<Plain> in) {
      std::vector<Tensor> tensors;
      for (size_t k = 0; k < in.size(); ++k)
        tensors.push_back(tensor_of(in[k], dtype_of(sample[k].kind, dtype)));
      expect_close(row.call(moved(tensors, device)), expected(row, in), row.slack);
    };
    if (row.point) {  // every combination
      std::vector<Plain> in(sample.size());
      int64_t total = 1, step = 1;
      for (size_t k = 0; k < in.size(); ++k) total *= static_cast<int64_t>(special.size());
      for (size_t k = 0; k < in.size(); ++k, step *= static_cast<int64_t>(special.size()))
        in[k] = made({total}, [&](const Index& i) {
          const int64_t choice = i[0] / step % static_cast<int64_t>(special.size());
          return sample[k].kind == Kind::kMask ? double(choice % 2)
                                               : special[static_cast<size_t>(choice)];
        });
      check(in);
      continue;
    }
    for (size_t s = 0; s + 1 < special.size(); ++s) {  // one of them among ordinary values
      SCOPED_TRACE(special[s]);
      std::vector<Plain> in = operands(sample, dtype).plain;
      for (size_t k = 0; k < in.size(); ++k)
        for (size_t i = (s + k) % 3;
             i < in[k].v.size() && sample[k].kind == Kind::kReal && !(row.ordinary >> k & 1);
             i += 4)
          in[k].v[i] = special[s];
      check(in);
    }
  }
}

void check_threads_and_variants(const Row& row) {
  for (ScalarType dtype : compared_types(row)) {
    SCOPED_TRACE(short_name_of(dtype));
    const Operands o = operands(row.large.empty() ? row.samples.front() : row.large, dtype);
    const Operands small = operands(row.samples.front(), dtype);
    std::string vectors;  // what v3 and v4 share
    for (Variant v : testing::variants_here()) {
      SCOPED_TRACE(kernels::variant_name(v));
      kernels::set_variant(v);
      expect_close(row.call(small.tensors), expected(row, small.plain), row.slack);
      std::string first;
      // Where a step costs many times as much, one thread alone is a matter of one variant.
      const std::vector<int> counts = !few()                ? std::vector<int>{1, 2, 3, 7}
                                      : v == Variant::kBase ? std::vector<int>{1, 3}
                                                            : std::vector<int>{3};
      for (int threads : counts) {
        set_num_threads(threads);
        std::string b = bits(row.call(o.tensors));
        if (row.differentiable) b += gradient_bits(row.call, o.tensors);
        if (first.empty()) first = b;
        EXPECT_TRUE(b == first) << threads << " threads";
      }
      if (v == Variant::kBase) continue;
      if (vectors.empty()) vectors = first;
      EXPECT_TRUE(first == vectors) << "v3 and v4 differ";
    }
  }
}

void check_positions(const Row& row, Device device) {
  Sample sample = row.whole.empty() ? row.large : row.whole;
  if (row.point)
    for (Input& in : sample) in.sizes = {71};
  if (row.slices.empty()) return;
  std::vector<ScalarType> types = compared_types(row);
  if (row.takes(kByte) && has_real(row)) types.push_back(kByte);
  for (ScalarType dtype : types_on(device, row, types)) {
    SCOPED_TRACE(short_name_of(dtype));
    const std::vector<Tensor> all = moved(operands(sample, dtype).tensors, device);
    const Tensor whole = row.call(all);
    for (int64_t n = row.fewest; n <= 67; ++n) {
      // Emulated threads take their time: a few, and those about a warp and two.
      if (device != kHost && n > row.fewest + 8 && (n + 1) % 32 > 2 && n < 67) continue;
      // Of those a checker sees other accesses at the ends of vectors and warps only.
      if (few() && n > row.fewest + 1 && n != 7 && n != 33 && n != 67) continue;
      const int64_t start = n % 5;
      ASSERT_LE(start + n, whole.size(row.sliced_result)) << "too few to slice";
      std::vector<Tensor> in = all;
      for (size_t k = 0; k < in.size(); ++k)
        if (row.slices[k] >= 0) in[k] = in[k].narrow(row.slices[k], start, n);
      ASSERT_TRUE(bits(row.call(in)) == bits(whole.narrow(row.sliced_result, start, n)))
          << n << " elements from " << start;
    }
  }
}

void check_in_place(const Row& row, Device device) {
  if (!row.in_place) return;
  for (ScalarType dtype : types_on(device, row, {std::begin(kEvery), std::end(kEvery)})) {
    if (!row.takes(dtype)) continue;
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const std::vector<Tensor> in = moved(operands(sample, dtype).tensors, device);
      const Tensor want = row.call(in);
      for (int way = 0; way < 3; ++way) {
        const Tensor x = way == 0 ? in[0].clone() : relaid(in[0], way);
        std::vector<Tensor> arguments = in;
        arguments[0] = x;
        if (category(want.scalar_type()) > category(dtype) || want.sizes() != x.sizes()) {
          ASSERT_THROW(row.in_place(arguments), Error);
          continue;
        }
        const int64_t version = x._version();
        const Tensor y = row.in_place(arguments);
        EXPECT_EQ(y.impl(), x.impl());
        EXPECT_EQ(x.scalar_type(), dtype);
        ASSERT_GT(x._version(), version);
        ASSERT_TRUE(bits(x) == bits(want.to(dtype)));
      }
    }
  }
  if (!row.differentiable || !row.takes(kDouble)) return;
  const std::vector<Tensor> in = moved(operands(row.samples.front(), kDouble).tensors, device);
  const Call through = [&row](V leaves) {
    std::vector<Tensor> arguments = leaves;
    arguments[0] = leaves[0].clone();
    return row.in_place(arguments);
  };
  EXPECT_TRUE(gradient_bits(through, in) == gradient_bits(row.call, in)) << "gradients";
}

void check_out(const Row& row, Device device) {
  if (!row.out) return;
  for (ScalarType dtype : types_on(device, row, {std::begin(kEvery), std::end(kEvery)})) {
    if (!row.takes(dtype)) continue;
    for (const Sample& sample : row.samples) {
      SCOPED_TRACE(std::string(short_name_of(dtype)) + " " + text_of(sample));
      const std::vector<Tensor> in = moved(operands(sample, dtype).tensors, device);
      const Tensor want = row.call(in);
      const Tensor old =
          tensor_of(made(want.sizes().vec(), [](const Index&) { return 1.0; }), want.scalar_type())
              .to(device);
      // Of the right sizes, empty, spaced out.
      Tensor outs[] = {old, tensor_of({{0}, {}}, want.scalar_type()).to(device), relaid(old, 1)};
      for (Tensor& out : outs) {
        const Index strides = out.strides().vec();
        const bool fits = out.sizes() == want.sizes();
        const Tensor y = row.out(out, in);
        EXPECT_EQ(y.impl(), out.impl());
        ASSERT_EQ(out.sizes(), want.sizes());
        EXPECT_EQ(out.scalar_type(), want.scalar_type());
        if (fits) { EXPECT_EQ(out.strides().vec(), strides); }
        ASSERT_TRUE(bits(out) == bits(want));
      }
    }
  }
  if (!row.differentiable) return;
  const std::vector<Tensor> in = moved(operands(row.samples.front(), kDouble).tensors, device);
  Tensor out = row.call(in);
  require_grad(in);
  EXPECT_THROW(row.out(out, in), Error) << "an out form has no history";
}

}  // namespace op_table
}  // namespace ramet
