#include "autograd/ops/make/ranges.h"

#include <cmath>
#include <vector>

#include "autograd/ops/front/out_internal.h"
#include "autograd/ops/make/copy.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/power.h"
#include "kernels/copy/fill.h"
#include "runtime/base/checked_size.h"
#include "runtime/capture/capture.h"

namespace ramet {

using namespace autograd;

namespace {

TensorOptions without_grad(const TensorOptions& options) {
  return options.requires_grad(std::nullopt);
}
// `values` in the dtype and device of `options`: LibTorch's rounding of a float64 to the dtype.
Tensor delivered(const Tensor& values, const TensorOptions& options) {
  Tensor t = empty(values.sizes(), without_grad(options));
  copy_values(t, values);
  if (options.requires_grad()) t.requires_grad_(true);
  return t;
}

Scalar end_of(const Tensor& t) {
  check_defined("logspace", t);
  RAMET_CHECK(t.dim() == 0, "logspace", "only supports 0-dimensional start and end tensors: got ",
              describe(t));
  capture::refuse("logspace", "the host reads the ends; give numbers");
  return t.item();
}

}  // namespace

// ---- powers of evenly spaced numbers ------------------------------------------------------------

Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& options) {
  RAMET_CHECK(steps >= 0, "logspace", "number of steps must be non-negative: got ", steps);
  const ScalarType dtype = options.dtype();
  RAMET_CHECK(dtype != kBool, "logspace", "not implemented for bool");
  const auto end_value = [whole = is_integral(dtype)](const Scalar& v) {
    return whole ? std::trunc(v.toDouble()) : v.toDouble();
  };
  const Tensor exponents = linspace(end_value(start), end_value(end), steps,
                                    TensorOptions(kDouble).device(options.device()));
  return delivered(pow(Scalar(base), exponents), options);
}
Tensor logspace(const Tensor& start, const Tensor& end, int64_t steps, double base,
                const TensorOptions& options) {
  return logspace(end_of(start), end_of(end), steps, base, options);
}
Tensor logspace(const Tensor& start, const Scalar& end, int64_t steps, double base,
                const TensorOptions& options) {
  return logspace(end_of(start), end, steps, base, options);
}
Tensor logspace(const Scalar& start, const Tensor& end, int64_t steps, double base,
                const TensorOptions& options) {
  return logspace(start, end_of(end), steps, base, options);
}

// ---- steps, the end included --------------------------------------------------------------------

Tensor range(const Scalar& start, const Scalar& end, const Scalar& step,
             const TensorOptions& options) {
  const char* op = "range";
  const ScalarType dtype = options.dtype();
  const bool whole = is_integral(dtype);
  RAMET_CHECK(dtype != kBool, op, "not implemented for bool");
  const double a = start.toDouble(), b = end.toDouble(), d = step.toDouble();
  RAMET_CHECK(std::isfinite(a) && std::isfinite(b) && std::isfinite(d), op,
              "unsupported range: ", a, " -> ", b, " by ", d);
  const int64_t first = whole ? start.to<int64_t>() : 0, last = whole ? end.to<int64_t>() : 0,
                apart = whole ? step.to<int64_t>() : 0;
  RAMET_CHECK(whole ? apart != 0 : d != 0, op, "step must be nonzero: got ", step);
  const bool up = whole ? apart > 0 : d > 0;
  RAMET_CHECK(whole ? (up ? last >= first : last <= first) : (up ? b >= a : b <= a), op,
              "upper bound and lower bound inconsistent with step sign: got ", start, " to ", end,
              " by ", step);
  // One less than the number of elements.
  const double steps =
      whole ? static_cast<double>((static_cast<__int128>(last) - first) / apart) : (b - a) / d;
  RAMET_CHECK(steps < 0x1p62, op, "invalid size, possible overflow: got ", start, " to ", end,
              " by ", step);
  const int64_t n = 1 + (whole ? static_cast<int64_t>((static_cast<__int128>(last) - first) / apart)
                               : static_cast<int64_t>(steps));
  Tensor t = empty({n}, without_grad(options).dtype(dtype));
  kernels::arange(t.stream(), {t.ptr(), n, a, d, first, apart, dtype});
  if (options.requires_grad()) t.requires_grad_(true);
  return t;
}
Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options) {
  return range(start, end, 1, options);
}

// ---- windows ------------------------------------------------------------------------------------

