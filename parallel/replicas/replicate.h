// replicate: independent replicas of a module. replicate_grad_edges: gradient edges from replicas
// that the program made.
#pragma once
#include <memory>
#include <type_traits>
#include <vector>

#include "nn/module/module_holder.h"
#include "parallel/replicas/replica_set.h"

namespace ramet {
namespace nn {
namespace parallel {

namespace detail {
template <class T> struct ModuleClass { using type = T; };
template <class T> struct ModuleClass<std::shared_ptr<T>> { using type = T; };
template <class T> struct HolderClass { using type = typename T::ContainedType; };
/// The module class of a holder, a shared_ptr or a module class.
template <class T>
using module_class_t = typename std::conditional_t<nn::detail::is_module_holder<T>::value,
                                                   HolderClass<T>, ModuleClass<T>>::type;

template <class T> std::shared_ptr<module_class_t<T>> shared(const T& module) {
  if constexpr (nn::detail::is_module_holder<T>::value) return module.ptr();
  else return module;
}
}  // namespace detail

/// Makes independent replicas of `module`, one for each device. The one on the module's own device
/// shares its memory. Gradients reach the module until the last replica is gone; the values are
/// those at the call. With `detach` they have no edges. ModuleType: a holder or a shared_ptr. No
/// device: no replica.
template <class ModuleType>
std::vector<ModuleType> replicate(const ModuleType& module, const std::vector<Device>& devices,
                                  bool detach = false) {
  std::vector<ModuleType> out;
  if (devices.empty()) return out;
  ReplicaOptions options;
  options.detach = detach;
  const std::shared_ptr<ReplicaSet> set =
      std::make_shared<ReplicaSet>(detail::shared(module), devices, options);
  set->refresh();
  using M = detail::module_class_t<ModuleType>;
  for (int i = 0; i < set->size(); ++i)
    out.emplace_back(std::shared_ptr<M>(set, &set->replica<M>(i)));
  return out;
}

namespace detail {
RAMET_API void replicate_grad_edges(const Module& module, const std::vector<Module*>& replicas,
                                    const std::vector<Device>& devices);
}
/// For replicas that the program made: adds the gradients of their parameters, and of buffers that
/// require grad, into `module`'s, matched by name. Errors: counts, names, shapes, dtypes or devices
/// differ. Does nothing while grad mode is off.
template <class ModuleType>
void replicate_grad_edges(const ModuleType& module, const std::vector<ModuleType>& replicas,
                          const std::vector<Device>& devices) {
  std::vector<Module*> list;
  for (const ModuleType& r : replicas) list.push_back(detail::shared(r).get());
  detail::replicate_grad_edges(*detail::shared(module), list, devices);
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
