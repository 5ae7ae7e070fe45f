// weight_norm, spectral_norm: a module's weight computed from others for each call.
//
// They are upstream's Python's functions torch.nn.utils.weight_norm and spectral_norm, LibTorch has
// none: of the two forms that Python has, the one whose names published files hold (weight_g and
// weight_v; weight_orig, weight_u and weight_v), not torch.nn.utils.parametrizations, whose
// parameters are called parametrizations.weight.original0. The signatures are Python's, the module
// a holder or shared_ptr, which is returned.
//
// Call the module, `conv(x)`: a direct `conv->forward(x)` runs no hooks and finds no weight (Note
// [Computed parameters]). Such modules are cloned, replicated, saved and captured as others are;
// fully_shard is refused when they are called. A module that reads the parameter from the registry
// (LSTM and its kin) is refused.
#pragma once
#include <optional>
#include <string>

#include "nn/module/module.h"

namespace ramet {
namespace nn {
namespace utils {

namespace detail {
RAMET_API void weight_norm(Module& module, const std::string& name, std::optional<int64_t> dim);
RAMET_API void remove_weight_norm(Module& module, const std::string& name);
RAMET_API void spectral_norm(Module& module, const std::string& name, int64_t n_power_iterations,
                             double eps, std::optional<int64_t> dim);
RAMET_API void remove_spectral_norm(Module& module, const std::string& name);
}  // namespace detail

/// weight = g v / ||v||, Salimans and Kingma 2016: parameters NAME_g, which starts as the norm of
/// the weight over all dimensions but `dim` (nullopt or -1: over all), and NAME_v, the weight.
template <class M>
M weight_norm(M module, const std::string& name = "weight", std::optional<int64_t> dim = 0) {
  detail::weight_norm(*module, name, dim);
  return module;
}
/// `name` is a parameter again, with the value that it has now; the parts go. Returns the module.
template <class M> M remove_weight_norm(M module, const std::string& name = "weight") {
  detail::remove_weight_norm(*module, name);
  return module;
}

/// weight = w / sigma, Miyato et al. 2018: parameter NAME_orig, w, and buffers NAME_u and NAME_v,
/// from which sigma = u^T W v, the largest singular value of W, which is w with `dim` first and all
/// others as columns. In training each call first takes n_power_iterations steps v = W^T u / ||W^T
/// u||, u = W v / ||W v|| (norms of at least eps), which have no gradient. `dim` is 1 of transposed
/// convolutions and 0 of all others, unless given.
template <class M>
M spectral_norm(M module, const std::string& name = "weight", int64_t n_power_iterations = 1,
                double eps = 1e-12, std::optional<int64_t> dim = std::nullopt) {
  detail::spectral_norm(*module, name, n_power_iterations, eps, dim);
  return module;
}
/// `name` is a parameter again, with the value that it has now. Returns the module.
template <class M> M remove_spectral_norm(M module, const std::string& name = "weight") {
  detail::remove_spectral_norm(*module, name);
  return module;
}

}  // namespace utils
}  // namespace nn
}  // namespace ramet
