// Checks and shapes of convolutions; front/convolve_internal.h has the computations.
#include "autograd/ops/layers/conv.h"

#include <algorithm>

#include "autograd/ops/front/conv_internal.h"
#include "autograd/ops/front/convolve_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

// How many spatial dimensions kernels have: a line is an image of one row.
constexpr size_t seen(int dimensions) { return static_cast<size_t>(std::max(dimensions, 2)); }
template <size_t D> using Numbers = std::array<int64_t, D>;
template <size_t D> using Axes = std::array<ConvAxis, D>;

Conv2dShape shape_of(int64_t n, int64_t ci, int64_t co, int64_t groups, const Axes<2>& a) {
  const ConvAxis &row = a[0], &column = a[1];
  return {n,           ci,           row.in,          column.in,
          co,          row.out,      column.out,      row.taps,
          column.taps, row.stride,   column.stride,   row.pad,
          column.pad,  row.dilation, column.dilation, groups};
}
VolumeShape shape_of(int64_t n, int64_t ci, int64_t co, int64_t groups, const Axes<3>& a) {
  return {shape_of(n, ci, co, groups, Axes<2>{a[1], a[2]}),
          a[0].in,
          a[0].out,
          a[0].taps,
          a[0].stride,
          a[0].pad,
          a[0].dilation};
}

void check_operand(const char* op, const char* name, const Tensor& t, const Tensor& x) {
  check_same_device(op, x, t, name);
  RAMET_CHECK(t.scalar_type() == x.scalar_type(), op, "Input type (",
              short_name_of(x.scalar_type()), ") and ", name, " type (",
              short_name_of(t.scalar_type()), ") should be the same: got input ", describe(x),
              " and ", name, " ", describe(t));
}
void check_bias(const char* op, const Tensor& bias, const Tensor& x, int64_t channels) {
  if (!bias.defined()) return;
  check_operand(op, "bias", bias, x);
  RAMET_CHECK(bias.dim() == 1 && bias.size(0) == channels, op, "bias: got ", describe(bias),
              ", expected [", channels, "]");
}
template <size_t D>
void check_numbers(const char* op, const Numbers<D>& stride, const Numbers<D>& dilation,
                   int64_t groups) {
  RAMET_CHECK(groups > 0, op, "groups: got ", groups, ", expected a positive number");
  for (size_t i = 0; i < D; ++i) {
    RAMET_CHECK(stride[i] > 0, op, "stride: got ", stride[i], ", expected a positive number");
    RAMET_CHECK(dilation[i] > 0, op, "dilation: got ", dilation[i], ", expected a positive number");
  }
}
template <size_t D>
void check_not_negative(const char* op, const char* name, const Numbers<D>& numbers) {
  for (const int64_t n : numbers)
    RAMET_CHECK(n >= 0, op, name, ": got ", n, ", expected no negative number");
}
// Checks the `D` spatial extents of input and weight, and their other extents except the batch.
template <size_t D> void check_extents(const char* op, const Tensor& x, const Tensor& w) {
  bool fine = x.size(1) > 0 && w.size(0) > 0;
  for (size_t i = 2; i < D + 2; ++i) fine = fine && x.sizes()[i] > 0 && w.sizes()[i] > 0;
  RAMET_CHECK(fine, op, "got input ", describe(x), " and weight ", describe(w),
              ", expected extents above 0 (of the input, all but the batch)");
}
// Only volumes need this: planes become images, and taps along the depth become channels.
void check_counts(const char*, const Conv2dShape&) {}
void check_counts(const char* op, const VolumeShape& s) {
  const int64_t images = checked_mul(op, "images of a batch", s.plane.n, s.od),
                channels = checked_mul(op, "channels by taps", s.plane.ci, s.kd);
  checked_mul(op, "planes", images, std::max(channels, s.plane.co));
}

