// LocalResponseNorm and local_response_norm.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API LocalResponseNormOptions {
  LocalResponseNormOptions(int64_t size) : size_(size) {}
  RAMET_ARG(int64_t, size);
  RAMET_ARG(double, alpha) = 1e-4;
  RAMET_ARG(double, beta) = 0.75;
  RAMET_ARG(double, k) = 1.;
};

/// x / (k + alpha / size * (sum of squares over `size` neighbouring channels))^beta of (N, C, ...),
/// at least 3 dimensions: Krizhevsky et al. 2012. Missing channels count as zeros. With an even
/// size there is one channel more before the centre than after it.
class RAMET_API LocalResponseNormImpl
    : public detail::ListedModule<LocalResponseNormImpl, LocalResponseNormOptions> {
 public:
  LocalResponseNormImpl(int64_t size) : LocalResponseNormImpl(LocalResponseNormOptions(size)) {}
  explicit LocalResponseNormImpl(const LocalResponseNormOptions& options_)
      : ListedModule(options_) {}
  Tensor forward(const Tensor& input);
};
RAMET_LISTED_MODULE(LocalResponseNorm, LocalResponseNormOptions)

namespace functional {

using LocalResponseNormFuncOptions = LocalResponseNormOptions;

namespace detail {
RAMET_API Tensor local_response_norm(const Tensor& input, int64_t size, double alpha, double beta,
                                     double k);
}  // namespace detail
/// As the module LocalResponseNorm.
RAMET_API Tensor local_response_norm(const Tensor& input,
                                     const LocalResponseNormFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
