#include "nn/utils/lora.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "runtime/capture/capture.h"

namespace ramet::nn {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;
using Layers = std::vector<std::pair<std::string, LinearImpl*>>;

constexpr std::string_view kPeft = "base_model.model.";

std::string joined(const std::string& module, const std::string& member) {
  return module.empty() ? member : module + "." + member;
}

// The Linear layers below a module and itself, each once. The matrices of branches are none.
void add_layers(const std::string& name, Module& m, std::set<const Module*>& seen, Layers& out) {
  if (!seen.insert(&m).second) return;
  auto* const linear = m.as<LinearImpl>();
  if (linear) out.emplace_back(name, linear);
  for (const auto& child : m.own_children()) {
    const bool of_branch = linear && linear->lora() && child.key().rfind("lora_", 0) == 0;
    if (child.value() && !of_branch)
      add_layers(joined(name, child.key()), *child.value(), seen, out);
  }
}
Layers layers_of(Module& module) {
  std::set<const Module*> seen;
  Layers out;
  add_layers("", module, seen, out);
  return out;
}
Layers branches_of(Module& module) {
  Layers out = layers_of(module);
  out.erase(std::remove_if(out.begin(), out.end(), [](const auto& l) { return !l.second->lora(); }),
            out.end());
  return out;
}

// A branch's matrices, with the names that they have in files.
Named matrices(const Layers& layers) {
  Named out;
  for (const auto& [name, linear] : layers)
    for (const char* child : {"lora_A", "lora_B"})
      out.emplace_back(joined(name, child) + ".weight",
                       linear->own_children()[child]->own_parameters()["weight"]);
  return out;
}

// The same for files, which hold whole tensors.
Named whole_matrices(const char* op, Module& module) {
  const Layers layers = branches_of(module);
  for (const auto& [name, linear] : layers)
    for (const char* child : {"lora_A", "lora_B"})
      RAMET_CHECK(!linear->own_children()[child]->holds_shards(), op, "'", joined(name, child),
                  "': got shards of its weight, expected the whole");
  return matrices(layers);
}

// MultiheadAttention adds the branch to the weight, so an input of the branch does not exist.
void check_attention(Module& module, const LoRAOptions& branch, const Layers& chosen) {
  if (branch.dropout() == 0) return;
  const auto check = [&](Module& m) {
    const auto* const attention = m.as<MultiheadAttentionImpl>();
    for (const auto& [name, linear] : chosen)
      RAMET_CHECK(!attention || attention->out_proj.get() != linear, "apply_lora", "'", name,
                  "' of a MultiheadAttention: got dropout ", branch.dropout(),
                  ", expected 0, since the module reads the layer's weight");
  };
  module.apply(Module::ModuleApplyFunction(check));
}

}  // namespace

std::vector<std::string> detail::apply_lora(
    Module& module, const LoRAOptions& branch,
    const std::function<bool(const std::string& name)>& filter) {
  capture::refuse("apply_lora", "a module changes");
  const Layers all = layers_of(module);
  Layers chosen;
  for (const auto& layer : all)
    if (!filter || filter(layer.first)) chosen.push_back(layer);
  RAMET_CHECK(!chosen.empty(), "apply_lora", module.name(), ": got ", all.size(),
              " Linear layers and a filter that accepts none, expected at least one");
  for (const auto& [name, linear] : chosen) {
    try {
      linear->check_lora(branch);
    } catch (const Error& e) { fail("apply_lora", "'", name, "': ", e.what()); }
  }
  check_attention(module, branch, chosen);

  std::vector<std::string> names;
  for (const auto& [name, linear] : chosen) {
    linear->add_lora(branch);
    names.push_back(name);
  }
  std::set<const TensorImpl*> trained;
  for (const Tensor& t : lora_parameters(module)) trained.insert(t.impl());
  for (const Tensor& t : module.parameters()) {
    if (trained.count(t.impl())) continue;
    t.set_requires_grad(false);
    autograd::zero_grad(t, /*set_to_none=*/true);
  }
  return names;
}

std::vector<std::string> detail::merge_lora(Module& module) {
  capture::refuse("merge_lora", "a module changes");
  const Layers layers = branches_of(module);
  RAMET_CHECK(!layers.empty(), "merge_lora", module.name(), ": got no LoRA branch, expected one");
  std::map<const TensorImpl*, int> owners;  // registries that hold a parameter
  std::set<const Module*> seen;
  const auto note = [&](const Module& m) {
    if (!seen.insert(&m).second) return;
    for (const auto& p : m.own_parameters())
      if (p.value().defined()) ++owners[p.value().impl()];
  };
  module.apply(Module::ModuleApplyFunction(note));
  std::vector<std::string> names;
  for (const auto& [name, linear] : layers) {
    linear->merge_lora(/*own_memory=*/owners[linear->weight.impl()] > 1);
    names.push_back(name);
  }
  return names;
}

std::vector<Tensor> detail::lora_parameters(Module& module) {
  std::vector<Tensor> out;
  for (const auto& [name, tensor] : matrices(branches_of(module))) out.push_back(tensor);
  return out;
}

Named detail::lora_state_dict(Module& module, const std::string& prefix) {
  Named out;
  for (const auto& [name, tensor] : whole_matrices("lora_state_dict", module))
    out.emplace_back(prefix + name, tensor.detach());
  return out;
}

void detail::load_lora_state_dict(Module& module, const Named& state) {
  const char* const op = "load_lora_state_dict";
  std::map<std::string, Tensor> given;
  for (const auto& [name, tensor] : state) {
    const std::string own = name.rfind(kPeft, 0) == 0 ? name.substr(kPeft.size()) : name;
    RAMET_CHECK(given.emplace(own, tensor).second, op, "got '", own, "' twice");
  }
  const Named wanted = whole_matrices(op, module);
  RAMET_CHECK(!wanted.empty(), op, module.name(), ": got no LoRA branch, call apply_lora first");
  for (const auto& [name, tensor] : wanted) {
    const auto at = given.find(name);
    RAMET_CHECK(at != given.end(), op, "'", name, "' is missing: got ", state.size(), " tensors");
    const Tensor& value = at->second;
    RAMET_CHECK(value.defined() && value.is_floating_point() && value.sizes() == tensor.sizes(), op,
                "'", name, "': got ", describe(value), ", expected ", describe(tensor));
  }
  for (const auto& [name, tensor] : given) {
    const auto same = [&key = name](const auto& w) { return w.first == key; };
    RAMET_CHECK(std::any_of(wanted.begin(), wanted.end(), same), op, "'", name,
                "' is no matrix of a LoRA branch of ", module.name());
  }
  const NoGradGuard off;
  for (const auto& [name, tensor] : wanted) tensor.copy_(given[name]);
}

}  // namespace ramet::nn