// Does a kernel take x in bfloat16 as it is, and does that pay? (kernels/NOTES.md, "Products in
// bfloat16")
bool in_pairs(const Tensor& x, const Conv2dShape& s) {
  const int64_t least = s.groups == 1 ? 8 : 32;
  return x.scalar_type() == kBFloat16 && x.device().is_cpu() && s.ci / s.groups >= least &&
         s.co / s.groups >= least && is_near(s);
}
bool in_pairs(const Tensor&, const VolumeShape&) { return false; }

// Calls f in a dtype that kernels support, and casts the result back to x's.
template <class Shape, class F>
Tensor in_wide(const char* op, const Tensor& x, const Tensor& w, const Tensor& bias, const Shape& s,
               const F& f) {
  const ScalarType t = x.scalar_type();
  if (t == kFloat || t == kDouble || t == kLong || in_pairs(x, s)) return f(x, w, bias);
  if (t == kBool)
    throw NotImplementedError(
        detail::join("[", op, "] not implemented for bool: got ", describe(x)));
  const ScalarType wide = compute_type(t);
  return f(x.to(wide), w.to(wide), bias.defined() ? bias.to(wide) : bias).to(t);
}

// For products of factors that users choose freely.
using Int128 = __int128;
std::string text_of(Int128 x) {
  if (x > INT64_MAX) return "more than " + std::to_string(INT64_MAX);
  if (x < INT64_MIN) return "less than " + std::to_string(INT64_MIN);
  return std::to_string(static_cast<int64_t>(x));
}
template <size_t D> std::string text_of(const std::array<Int128, D>& list) {
  std::string text;
  for (const Int128 n : list) text += (text.empty() ? "" : " x ") + text_of(n);
  return text;
}

// Throws: the channels of x are not `channels`. x is the input with a batch, `given` the caller's.
[[noreturn, gnu::cold]] void wrong_channels(const char* op, const std::string& kind,
                                            const Tensor& x, const Tensor& w, const Tensor& given,
                                            Int128 channels) {
  fail(op, "Given ", kind, ", weight of size ", w.sizes(), ", expected input to have ",
       text_of(channels), " channels, but got ", x.size(1), " channels instead: got input ",
       describe(given),
       given.size(0) == x.size(1) && given.size(1) != x.size(1)
           ? ", which is one sample without a batch: its dimension 0 has the channels"
           : "");
}

// The number of zeros before and after; std::nullopt stands for "same".
template <size_t D> using Padding = std::optional<Numbers<D>>;

template <size_t D>
Tensor convolution(const char* op, const Tensor& given, const Tensor& x, const Tensor& w,
                   const Tensor& bias, const Numbers<D>& stride, const Padding<D>& padding,
                   const Numbers<D>& dilation, int64_t groups) {
  check_numbers(op, stride, dilation, groups);
  if (padding) check_not_negative(op, "padding", *padding);
  check_operand(op, "weight", w, x);
  const int64_t ci = x.size(1), co = w.size(0);
  check_extents<D>(op, x, w);
  RAMET_CHECK(co % groups == 0, op, "Given groups=", groups,
              ", expected weight to be divisible by ", groups, " at dimension 0, but got weight ",
              describe(w));
  if (Int128{w.size(1)} * groups != ci)
    wrong_channels(op, "groups=" + std::to_string(groups), x, w, given, Int128{w.size(1)} * groups);
  check_bias(op, bias, x, co);
  Tensor taps = w;  // a part of the weight, where only that matters
  Axes<D> axes;
  std::array<Int128, D> padded, filter, out;
  for (size_t i = 0; i < D; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t in = x.size(d), k = w.size(d), step = dilation[i];
    const Int128 between = Int128{step} * (k - 1),
                 both = padding ? Int128{(*padding)[i]} * 2 : between;
    padded[i] = in + both, filter[i] = between + 1;
    // Where the padding of "same" exceeds an int64: drop pairs of taps, one at either end, without
    // a pixel.
    int64_t left_out = 0;
    if (both / 2 > INT64_MAX) {
      left_out = static_cast<int64_t>(std::min<Int128>((both / 2 - in) / step + 1, (k - 1) / 2));
      taps = taps.narrow(d, left_out, k - 2 * left_out);
    }
    // With "same" the odd pixel goes to the right and below.
    axes[i] = {in,
               0,
               k - 2 * left_out,
               stride[i],
               static_cast<int64_t>(both / 2 - Int128{step} * left_out),
               step};
  }
  bool fits = true;
  for (size_t i = 0; i < D; ++i) fits = fits && padded[i] >= filter[i];
  RAMET_CHECK(fits, op, "Calculated padded input size per channel: (", text_of(padded),
              "). Kernel size: (", text_of(filter),
              "). Kernel size can't be greater than actual input size: got input ", describe(x),
              " and weight ", describe(w));
  for (size_t i = 0; i < D; ++i) {
    const Int128 room = padded[i] - filter[i];
    const int64_t step = stride[i];
    out[i] = Int128{1} + (room <= INT64_MAX ? static_cast<int64_t>(room) / step : room / step);
    fits = fits && out[i] <= INT64_MAX;
    axes[i].out = static_cast<int64_t>(out[i]);
  }
  RAMET_CHECK(fits, op, "got a result of ", text_of(out),
              ", expected extents that an int64 holds: got input ", describe(x));
  const auto s = shape_of(x.size(0), ci, co, groups, axes);
  check_counts(op, s);
  return in_wide(op, x, taps, bias, s,
                 [&](const Tensor& in, const Tensor& weight, const Tensor& b) {
                   return convolve(in, weight, b, s);
                 });
}

