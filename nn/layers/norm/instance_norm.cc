#include "nn/layers/norm/instance_norm.h"

#include "autograd/ops/layers/instance_norm.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "nn/init.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

template <int D, class Derived>
InstanceNormImpl<D, Derived>::InstanceNormImpl(const InstanceNormOptions& options_)
    : InstanceNormImpl::ListedModule(options_) {
  InstanceNormImpl::reset();
}

template <int D, class Derived> void InstanceNormImpl<D, Derived>::reset() {
  const int64_t features = options.num_features();
  const bool affine = options.affine(), track = options.track_running_stats();
  const auto parameter = [&](const char* name) {
    return this->register_parameter(name, affine ? ramet::empty({features}) : Tensor(), affine);
  };
  weight = parameter("weight");
  bias = parameter("bias");
  const auto buffer = [&](const char* name, const Tensor& t, BufferPolicy policy) {
    return this->register_buffer(name, t, policy);
  };
  running_mean = buffer("running_mean", track ? zeros({features}) : Tensor(), BufferPolicy::mean);
  running_var = buffer("running_var", track ? ones({features}) : Tensor(), BufferPolicy::mean);
  num_batches_tracked =
      buffer("num_batches_tracked", track ? zeros({}, kLong) : Tensor(), BufferPolicy::first);
  reset_parameters();
}

template <int D, class Derived> void InstanceNormImpl<D, Derived>::reset_running_stats() {
  if (!options.track_running_stats()) return;
  init::zeros_(running_mean);
  init::ones_(running_var);
  init::zeros_(num_batches_tracked);
}

template <int D, class Derived> void InstanceNormImpl<D, Derived>::reset_parameters() {
  reset_running_stats();
  if (!options.affine()) return;
  init::ones_(weight);
  init::zeros_(bias);
}

template <int D, class Derived> Tensor InstanceNormImpl<D, Derived>::forward(const Tensor& input) {
  RAMET_CHECK(input.defined(), "InstanceNorm", "expected a tensor: got an undefined one");
  RAMET_CHECK(input.dim() == D + 1 || input.dim() == D + 2, "InstanceNorm", "expected ", D + 1,
              "D or ", D + 2, "D input (got ", input.dim(), "D input)");
  const bool batched = input.dim() == D + 2;
  const Tensor y = functional::detail::instance_norm(
      batched ? input : input.unsqueeze(0), running_mean, running_var, weight, bias,
      this->is_training() || !options.track_running_stats(), options.momentum(), options.eps());
  return batched ? y : y.squeeze(0);
}

#define RAMET_INSTANCE_NORM(D)                                                          \
  template class InstanceNormImpl<D, InstanceNorm##D##dImpl>;                           \
  RAMET_FIELDS(InstanceNorm##D##d, {"num_features", &o.num_features(), kBare | kCount}, \
               {"eps", &o.eps()}, {"momentum", &o.momentum()}, {"affine", &o.affine()}, \
               {"track_running_stats", &o.track_running_stats()})
RAMET_INSTANCE_NORM(1)
RAMET_INSTANCE_NORM(2)
RAMET_INSTANCE_NORM(3)
#undef RAMET_INSTANCE_NORM

namespace functional {

Tensor detail::instance_norm(const Tensor& input, const Tensor& running_mean,
                             const Tensor& running_var, const Tensor& weight, const Tensor& bias,
                             bool use_input_stats, double momentum, double eps) {
  return ramet::instance_norm(input, weight, bias, running_mean, running_var, use_input_stats,
                              momentum, eps, /*cudnn_enabled=*/true);
}
Tensor instance_norm(const Tensor& input, const InstanceNormFuncOptions& options) {
  return detail::instance_norm(input, options.running_mean(), options.running_var(),
                               options.weight(), options.bias(), options.use_input_stats(),
                               options.momentum(), options.eps());
}

}  // namespace functional
}  // namespace ramet::nn
