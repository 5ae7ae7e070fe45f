// Random tensors and random choices: LibTorch's functions of the same names. They draw from
// `generator`, or from the default generator of the result's device. Numbers are Philox (Note
// [Random numbers] in runtime/devices/generator.h). A generator of kind kMersenne gives LibTorch's
// (Note [LibTorch's numbers] in runtime/devices/mersenne.h).
#pragma once
#include <optional>

#include "autograd/ops/random/dropout.h"
#include "autograd/tensor.h"
#include "runtime/devices/generator.h"

namespace ramet {

#include "autograd/ops/random/random.inc"

/// A tensor of normal numbers with the given mean and standard deviation. std >= 0.
RAMET_API Tensor normal(double mean, double std, IntArrayRef size,
                        std::optional<Generator> generator = std::nullopt,
                        const TensorOptions& options = {});
/// A number of events for each element, where self[i] >= 0 events are expected, in self's dtype.
/// The derivative is 0.
RAMET_API Tensor poisson(const Tensor& self, std::optional<Generator> generator = std::nullopt);
/// The number of successes in count[i] trials (cut off to a whole number) of probability prob[i].
/// Both have one floating-point dtype and broadcast. A probability below 0 counts as 0, one above 1
/// as 1; a NaN gives NaN. It has no derivative.
RAMET_API Tensor binomial(const Tensor& count, const Tensor& prob,
                          std::optional<Generator> generator = std::nullopt);
/// A draw of the Dirichlet distribution: shares that add up to 1 along the last dimension. self has
/// the concentrations, above 0 and finite; the result has its floating-point dtype. It is computed
/// from logarithms, so no draw is NaN, however small the concentrations are. It has no derivative.
RAMET_API Tensor _sample_dirichlet(const Tensor& self,
                                   std::optional<Generator> generator = std::nullopt);
RAMET_API Tensor& bernoulli_out(Tensor& out, const Tensor& self, double p = 0.5,
                                std::optional<Generator> generator = std::nullopt);

}  // namespace ramet