template <size_t D>
Tensor transposed(const char* op, const Tensor& given, const Tensor& x, const Tensor& w,
                  const Tensor& bias, const Numbers<D>& stride, const Numbers<D>& padding,
                  const Numbers<D>& output_padding, const Numbers<D>& dilation, int64_t groups) {
  check_numbers(op, stride, dilation, groups);
  check_not_negative(op, "padding", padding);
  check_not_negative(op, "output_padding", output_padding);
  check_operand(op, "weight", w, x);
  check_extents<D>(op, x, w);
  RAMET_CHECK(w.size(1) > 0 && w.size(0) % groups == 0, op, "Given groups=", groups,
              ", expected weight to be divisible by ", groups,
              " at dimension 0 and not empty at dimension 1, but got weight ", describe(w));
  if (x.size(1) != w.size(0)) wrong_channels(op, "transposed=1", x, w, given, w.size(0));
  const int64_t channels = checked_mul(op, "output channels", w.size(1), groups);
  check_bias(op, bias, x, channels);
  Axes<D> axes;
  std::array<Int128, D> out;
  bool fits = true;
  for (size_t i = 0; i < D; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    const int64_t in = x.size(d), k = w.size(d), more = output_padding[i];
    RAMET_CHECK(more < stride[i] || more < dilation[i], op,
                "output padding must be smaller than either stride or dilation, but got "
                "output_padding ",
                more, ", stride ", stride[i], " and dilation ", dilation[i]);
    out[i] = Int128{in - 1} * stride[i] - Int128{padding[i]} * 2 + Int128{dilation[i]} * (k - 1) +
             more + 1;
    fits = fits && out[i] >= 1 && out[i] <= INT64_MAX;
    axes[i] = {static_cast<int64_t>(out[i]), in, k, stride[i], padding[i], dilation[i]};
  }
  RAMET_CHECK(fits, op, "Calculated output size per channel: (", text_of(out),
              "). Output size is too small or more than an int64 holds: got input ", describe(x),
              " and weight ", describe(w));
  const auto s = shape_of(x.size(0), channels, w.size(0), groups, axes);
  check_counts(op, s);
  return in_wide(op, x, w, bias, s, [&](const Tensor& in, const Tensor& weight, const Tensor& b) {
    return convolve_transposed(in, weight, b, s);
  });
}