namespace {

// f(x) for n numbers x that lie evenly on [0, 1], without the last one if periodic. The host
// computes them, in float64: a window is short, and computed once.
template <class F>
Tensor window(const char* op, int64_t n, bool periodic, const TensorOptions& options, const F& f) {
  RAMET_CHECK(n >= 0, op, "requires non-negative window_length, got window_length=", n);
  RAMET_CHECK(is_floating(options.dtype()), op,
              "expects floating point dtypes, got: ", name_of(options.dtype()));
  if (n <= 1) return ones({n}, options);
  check_room(op, "window", static_cast<uint64_t>(n), sizeof(double) + sizeof(Scalar));
  std::vector<double> values(static_cast<size_t>(n));
  const double last = static_cast<double>(periodic ? n : n - 1);
  for (int64_t i = 0; i < n; ++i) values[static_cast<size_t>(i)] = f(static_cast<double>(i) / last);
  return delivered(tensor(values, TensorOptions(kDouble)).to(resolve(options.device())), options);
}

constexpr double kTurn = 6.283185307179586476925;

// I0(x) / e^|x|: the mean of e^(x (cos t - 1)) over a full turn. Its error falls faster than any
// power of the number of points. For large x it uses the asymptotic series.
double scaled_bessel0(double x) {
  x = std::fabs(x);
  if (!(x < 1e4)) {
    const double z = 1 / (8 * x);
    return (1 + z * (1 + z * (4.5 + z * 37.5))) / std::sqrt(kTurn * x);
  }
  const int points = 24 + static_cast<int>(9 * std::sqrt(x));
  double sum = 0;
  for (int i = 0; i < points; ++i) sum += std::exp(x * (std::cos(kTurn * i / points) - 1));
  return sum / points;
}

}  // namespace

Tensor bartlett_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window("bartlett_window", n, periodic, options,
                [](double x) { return 1 - std::fabs(2 * x - 1); });
}
Tensor blackman_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window("blackman_window", n, periodic, options, [](double x) {
    return 0.42 - 0.5 * std::cos(kTurn * x) + 0.08 * std::cos(2 * kTurn * x);
  });
}
Tensor hamming_window(int64_t n, bool periodic, double alpha, double beta,
                      const TensorOptions& options) {
  return window("hamming_window", n, periodic, options,
                [=](double x) { return alpha - beta * std::cos(kTurn * x); });
}
Tensor hann_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window("hann_window", n, periodic, options,
                [](double x) { return 0.5 - 0.5 * std::cos(kTurn * x); });
}
Tensor kaiser_window(int64_t n, bool periodic, double beta, const TensorOptions& options) {
  const double most = n > 1 ? scaled_bessel0(beta) : 1;
  return window("kaiser_window", n, periodic, options, [=](double x) {
    const double side = 2 * x - 1, inner = std::fabs(beta) * std::sqrt(1 - side * side);
    return scaled_bessel0(inner) * std::exp(inner - std::fabs(beta)) / most;
  });
}

Tensor bartlett_window(int64_t n, const TensorOptions& options) {
  return bartlett_window(n, true, options);
}
Tensor blackman_window(int64_t n, const TensorOptions& options) {
  return blackman_window(n, true, options);
}
Tensor hamming_window(int64_t n, const TensorOptions& options) {
  return hamming_window(n, true, options);
}
Tensor hamming_window(int64_t n, bool periodic, const TensorOptions& options) {
  return hamming_window(n, periodic, 0.54, options);
}
Tensor hamming_window(int64_t n, bool periodic, double alpha, const TensorOptions& options) {
  return hamming_window(n, periodic, alpha, 0.46, options);
}
Tensor hann_window(int64_t n, const TensorOptions& options) {
  return hann_window(n, true, options);
}
Tensor kaiser_window(int64_t n, const TensorOptions& options) {
  return kaiser_window(n, true, options);
}
Tensor kaiser_window(int64_t n, bool periodic, const TensorOptions& options) {
  return kaiser_window(n, periodic, 12.0, options);
}

// ---- powers of a vector -------------------------------------------------------------------------

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  check_defined("vander", x);
  RAMET_CHECK(x.dim() == 1, "vander", "x must be a one-dimensional tensor: got ", describe(x));
  const int64_t n = N.value_or(x.size(0));
  RAMET_CHECK(n >= 0, "vander", "N must be non-negative: got ", n);
  const Tensor base = is_integral(x.scalar_type()) ? x.to(kLong) : x;
  if (x.numel() == 0) return base.unsqueeze(1).expand({0, n}).clone();
  const TensorOptions on = TensorOptions(kLong).device(x.device());
  const Tensor powers = increasing ? arange(n, on) : arange(n - 1, -1, -1, on);
  return pow(base.unsqueeze(1), powers);
}

#include "autograd/forms/definitions.inc"
#include "autograd/ops/make/ranges.inc"

}  // namespace ramet
