// The contract of functions that give a module a distributed behaviour but do not change its type.
#pragma once
#include <functional>
#include <string>

#include "nn/module/module.h"

namespace ramet {
namespace distributed {

namespace detail {
/// Was the function `api` applied to this module itself?
RAMET_API bool is_applied(const std::string& api, const nn::Module& m);
/// Throws an Error if it was.
RAMET_API void check_not_applied(const std::string& api, const nn::Module& m);
/// Sets or clears the mark. An Error for a module that no shared_ptr owns. The marks end with the
/// module.
RAMET_API void set_applied(const std::string& api, const nn::Module& m, bool on);
}  // namespace detail

/// Runs `transform` on the module. Errors: `api` has been applied to this module before. Or the
/// full names of parameters, buffers or modules, or their order, have changed; what the transform
/// did then stays done. If the transform throws, `api` counts as not applied.
RAMET_API void apply_once(const std::string& api, nn::Module& module,
                          const std::function<void(nn::Module&)>& transform);

}  // namespace distributed
}  // namespace ramet
