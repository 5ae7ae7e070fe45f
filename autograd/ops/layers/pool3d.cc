// Pools that are composed of pools of images. A window is a box. So its maximum is the maximum of
// its planes' maxima. That is right for ties and NaN too: both follow the order d, h, w. Its sum is
// the sum of its planes' sums.
#include "autograd/ops/layers/pool3d.h"

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/front/pool_internal.h"
#include "autograd/ops/index/gather_scatter.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/shape/view.h"
#include "runtime/base/checked_size.h"

namespace ramet {

using namespace autograd;

namespace {

constexpr int64_t kOne = 1;  // a list borrows its number

[[noreturn]] void not_implemented(const char* op, const Tensor& x) {
  throw NotImplementedError(detail::join("[", op, "] not implemented for '",
                                         name_of(x.scalar_type()), "': got ", describe(x)));
}

// x with a batch dimension.
Tensor with_batch(const char* op, int64_t spatial, const Tensor& x) {
  check_defined(op, x);
  RAMET_CHECK(x.dim() == spatial + 1 || x.dim() == spatial + 2, op, "Expected ", spatial + 1,
              "D or ", spatial + 2, "D input: got ", describe(x));
  return x.dim() == spatial + 2 ? x : x.unsqueeze(0);
}
// with_batch() in a dtype that kernels support.
Tensor as_volume(const char* op, const Tensor& x) {
  const Tensor volume = with_batch(op, 3, x);
  if (x.scalar_type() == kBool) not_implemented(op, x);
  return volume.to(compute_type(x.scalar_type()));
}
Tensor like_given(const Tensor& y, const Tensor& x, ScalarType t) {
  return (y.dim() > x.dim() ? y.squeeze(0) : y).to(t);
}

using Axes = std::array<PoolAxis, 3>;

// Pools in two steps: first planes as channels of images, then depths as rows of images of one
// channel. Calls f(image, rows, columns) in each step, with the axes to pool.
template <class F> Tensor in_two(const char* op, const Tensor& x, const Axes& axes, const F& f) {
  const auto& [depth, row, column] = axes;
  const int64_t n = x.size(0), c = x.size(1),
                pixels = checked_mul(op, "pixels of the result", row.out, column.out),
                planes_of = checked_mul(op, "planes", c, depth.in),
                images = checked_mul(op, "volumes", n, c);
  const Tensor planes = f(x.reshape({n, planes_of, row.in, column.in}), row, column);
  return f(planes.reshape({images, 1, depth.in, pixels}), depth,
           PoolAxis{pixels, pixels, 1, 1, 0, 1})
      .reshape({n, c, depth.out, row.out, column.out});
}

using Pair = std::array<int64_t, 2>;

std::tuple<Tensor, Tensor> max_pool(const char* op, const Tensor& x, const PoolWindow& w,
                                    bool with_index) {
  const Tensor volume = as_volume(op, x);
  const Axes axes = pool_axes<3>(op, volume, w);
  std::vector<Tensor> places;
  const Tensor y = in_two(op, volume, axes, [&](const Tensor& image, auto row, auto column) {
    const Pair k{row.kernel, column.kernel}, s{row.stride, column.stride}, p{row.pad, column.pad},
        d{row.dilation, column.dilation};
    if (!with_index) return max_pool2d(image, k, s, p, d, w.ceil_mode);
    auto [best, place] = max_pool2d_with_indices(image, k, s, p, d, w.ceil_mode);
    places.push_back(std::move(place));
    return best;
  });
  const Tensor value = like_given(y, x, x.scalar_type());
  if (!with_index) return {value, Tensor()};
  // Which of the planes' maxima it is, and the position of that maximum in its plane.
  const auto& [depth, row, column] = axes;
  const int64_t lines = volume.size(0) * volume.size(1), pixels = row.out * column.out;
  const Tensor which = places[1].reshape({lines, depth.out * pixels}),
               in_plane = places[0].reshape({lines, depth.in * pixels}).gather(1, which),
               plane = which.div(pixels, "floor");
  return {value,
          like_given((plane * (row.in * column.in) + in_plane).reshape(y.sizes()), x, kLong)};
}

// The number of elements of each window of an axis.
Tensor counts(const PoolAxis& a, bool count_include_pad, Device device) {
  const TensorOptions options = TensorOptions(kLong).device(device);
  const Tensor first = arange(a.out, options) * a.stride - a.pad,
               end = first.clamp_max(a.in + a.pad - a.kernel) + a.kernel;
  return count_include_pad ? end - first : end.clamp_max(a.in) - first.clamp_min(0);
}

// Checks output_size for x with its batch. Returns the sizes of the result.
template <size_t D>
std::vector<int64_t> adaptive_sizes(const char* op, const Tensor& x, IntArrayRef output_size) {
  const std::array<int64_t, D> out = numbers_of<D>(op, "output_size", output_size);
  std::vector<int64_t> sizes = {x.size(0), x.size(1)};
  for (size_t i = 0; i < D; ++i) {
    RAMET_CHECK(out[i] >= 0, op, "output_size: got ", output_size, ", expected no negative number");
    sizes.push_back(out[i]);
  }
  for (int64_t d = 1; d < x.dim(); ++d)
    RAMET_CHECK(x.size(d) > 0, op, "got ", describe(x),
                ", expected extents above 0 (but for the batch)");
  // Kernels find windows by products of these two numbers.
  for (size_t i = 0; i < D; ++i)
    checked_mul(op, "output_size by the input's extent", x.size(static_cast<int64_t>(i) + 2) + 1,
                checked_add(op, "output_size", out[i], 1));
  return sizes;
}

// ---- adaptive maxima ----------------------------------------------------------------------------

// How to gather windows of one length from an axis, where adaptive windows have several lengths.
// The windows have the elements of the adaptive ones, with the last one repeated. `from` is
// undefined where all have one length. Otherwise a window has at most floor(in / out) + 2 elements.
struct Spread {
  int64_t length;
  Tensor from;
};
Spread spread_windows(int64_t in, int64_t out, Device device) {
  if (out == 0 || in % out == 0) return {out == 0 ? 1 : in / out, Tensor()};
  const TensorOptions options = TensorOptions(kLong).device(device);
  const int64_t length = in / out + 2;
  const Tensor window = arange(out, options).unsqueeze(1), first = (window * in).div(out, "floor"),
               last = ((window + 1) * in - 1).div(out, "floor");
  return {length, (first + arange(length, options)).minimum(last).flatten()};
}

template <size_t D> std::tuple<Tensor, Tensor> pool_with_indices(const Tensor& x, IntArrayRef k) {
  if constexpr (D == 1) return max_pool1d_with_indices(x, k);
  else if constexpr (D == 2) return max_pool2d_with_indices(x, k);
  else return max_pool3d_with_indices(x, k);
}

// The position of each maximum in x, [n, c, ...] with D spatial dimensions. All sizes of the result
// except the batch are above 0.
template <size_t D> Tensor places_of_maxima(const Tensor& x, IntArrayRef sizes) {
  std::array<int64_t, D> kernel;
  std::array<Tensor, D> from;
  Tensor windows = x.detach();
  for (size_t i = 0; i < D; ++i) {
    const auto d = static_cast<int64_t>(i) + 2;
    auto [length, places] = spread_windows(x.size(d), sizes[i + 2], x.device());
    kernel[i] = length;
    from[i] = places;
    if (places.defined()) windows = windows.index_select(d, places);
  }
  const Tensor found = std::get<1>(pool_with_indices<D>(windows, kernel));
  Tensor rest = found, index;
  int64_t step = 1;
  for (size_t i = D; i-- > 0;) {
    const auto d = static_cast<int64_t>(i) + 2;
    Tensor at = i > 0 ? rest.remainder(windows.size(d)) : rest;
    if (i > 0) rest = rest.div(windows.size(d), "floor");
    if (from[i].defined()) at = from[i].index_select(0, at.flatten()).reshape(found.sizes());
    index = index.defined() ? index + at * step : at;
    step *= x.size(d);
  }
  return index;
}

template <size_t D>
std::tuple<Tensor, Tensor> adaptive_max(const char* op, const Tensor& given,
                                        IntArrayRef output_size) {
  const Tensor x = with_batch(op, D, given);
  if (!is_floating(x.scalar_type())) not_implemented(op, given);
  const std::vector<int64_t> sizes = adaptive_sizes<D>(op, x, output_size);
  int64_t results = 1, pixels = 1;
  for (size_t i = 2; i < D + 2; ++i) {
    results = checked_mul(op, "output_size", results, sizes[i]);
    pixels = checked_mul(op, "pixels of the input", pixels, x.sizes()[i]);
  }
  Tensor index;
  {
    const NoGradGuard off;
    index = results == 0 ? empty(sizes, TensorOptions(kLong).device(x.device()))
                         : places_of_maxima<D>(x, sizes);
  }
  const std::vector<int64_t> flat = {sizes[0], sizes[1], results};
  const Tensor y = x.reshape({sizes[0], sizes[1], pixels}).gather(2, index.reshape(flat));
  return {like_given(y.reshape(sizes), given, given.scalar_type()),
          like_given(index, given, kLong)};
}

}  // namespace

static Tensor max_pool3d_body(const Tensor& x, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, IntArrayRef dilation, bool ceil_mode) {
  return std::get<0>(
      max_pool("max_pool3d", x, {kernel, stride, padding, dilation, ceil_mode}, false));
}
std::tuple<Tensor, Tensor> max_pool3d_with_indices(const Tensor& x, IntArrayRef kernel,
                                                   IntArrayRef stride, IntArrayRef padding,
                                                   IntArrayRef dilation, bool ceil_mode) {
  return max_pool("max_pool3d_with_indices", x, {kernel, stride, padding, dilation, ceil_mode},
                  true);
}

static Tensor avg_pool3d_body(const Tensor& x, IntArrayRef kernel, IntArrayRef stride,
                              IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                              std::optional<int64_t> divisor) {
  constexpr const char* kOp = "avg_pool3d";
  RAMET_CHECK(!divisor || *divisor != 0, kOp, "divisor must be not zero: got ", *divisor);
  const Tensor volume = as_volume(kOp, x);
  const Axes axes = pool_axes<3>(kOp, volume, {kernel, stride, padding, kOne, ceil_mode});
  // For integers, the sum is divided once, towards zero, by the number of elements of the window.
  const bool sums = divisor || !is_floating(x.scalar_type());
  Tensor y = in_two(kOp, volume, axes, [&](const Tensor& image, auto row, auto column) {
    return avg_pool2d(image, Pair{row.kernel, column.kernel}, Pair{row.stride, column.stride},
                      Pair{row.pad, column.pad}, ceil_mode, count_include_pad,
                      sums ? std::optional<int64_t>(1) : std::nullopt);
  });
  if (divisor) {
    y = is_floating(x.scalar_type()) ? y / *divisor : y.div(*divisor, "trunc");
  } else if (sums) {
    const auto count = [&](const PoolAxis& a) { return counts(a, count_include_pad, x.device()); };
    y = y.div(
        count(axes[0]).reshape({axes[0].out, 1, 1}) * count(axes[1]).unsqueeze(1) * count(axes[2]),
        "trunc");
  }
  return like_given(y, x, x.scalar_type());
}

static Tensor adaptive_avg_pool3d_body(const Tensor& x, IntArrayRef output_size) {
  constexpr const char* kOp = "adaptive_avg_pool3d";
  const Tensor volume = as_volume(kOp, x);
  if (!is_floating(x.scalar_type())) not_implemented(kOp, x);
  const std::vector<int64_t> sizes = adaptive_sizes<3>(kOp, volume, output_size);
  Axes axes;
  bool some = true;
  for (size_t i = 0; i < 3; ++i) {
    axes[i] = {volume.sizes()[i + 2], sizes[i + 2], 1, 1, 0, 1};
    some = some && sizes[i + 2] > 0;
  }
  if (!some) return like_given(volume.narrow(2, 0, 0).reshape(sizes), x, x.scalar_type());
  const Tensor y = in_two(kOp, volume, axes, [&](const Tensor& image, auto row, auto column) {
    return adaptive_avg_pool2d(image, Pair{row.out, column.out});
  });
  return like_given(y, x, x.scalar_type());
}

std::tuple<Tensor, Tensor> adaptive_max_pool1d(const Tensor& x, IntArrayRef output_size) {
  return adaptive_max<1>("adaptive_max_pool1d", x, output_size);
}
std::tuple<Tensor, Tensor> adaptive_max_pool2d(const Tensor& x, IntArrayRef output_size) {
  return adaptive_max<2>("adaptive_max_pool2d", x, output_size);
}
static std::tuple<Tensor, Tensor> adaptive_max_pool3d_body(const Tensor& x,
                                                           IntArrayRef output_size) {
  return adaptive_max<3>("adaptive_max_pool3d", x, output_size);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/layers/pool3d.inc"

}  // namespace ramet
