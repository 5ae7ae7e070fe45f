// Random tensors and random choices: LibTorch's functions of the same names (the numbers differ:
// Note [Random numbers] in runtime/generator.h). They draw from `generator`, or from the default
// generator of the result's device.
#pragma once
#include <optional>

#include "autograd/tensor.h"
#include "runtime/generator.h"

namespace ramet {

/// Uniform on [0, 1). 24 bits for float32, 53 for float64, 11 for float16, 8 for bfloat16.
RAMET_API Tensor rand(IntArrayRef size, const TensorOptions& options = {});
RAMET_API Tensor rand(IntArrayRef size, std::optional<Generator> generator,
                      const TensorOptions& options = {});
RAMET_API Tensor rand_like(const Tensor& self, const TensorOptions& options = {},
                           std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor rand_like(const Tensor& self, std::optional<Generator> generator,
                           const TensorOptions& options = {},
                           std::optional<MemoryFormat> memory_format = std::nullopt);
/// Standard normal (Box and Muller).
RAMET_API Tensor randn(IntArrayRef size, const TensorOptions& options = {});
RAMET_API Tensor randn(IntArrayRef size, std::optional<Generator> generator,
                       const TensorOptions& options = {});
RAMET_API Tensor randn_like(const Tensor& self, const TensorOptions& options = {},
                            std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor randn_like(const Tensor& self, std::optional<Generator> generator,
                            const TensorOptions& options = {},
                            std::optional<MemoryFormat> memory_format = std::nullopt);
/// Integers from [low, high); int64 unless `options` say otherwise.
RAMET_API Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& options = kLong);
RAMET_API Tensor randint(int64_t high, IntArrayRef size, std::optional<Generator> generator,
                         const TensorOptions& options = kLong);
RAMET_API Tensor randint(int64_t low, int64_t high, IntArrayRef size,
                         const TensorOptions& options = kLong);
RAMET_API Tensor randint(int64_t low, int64_t high, IntArrayRef size,
                         std::optional<Generator> generator, const TensorOptions& options = kLong);
RAMET_API Tensor randint_like(const Tensor& self, int64_t high, const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor randint_like(const Tensor& self, int64_t high, std::optional<Generator> generator,
                              const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
/// `high` is read: it has one element.
RAMET_API Tensor randint_like(const Tensor& self, const Tensor& high,
                              const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor randint_like(const Tensor& self, const Tensor& high,
                              std::optional<Generator> generator, const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor randint_like(const Tensor& self, int64_t low, int64_t high,
                              const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
RAMET_API Tensor randint_like(const Tensor& self, int64_t low, int64_t high,
                              std::optional<Generator> generator, const TensorOptions& options = {},
                              std::optional<MemoryFormat> memory_format = std::nullopt);
/// 0..n-1 in random order (Fisher and Yates), int64 unless `options` say otherwise.
RAMET_API Tensor randperm(int64_t n, const TensorOptions& options = kLong);
RAMET_API Tensor randperm(int64_t n, std::optional<Generator> generator,
                          const TensorOptions& options = kLong);
/// Normal with the given mean and standard deviation, numbers or tensors (broadcast). std >= 0.
RAMET_API Tensor normal(double mean, double std, IntArrayRef size,
                        std::optional<Generator> generator = std::nullopt,
                        const TensorOptions& options = {});
RAMET_API Tensor normal(const Tensor& mean, double std = 1,
                        std::optional<Generator> generator = std::nullopt);
RAMET_API Tensor normal(double mean, const Tensor& std,
                        std::optional<Generator> generator = std::nullopt);
RAMET_API Tensor normal(const Tensor& mean, const Tensor& std,
                        std::optional<Generator> generator = std::nullopt);
/// 1 with probability self[i] (or p), else 0; dtype of self.
RAMET_API Tensor bernoulli(const Tensor& self, std::optional<Generator> generator = std::nullopt);
RAMET_API Tensor bernoulli(const Tensor& self, double p,
                           std::optional<Generator> generator = std::nullopt);
RAMET_API Tensor bernoulli(const Tensor& self, const Tensor& p,
                           std::optional<Generator> generator = std::nullopt);
/// `num_samples` indices a row, drawn with probabilities proportional to the (non-negative) row.
/// int64.
RAMET_API Tensor multinomial(const Tensor& self, int64_t num_samples, bool replacement = false,
                             std::optional<Generator> generator = std::nullopt);

/// When training: each element is 0 with probability p, else input / (1 - p). Otherwise input
/// itself, of any dtype.
RAMET_API Tensor dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& dropout_(Tensor& self, double p, bool train);
/// The same for whole channels (dimensions 0 and 1 choose) of a tensor of at least 2 dimensions.
RAMET_API Tensor feature_dropout(const Tensor& input, double p, bool train);
RAMET_API Tensor& feature_dropout_(Tensor& self, double p, bool train);
/// grad * mask * scale: the derivative of dropout. Differentiable in grad.
RAMET_API Tensor native_dropout_backward(const Tensor& grad_output, const Tensor& mask,
                                         double scale);

}  // namespace ramet
