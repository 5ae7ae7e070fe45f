// Weights of GPT-2 in files of `transformers`.
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/serialize/safetensors.h"
#include "runtime/base/atomic_file.h"
#include "tools/training/gpt2.h"

namespace ramet::training {
namespace {

constexpr std::string_view kPrefix = "transformer.", kIds = "wte.weight", kHead = "lm_head.weight";

// A matrix of a Conv1D, which is stored as (in, out).
bool stored_transposed(std::string_view name) {
  for (const char* end : {"c_attn.weight", "c_proj.weight", "c_fc.weight"})
    if (name.ends_with(end)) return true;
  return false;
}
Tensor as_stored(const std::string& name, const Tensor& parameter) {
  return stored_transposed(name) ? parameter.t() : parameter;
}

}  // namespace

void load_gpt2(Gpt2Impl& model, const std::string& path) {
  const auto wrong = [&](const std::string& name, const auto&... parts) {
    fail("train", "--weights \"", path, "\": tensor \"", name, "\": ", parts...);
  };
  const serialize::Safetensors file = serialize::map_safetensors(path, /*verify=*/true);
  const auto parameters = model.named_parameters();
  std::map<std::string, Tensor> found;
  Tensor head;
  for (const auto& [stored, tensor] : file.tensors) {
    std::string name = stored;
    if (name.compare(0, kPrefix.size(), kPrefix) == 0) name = name.substr(kPrefix.size());
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) continue;
    const bool is_head = stored == kHead;
    const Tensor* own = parameters.find(is_head ? std::string(kIds) : name);
    if (!own) wrong(stored, "got it, expected a name of a GPT-2 of --size ", model.size.name);
    const Tensor expected = as_stored(name, *own);
    if (tensor.sizes() != expected.sizes())
      wrong(stored, "got the shape ", tensor.sizes(), ", expected ", expected.sizes(),
            " as of --size ", model.size.name);
    if (!is_floating(tensor.scalar_type()))
      wrong(stored, "got ", short_name_of(tensor.scalar_type()), ", expected a floating dtype");
    if (is_head) head = tensor;
    else if (!found.emplace(name, tensor).second)
      wrong(stored, "got it twice, with and without \"", kPrefix, "\", expected it once");
  }
  for (const auto& item : parameters)
    if (!found.count(item.key()))
      wrong(item.key(), "got none, expected one of the shape ",
            as_stored(item.key(), item.value()).sizes());
  if (head.defined() && !equal(head, found.at(std::string(kIds))))
    wrong(std::string(kHead), "got other values than those of \"", kIds,
          "\", expected the same: GPT-2's head shares them");
  const NoGradGuard off;
  for (const auto& item : parameters)
    as_stored(item.key(), item.value()).copy_(found.at(item.key()));
}

void save_gpt2(const Gpt2Impl& model, const std::string& folder) {
  serialize::Safetensors file;
  file.metadata["format"] = "pt";  // what transformers asks for
  for (const auto& item : model.named_parameters())
    file.tensors.emplace_back(std::string(kPrefix) + item.key(),
                              as_stored(item.key(), item.value().detach()));
  serialize::save_safetensors(folder + "/model.safetensors", file);

  const Gpt2Size& size = model.size;
  nlohmann::ordered_json config = {{"model_type", "gpt2"},
                                   {"architectures", {"GPT2LMHeadModel"}},
                                   {"activation_function", "gelu_new"},
                                   {"layer_norm_epsilon", 1e-5},
                                   {"tie_word_embeddings", true}};
  config["vocab_size"] = size.symbols;
  config["n_positions"] = size.context;
  config["n_embd"] = size.width;
  config["n_layer"] = size.layers;
  config["n_head"] = size.heads;
  for (const char* where : {"embd_pdrop", "attn_pdrop", "resid_pdrop"})
    config[where] = model.dropout;
  // GPT-2's last id ends a text.
  config["bos_token_id"] = config["eos_token_id"] = size.symbols - 1;
  write_file_atomically(folder + "/config.json", config.dump(2) + "\n");
}

}  // namespace ramet::training
