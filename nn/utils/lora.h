// apply_lora, merge_lora: fine-tuning of a model by LoRA branches in its Linear layers.
//
//     nn::apply_lora(net, 8, 16);                        // all that it trains from here on is LoRA
//     optim::AdamW adam(nn::lora_parameters(net), 1e-3);
//     ...
//     serialize::save_safetensors("adapter.safetensors", {nn::lora_state_dict(net), {}});
//     nn::merge_lora(net);                               // Linear layers again
//
// The names are those of PEFT, the Python library. Its adapter_model.safetensors is such a file
// with "base_model.model." before each name; rank and alpha are in another file. A layer keeps its
// identity (Note [A branch in the layer]), so members of user modules go on to work. What reads a
// layer's weight itself, as `linear(x, layer->weight)`, does not see the branch. The library's own
// readers do: MultiheadAttention, export_onnx. Each function takes a module, a holder or a
// shared_ptr.
//
// Cast the model to 16 bits before apply_lora: then the branches stay in float32. A to() after it
// casts them too. They are cloned, replicated, saved and loaded as other parameters are.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/layers/basic/lora.h"

namespace ramet {
namespace nn {

namespace detail {
inline Module& module_of(Module& module) { return module; }
template <class M> Module& module_of(const ModuleHolder<M>& module) { return *module.ptr(); }
template <class M> Module& module_of(const std::shared_ptr<M>& module) {
  RAMET_CHECK(module, "lora", "got an empty module");
  return *module;
}
RAMET_API std::vector<std::string> apply_lora(
    Module& module, const LoRAOptions& branch,
    const std::function<bool(const std::string& name)>& filter);
RAMET_API std::vector<std::string> merge_lora(Module& module);
RAMET_API std::vector<Tensor> lora_parameters(Module& module);
RAMET_API std::vector<std::pair<std::string, Tensor>> lora_state_dict(Module& module,
                                                                      const std::string& prefix);
RAMET_API void load_lora_state_dict(Module& module,
                                    const std::vector<std::pair<std::string, Tensor>>& state);
}  // namespace detail

/// Gives each Linear of the module whose dotted name `filter` accepts a branch (LoRAOptions), by
/// default all. All parameters but those of branches are frozen and lose their gradients. Returns
/// the names. An Error, before anything is changed, where there is no such Linear, one has a branch
/// already, or a rank does not fit.
template <class M>
std::vector<std::string> apply_lora(
    M&& module, const LoRAOptions& branch,
    const std::function<bool(const std::string& name)>& filter = nullptr) {
  return detail::apply_lora(detail::module_of(module), branch, filter);
}
template <class M>
std::vector<std::string> apply_lora(
    M&& module, int64_t rank, double alpha,
    const std::function<bool(const std::string& name)>& filter = nullptr) {
  return detail::apply_lora(detail::module_of(module), LoRAOptions(rank, alpha), filter);
}

/// Folds each branch into its layer's weight (LinearImpl::merged_weight) and drops it. Returns the
/// layers' names; an Error where there is no branch. Parameters stay frozen. A weight that is
/// registered under several names becomes the layer's own, so that the others keep their values.
template <class M> std::vector<std::string> merge_lora(M&& module) {
  return detail::merge_lora(detail::module_of(module));
}

/// The matrices of all branches, for an optimizer.
template <class M> std::vector<Tensor> lora_parameters(M&& module) {
  return detail::lora_parameters(detail::module_of(module));
}
/// The same, detached and with names: `prefix`, "layer.lora_A.weight" and "layer.lora_B.weight".
/// They share the module's memory. An Error where fully_shard has cut them.
template <class M>
std::vector<std::pair<std::string, Tensor>> lora_state_dict(
    M&& module, const std::string& prefix = std::string()) {
  return detail::lora_state_dict(detail::module_of(module), prefix);
}
/// Copies such tensors into the branches, each cast to its dtype. Names may begin with PEFT's
/// "base_model.model.". An Error, before anything is changed, where a name is missing, unknown or
/// given twice, or where sizes differ.
template <class M>
void load_lora_state_dict(M&& module, const std::vector<std::pair<std::string, Tensor>>& state) {
  detail::load_lora_state_dict(detail::module_of(module), state);
}

}  // namespace nn
}  // namespace ramet
