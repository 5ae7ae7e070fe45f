// Sequences of numbers by formulas, and powers of a vector: LibTorch's functions of the same names,
// parameter lists and defaults. `options` as in autograd/ops/make/factory.h.
#pragma once
#include <optional>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/make/ranges.inc"

/// base ^ e for `steps` evenly spaced e from start to end, both included. linspace and the power
/// are computed in float64 and rounded once. For integers, the results and first the ends are cut
/// off.
RAMET_API Tensor logspace(const Scalar& start, const Scalar& end, int64_t steps, double base = 10.0,
                          const TensorOptions& options = {});
/// logspace() with ends as 0-dim tensors, which the host reads.
RAMET_API Tensor logspace(const Tensor& start, const Tensor& end, int64_t steps, double base = 10.0,
                          const TensorOptions& options = {});
RAMET_API Tensor logspace(const Tensor& start, const Scalar& end, int64_t steps, double base = 10.0,
                          const TensorOptions& options = {});
RAMET_API Tensor logspace(const Scalar& start, const Tensor& end, int64_t steps, double base = 10.0,
                          const TensorOptions& options = {});

/// start, start + step, ... up to and including `end`: (end - start) / step + 1 elements, rounded
/// down. The default dtype, unless `options` say otherwise; for integers all numbers are cut off
/// first. LibTorch calls it deprecated: use arange. As there, the call needs a step or options,
/// because range(0, 5) is ambiguous.
RAMET_API Tensor range(const Scalar& start, const Scalar& end, const Scalar& step = 1,
                       const TensorOptions& options = {});
RAMET_API Tensor range(const Scalar& start, const Scalar& end, const TensorOptions& options = {});

// Windows of window_length numbers, in the default dtype or that of `options`, a floating-point
// one. `periodic`: the first window_length numbers of a window that is longer by one, for a
// discrete Fourier transform. Computed in float64 and rounded once. A window of one number is 1.

/// The triangle 1 - |2 n / N - 1|, n from 0 to N.
RAMET_API Tensor bartlett_window(int64_t window_length, const TensorOptions& options = {});
RAMET_API Tensor bartlett_window(int64_t window_length, bool periodic,
                                 const TensorOptions& options = {});
/// 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N).
RAMET_API Tensor blackman_window(int64_t window_length, const TensorOptions& options = {});
RAMET_API Tensor blackman_window(int64_t window_length, bool periodic,
                                 const TensorOptions& options = {});
/// alpha - beta cos(2 pi n / N).
RAMET_API Tensor hamming_window(int64_t window_length, const TensorOptions& options = {});
RAMET_API Tensor hamming_window(int64_t window_length, bool periodic,
                                const TensorOptions& options = {});
RAMET_API Tensor hamming_window(int64_t window_length, bool periodic, double alpha,
                                const TensorOptions& options = {});
RAMET_API Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta,
                                const TensorOptions& options = {});
/// hamming_window with 0.5 and 0.5.
RAMET_API Tensor hann_window(int64_t window_length, const TensorOptions& options = {});
RAMET_API Tensor hann_window(int64_t window_length, bool periodic,
                             const TensorOptions& options = {});
/// I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), where I0 is the modified Bessel function of the
/// first kind of order 0.
RAMET_API Tensor kaiser_window(int64_t window_length, const TensorOptions& options = {});
RAMET_API Tensor kaiser_window(int64_t window_length, bool periodic,
                               const TensorOptions& options = {});
RAMET_API Tensor kaiser_window(int64_t window_length, bool periodic, double beta,
                               const TensorOptions& options = {});

/// The powers N - 1 to 0 (0 to N - 1 with `increasing`) of each element of a vector, one row each.
/// N is by default x's length. Integers and bool give int64. Differentiable to any order.
RAMET_API Tensor vander(const Tensor& x, std::optional<int64_t> N = std::nullopt,
                        bool increasing = false);

}  // namespace ramet