// Calls f(image, filter, bias) for any rank that the public functions accept; the result has that
// rank again. `dimensions`: the number of spatial ones.
template <class F>
Tensor of_rank(const char* op, int dimensions, const Tensor& x, const Tensor& w,
               const std::optional<Tensor>& bias, const F& f) {
  check_defined(op, x);
  check_defined(op, w);
  RAMET_CHECK(w.dim() == dimensions + 2, op, "weight: got ", describe(w), ", expected ",
              dimensions + 2, " dimensions");
  RAMET_CHECK(x.dim() == dimensions + 1 || x.dim() == dimensions + 2, op, "Expected ",
              dimensions + 1, "D (unbatched) or ", dimensions + 2,
              "D (batched) input, but got input ", describe(x));
  const bool batched = x.dim() == dimensions + 2;
  const Tensor with_batch = batched ? x : x.unsqueeze(0), b = bias ? *bias : Tensor();
  if (dimensions > 1) {
    const Tensor y = f(with_batch, w, b);
    return batched ? y : y.squeeze(0);
  }
  const Tensor y = f(with_batch.unsqueeze(2), w.unsqueeze(2), b).squeeze(2);
  return batched ? y : y.squeeze(0);
}
// One number for each spatial dimension; `other` for the one that a line does not have.
template <int dimensions>
Numbers<seen(dimensions)> numbers(const char* op, const char* name, IntArrayRef list,
                                  [[maybe_unused]] int64_t other) {
  if constexpr (dimensions == 1) return {other, numbers_of<1>(op, name, list)[0]};
  else return numbers_of<dimensions>(op, name, list);
}

template <int dimensions>
Tensor with_numbers(const char* op, const Tensor& x, const Tensor& w,
                    const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                    IntArrayRef dilation, int64_t groups) {
  return of_rank(op, dimensions, x, w, bias,
                 [&](const Tensor& in, const Tensor& k, const Tensor& b) {
                   return convolution<seen(dimensions)>(
                       op, x, in, k, b, numbers<dimensions>(op, "stride", stride, 1),
                       numbers<dimensions>(op, "padding", padding, 0),
                       numbers<dimensions>(op, "dilation", dilation, 1), groups);
                 });
}
template <int dimensions>
Tensor with_name(const char* op, const Tensor& x, const Tensor& w,
                 const std::optional<Tensor>& bias, IntArrayRef stride, const std::string& padding,
                 IntArrayRef dilation, int64_t groups) {
  constexpr size_t D = seen(dimensions);
  return of_rank(
      op, dimensions, x, w, bias, [&](const Tensor& in, const Tensor& k, const Tensor& b) {
        const Numbers<D> steps = numbers<dimensions>(op, "stride", stride, 1),
                         apart = numbers<dimensions>(op, "dilation", dilation, 1);
        RAMET_CHECK(padding == "valid" || padding == "same", op, "padding: got \"", padding,
                    "\", expected \"valid\" or \"same\"");
        if (padding == "valid")
          return convolution<D>(op, x, in, k, b, steps, Numbers<D>{}, apart, groups);
        for (const int64_t s : steps)
          RAMET_CHECK(s == 1, op, "padding='same' is not supported for strided convolutions: got ",
                      "stride ", stride);
        return convolution<D>(op, x, in, k, b, steps, std::nullopt, apart, groups);
      });
}
template <int dimensions>
Tensor transposed_of(const char* op, const Tensor& x, const Tensor& w,
                     const std::optional<Tensor>& bias, IntArrayRef stride, IntArrayRef padding,
                     IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {
  return of_rank(op, dimensions, x, w, bias,
                 [&](const Tensor& in, const Tensor& k, const Tensor& b) {
                   return transposed<seen(dimensions)>(
                       op, x, in, k, b, numbers<dimensions>(op, "stride", stride, 1),
                       numbers<dimensions>(op, "padding", padding, 0),
                       numbers<dimensions>(op, "output_padding", output_padding, 0),
                       numbers<dimensions>(op, "dilation", dilation, 1), groups);
                 });
}

}  // namespace

