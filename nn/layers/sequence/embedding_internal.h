// What Embedding and EmbeddingBag share. Private to nn.
#pragma once
#include "autograd/grad_mode.h"
#include "autograd/ops/layers/embedding_bag.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "nn/init.h"

namespace ramet::nn::detail {

/// `index` counted from the first of `rows`; an Error where it names none.
inline int64_t padding_row(const char* op, int64_t index, int64_t rows) {
  RAMET_CHECK(index >= -rows && index < rows, op, "Padding_idx must be within num_embeddings: got ",
              index, ", expected [", -rows, ", ", rows, ")");
  return index < 0 ? index + rows : index;
}

/// Scales the rows of `weight` that are used to a norm of at most max_norm, in place.
inline void limit_rows(const Tensor& weight, const Tensor& input, double max_norm,
                       double norm_type) {
  const NoGradGuard off;
  Tensor limited = weight;
  // As LibTorch: numbers of 32 bits.
  embedding_renorm_(limited, input, static_cast<float>(max_norm), static_cast<float>(norm_type));
}

/// reset() of both. `given` is the class's name, in its Error, for a weight that the program gives.
template <class Module> void reset_embedding(Module& module, const char* name, const char* given) {
  auto& options = module.options;
  const int64_t rows = options.num_embeddings(), cols = options.embedding_dim();
  if (options.sparse())
    throw NotImplementedError("[" + std::string(name) + "] sparse gradients are not implemented");
  RAMET_CHECK(rows >= 0 && cols >= 0, name, "num_embeddings and embedding_dim: got ", rows, " and ",
              cols, ", expected 0 or more");
  if (options.padding_idx()) options.padding_idx(padding_row(name, *options.padding_idx(), rows));
  if (!options._weight().defined()) {
    module.weight = module.register_parameter("weight", empty({rows, cols}));
    module.reset_parameters();
  } else {
    RAMET_CHECK(options._weight().sizes() == IntArrayRef({rows, cols}), name, "Shape of ", given,
                " does not match num_embeddings and embedding_dim: got ",
                describe(options._weight()), ", expected [", rows, ", ", cols, "]");
    module.weight = module.register_parameter("weight", options._weight());
    options._weight(Tensor());  // a clone's reset() makes a tensor of its own
  }
}

/// reset_parameters() of both: normal(0, 1), and zeros in the padding's row.
template <class Module> void draw_embedding(Module& module) {
  init::normal_(module.weight);
  if (!module.options.padding_idx()) return;
  const NoGradGuard off;
  module.weight.select(0, *module.options.padding_idx()).fill_(0);
}

}  // namespace ramet::nn::detail
