#include "nn/layers/norm/response_norm.h"

#include "autograd/autocast.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/pointwise/power.h"
#include "autograd/ops/shape/pad.h"
#include "autograd/ops/shape/view.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

Tensor LocalResponseNormImpl::forward(const Tensor& input) {
  return functional::local_response_norm(input, options);
}

RAMET_FIELDS(LocalResponseNorm, {"size", &o.size(), kBare | kCount}, {"alpha", &o.alpha()},
             {"beta", &o.beta()}, {"k", &o.k()})

namespace functional {

Tensor detail::local_response_norm(const Tensor& input, int64_t size, double alpha, double beta,
                                   double k) {
  constexpr const char* kOp = "local_response_norm";
  RAMET_CHECK(input.defined(), kOp, "undefined tensor");
  RAMET_CHECK(input.dim() >= 3, kOp, "Expected 3D or higher dimensionality input (got ",
              input.dim(), " dimensions)");
  RAMET_CHECK(size > 0, kOp, "size: got ", size, ", expected a positive number");
  if (input.numel() == 0) return input.clone();
  // Channels as rows of an image; those that are not there are zeros.
  const int64_t n = input.size(0), c = input.size(1);
  Tensor squares = input.square().reshape({n, 1, c, input.numel() / (n * c)});
  // LibTorch pools these as volumes, which autocast runs in float32 on a CPU.
  if (input.dim() > 3 && input.is_cpu() && autocast::is_autocast_enabled(kCPU))
    squares = autocast::cached_cast(kFloat, squares, kCPU);
  const Tensor around = constant_pad_nd(squares, {0, 0, size / 2, (size - 1) / 2}),
               means = avg_pool2d(around, {size, 1}, 1);
  return input / means.reshape(input.sizes()).mul(alpha).add(k).pow(beta);
}
Tensor local_response_norm(const Tensor& input, const LocalResponseNormFuncOptions& options) {
  return detail::local_response_norm(input, options.size(), options.alpha(), options.beta(),
                                     options.k());
}

}  // namespace functional
}  // namespace ramet::nn
