// weight_norm, spectral_norm: a module's weight computed from others for each call.
//
// These are functions of Python's torch.nn.utils; LibTorch does not have them. Python has two
// forms. This is the one with the names that published files hold: weight_g and weight_v;
// weight_orig, weight_u and weight_v. The other form is torch.nn.utils.parametrizations, with
// parameters such as parametrizations.weight.original0. The signatures are Python's. They return
// the module, a holder or shared_ptr.
//
// Call the module, `conv(x)`: a direct `conv->forward(x)` runs no hooks and finds no weight (Note
// [Computed parameters]). Such modules are cloned, replicated, saved and captured as others are.
// After fully_shard their calls are an Error. A module that reads the parameter from the registry
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

/// weight = g v / ||v||, Salimans and Kingma 2016. Parameter NAME_g starts as the norm of the
/// weight over all dimensions but `dim` (nullopt or -1: over all). Parameter NAME_v starts as the
/// weight.
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

/// weight = w / sigma, Miyato et al. 2018. It has the parameter NAME_orig, w, and the buffers
/// NAME_u and NAME_v. sigma = u^T W v is the largest singular value of W. W is w with `dim` first
/// and all other dimensions as columns. In training each call first makes n_power_iterations steps
/// without gradient: v = W^T u / ||W^T u||. u = W v / ||W v|| (norms of at least eps). By default
/// `dim` is 1 for transposed convolutions and 0 for all others.
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
