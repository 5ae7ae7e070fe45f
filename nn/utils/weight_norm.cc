#include "nn/utils/weight_norm.h"

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/module/any_value.h"
#include "nn/module/computed_parameter.h"

namespace ramet::nn::utils {

namespace {

const char *const kWeightNorm = "weight_norm", *const kSpectralNorm = "spectral_norm";

class WeightNorm final : public ComputedParameter {
 public:
  WeightNorm(const std::string& name, std::optional<int64_t> dim)
      : ComputedParameter(kWeightNorm, name), dim_(dim == -1 ? std::nullopt : dim) {}

 protected:
  void check(const Module&, const Tensor& w) const override {
    RAMET_CHECK(w.is_floating_point(), kWeightNorm, "got ", describe(w),
                ", expected a floating point parameter");
    if (dim_) wrap_dim(kWeightNorm, *dim_, w.dim());
  }
  void register_parts(Module& module, const Tensor& w) const override {
    const bool trained = w.requires_grad();
    module.register_parameter(name() + "_g", norm_of(w.detach()), trained);
    module.register_parameter(name() + "_v", w.detach(), trained);
  }
  std::vector<std::string> parts() const override { return {name() + "_g", name() + "_v"}; }
  Tensor compute(Module& module, bool) const override {
    const Tensor &g = module.own_parameters()[name() + "_g"],
                 &v = module.own_parameters()[name() + "_v"];
    return v * (g / norm_of(v));
  }

 private:
  Tensor norm_of(const Tensor& v) const {
    if (!dim_) return v.norm();
    const int64_t kept = wrap_dim(kWeightNorm, *dim_, v.dim());
    std::vector<int64_t> others;
    for (int64_t d = 0; d < v.dim(); ++d)
      if (d != kept) others.push_back(d);
    return others.empty() ? v.abs() : v.norm(2, others, /*keepdim=*/true);
  }
  const std::optional<int64_t> dim_;
};

class SpectralNorm final : public ComputedParameter {
 public:
  SpectralNorm(const std::string& name, int64_t iterations, double eps, int64_t dim)
      : ComputedParameter(kSpectralNorm, name), iterations_(iterations), eps_(eps), dim_(dim) {}

 protected:
  void check(const Module&, const Tensor& w) const override {
    RAMET_CHECK(w.is_floating_point() && w.dim() > 0 && w.numel() > 0, kSpectralNorm, "got ",
                describe(w), ", expected a floating point parameter with elements");
    RAMET_CHECK(
        iterations_ > 0, kSpectralNorm,
        "Expected n_power_iterations to be positive, but got n_power_iterations=", iterations_);
    wrap_dim(kSpectralNorm, dim_, w.dim());
  }
  void register_parts(Module& module, const Tensor& w) const override {
    const Tensor matrix = matrix_of(w.detach());
    const auto drawn = [&](int64_t n) { return normal(randn({n}, matrix.options())); };
    const Tensor u = drawn(matrix.size(0)), v = drawn(matrix.size(1));
    module.register_parameter(name() + "_orig", w.detach(), w.requires_grad());
    module.register_buffer(name() + "_u", u);
    module.register_buffer(name() + "_v", v);
  }
  std::vector<std::string> parts() const override {
    return {name() + "_orig", name() + "_u", name() + "_v"};
  }
  Tensor compute(Module& module, bool in_call) const override {
    const Tensor& w = module.own_parameters()[name() + "_orig"];
    const Tensor &kept_u = module.own_buffers()[name() + "_u"],
                 &kept_v = module.own_buffers()[name() + "_v"];
    const Tensor matrix = matrix_of(w);
    Tensor u, v;
    {
      const NoGradGuard constants;
      // Copies: a call after this one writes the buffers while this one's gradient still waits.
      u = kept_u.clone(), v = kept_v.clone();
      if (in_call && module.is_training()) {
        for (int64_t i = 0; i < iterations_; ++i) {
          v = normal(matmul(matrix.t(), u));
          u = normal(matmul(matrix, v));
        }
        kept_u.copy_(u);
        kept_v.copy_(v);
      }
    }
    return w / (u * matmul(matrix, v)).sum();
  }

 private:
  Tensor normal(const Tensor& x) const { return x / x.norm().clamp_min(eps_); }
  Tensor matrix_of(const Tensor& w) const {
    const Tensor t = w.dim() > 1 ? w.movedim(dim_, 0) : w;
    return t.reshape({t.size(0), -1});
  }
  const int64_t iterations_;
  const double eps_;
  const int64_t dim_;
};

}  // namespace

void detail::weight_norm(Module& module, const std::string& name, std::optional<int64_t> dim) {
  ComputedParameter::add(module, std::make_shared<WeightNorm>(name, dim));
}
void detail::remove_weight_norm(Module& module, const std::string& name) {
  ComputedParameter::remove(module, kWeightNorm, name);
}
void detail::spectral_norm(Module& module, const std::string& name, int64_t n_power_iterations,
                           double eps, std::optional<int64_t> dim) {
  const bool transposed = dynamic_cast<const ConvTranspose1dImpl*>(&module) ||
                          dynamic_cast<const ConvTranspose2dImpl*>(&module) ||
                          dynamic_cast<const ConvTranspose3dImpl*>(&module);
  ComputedParameter::add(module, std::make_shared<SpectralNorm>(name, n_power_iterations, eps,
                                                                dim.value_or(transposed ? 1 : 0)));
}
void detail::remove_spectral_norm(Module& module, const std::string& name) {
  ComputedParameter::remove(module, kSpectralNorm, name);
}

}  // namespace ramet::nn::utils
