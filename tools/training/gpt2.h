// GPT-2 (Radford et al. 2019): a model of ids, with the names that `transformers` gives its parts.
#pragma once
#include <string>

#include "nn/layers/basic/dropout.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/module/module_list.h"

namespace ramet::training {

struct Gpt2Size {
  const char* name;
  int64_t layers, width, heads;
  /// How many ids there are, and how many the model sees at once.
  int64_t symbols = 50257, context = 1024;
};
/// "tiny", "124M" and so on. An Error for another name.
const Gpt2Size& gpt2_size(const std::string& name);
/// "tiny, 124M, ... or xl".
std::string gpt2_sizes();

/// Vectors of ids and places, blocks that normalise first, and a head that shares its matrix with
/// the vectors of ids. Weights start normal with the standard deviation 0.02, those that end a
/// residual branch with 0.02 / sqrt(2 layers). `dropout` follows the vectors and each branch, and
/// is in attention.
struct Gpt2Impl : nn::Cloneable<Gpt2Impl> {
  Gpt2Impl(const Gpt2Size& size_, double dropout_) : size(size_), dropout(dropout_) {
    Gpt2Impl::reset();
  }
  void reset() override;
  /// The sum (1) of the losses of targets, each of which follows the id at its place in `ids`
  /// (N, T). Replicas return one sum each.
  Tensor forward(const Tensor& ids, const Tensor& targets);
  /// Of each next id: (N, T, symbols).
  Tensor logits(const Tensor& ids);

  Gpt2Size size;
  double dropout;
  nn::Embedding wte{nullptr}, wpe{nullptr};
  nn::Dropout drop{nullptr};
  nn::ModuleList h{nullptr};
  nn::LayerNorm ln_f{nullptr};

 private:
  Tensor vectors(const Tensor& ids);
};
RAMET_MODULE(Gpt2);

/// Takes over the weights of a safetensors file that `transformers` wrote of a GPT2LMHeadModel or a
/// GPT2Model of the same size. Names may begin with "transformer.". Matrices of its Conv1D are
/// stored as (in, out). lm_head.weight may be there if it equals wte.weight. Old masks
/// (attn.bias, attn.masked_bias) are ignored. Values may be of any floating dtype. An Error, before
/// anything is changed, where the file has another tensor, lacks one, or has one of another shape
/// or dtype.
void load_gpt2(Gpt2Impl& model, const std::string& path);
/// Writes model.safetensors and config.json into the folder, as `transformers` does:
/// GPT2LMHeadModel.from_pretrained(folder) reads them.
void save_gpt2(const Gpt2Impl& model, const std::string& folder);

}  // namespace ramet::training