namespace detail {

Tensor conv_named(int dimensions, const Tensor& x, const Tensor& w,
                  const std::optional<Tensor>& bias, IntArrayRef stride, const std::string& padding,
                  IntArrayRef dilation, int64_t groups) {
  constexpr const char* kNames[] = {"conv1d", "conv2d", "conv3d"};
  const char* const op = kNames[dimensions - 1];
  const auto body = [&](const Tensor& image, const Tensor& filter,
                        const std::optional<Tensor>& added) {
    const auto call = dimensions == 1   ? with_name<1>
                      : dimensions == 2 ? with_name<2>
                                        : with_name<3>;
    return call(op, image, filter, added, stride, padding, dilation, groups);
  };
  if (RAMET_UNLIKELY(tls.autocast != 0))
    return cast_call<Tensor>(op, CastPolicy::kLower, CastPolicy::kLower, body, x, w, bias);
  return body(x, w, bias);
}

}  // namespace detail

#define RAMET_CONVOLUTIONS(D)                                                                     \
  static Tensor conv##D##d_body(const Tensor& x, const Tensor& w,                                 \
                                const std::optional<Tensor>& bias, IntArrayRef stride,            \
                                IntArrayRef padding, IntArrayRef dilation, int64_t groups) {      \
    return with_numbers<D>("conv" #D "d", x, w, bias, stride, padding, dilation, groups);         \
  }                                                                                               \
  static Tensor conv_transpose##D##d_body(                                                        \
      const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias, IntArrayRef stride,    \
      IntArrayRef padding, IntArrayRef output_padding, int64_t groups, IntArrayRef dilation) {    \
    return transposed_of<D>("conv_transpose" #D "d", x, w, bias, stride, padding, output_padding, \
                            groups, dilation);                                                    \
  }
RAMET_CONVOLUTIONS(1)
RAMET_CONVOLUTIONS(2)
RAMET_CONVOLUTIONS(3)
#undef RAMET_CONVOLUTIONS

static Tensor convolution_body(const Tensor& x, const Tensor& w, const std::optional<Tensor>& bias,
                               IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                               bool is_transposed, IntArrayRef output_padding, int64_t groups) {
  const char* op = "convolution";
  check_defined(op, x);
  check_defined(op, w);
  const int64_t rank = w.dim();
  RAMET_CHECK(rank >= 3 && rank <= 5, op, "weight: got ", describe(w),
              ", expected 3, 4 or 5 dimensions");
  RAMET_CHECK(x.dim() == rank, op, "Expected ", rank, "-dimensional input for ", rank,
              "-dimensional weight ", w.sizes(), ", but got ", describe(x));
  for (const int64_t n : output_padding)
    RAMET_CHECK(n >= 0, op, "negative output_padding is not supported: got ", output_padding);
  if (is_transposed) {
    const auto call = rank == 3   ? transposed_of<1>
                      : rank == 4 ? transposed_of<2>
                                  : transposed_of<3>;
    return call(op, x, w, bias, stride, padding, output_padding, groups, dilation);
  }
  const auto call = rank == 3 ? with_numbers<1> : rank == 4 ? with_numbers<2> : with_numbers<3>;
  return call(op, x, w, bias, stride, padding, dilation, groups);
}

static Tensor conv_tbc_body(const Tensor& x, const Tensor& w, const Tensor& bias, int64_t pad) {
  const char* op = "conv_tbc";
  check_defined(op, x);
  check_defined(op, w);
  check_defined(op, bias);
  RAMET_CHECK(x.dim() == 3, op, "Input must have 3 dims: time, batch, in_channel: got ",
              describe(x));
  RAMET_CHECK(w.dim() == 3, op,
              "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels: got ",
              describe(w));
  return with_numbers<1>(op, x.permute({1, 2, 0}), w.permute({2, 1, 0}), bias, 1, pad, 1, 1)
      .permute({2, 0, 1})
      .contiguous();
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/conv.inc"

}  // namespace ramet
