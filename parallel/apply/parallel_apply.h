// parallel_apply: calls several replicas concurrently, each on its device
// (parallel/replicas/run_replicas.h).
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "nn/module/module_holder.h"
#include "nn/module/module_hooks.h"
#include "parallel/replicas/run_replicas.h"

namespace ramet {
namespace nn {
namespace parallel {
namespace detail {
template <class M> M& module_of(const std::shared_ptr<M>& m) { return *m; }
template <class Impl> Impl& module_of(const ModuleHolder<Impl>& m) { return *m.ptr(); }
}  // namespace detail

/// outputs[i] = modules[i](inputs[i]), concurrently, moved to devices[i] (by default the device of
/// inputs[i]). ModuleType: a holder or a shared_ptr.
template <class ModuleType>
std::vector<Tensor> parallel_apply(
    std::vector<ModuleType>& modules, const std::vector<Tensor>& inputs,
    const std::optional<std::vector<Device>>& devices = std::nullopt) {
  RAMET_CHECK(modules.size() == inputs.size(), "parallel_apply",
              "Must have as many inputs as modules: got ", inputs.size(), " inputs and ",
              modules.size(), " modules");
  RAMET_CHECK(!devices || devices->size() == modules.size(), "parallel_apply",
              "Must have as many devices as modules: got ", devices ? devices->size() : 0,
              " devices and ", modules.size(), " modules");
  std::vector<Device> where;
  for (size_t i = 0; i < inputs.size(); ++i) {
    RAMET_CHECK(devices || inputs[i].defined(), "parallel_apply", "in replica ", i,
                ", no device was provided and no tensor input was found; device "
                "cannot be resolved");
    where.push_back(resolve(devices ? (*devices)[i] : inputs[i].device()));
  }
  std::vector<Tensor> outputs(inputs.size());
  detail::run_replicas(where, [&](int i) {
    const auto k = static_cast<size_t>(i);
    outputs[k] = call(detail::module_of(modules[k]), inputs[k]).to(where[k]);
  });
  return outputs;
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
