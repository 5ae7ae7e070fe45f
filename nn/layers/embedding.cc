#include "nn/layers/embedding.h"

#include <ostream>

#include "autograd/grad_mode.h"
#include "autograd/ops/factory.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options_) : options(std::move(options_)) {
  EmbeddingImpl::reset();
}

void EmbeddingImpl::reset() {
  const int64_t rows = options.num_embeddings(), cols = options.embedding_dim();
  if (options.sparse())
    throw NotImplementedError("[Embedding] sparse gradients are not implemented");
  RAMET_CHECK(rows >= 0 && cols >= 0, "Embedding", "num_embeddings and embedding_dim: got ", rows,
              " and ", cols, ", expected 0 or more");
  if (options.padding_idx()) {
    const int64_t index = *options.padding_idx();
    RAMET_CHECK(index >= -rows && index < rows, "Embedding",
                "Padding_idx must be within num_embeddings: got ", index, ", expected [", -rows,
                ", ", rows, ")");
    if (index < 0) options.padding_idx(index + rows);
  }
  if (!options._weight().defined()) {
    weight = register_parameter("weight", empty({rows, cols}));
    reset_parameters();
  } else {
    RAMET_CHECK(options._weight().sizes() == IntArrayRef({rows, cols}), "Embedding",
                "Shape of _weight does not match num_embeddings and embedding_dim: got ",
                describe(options._weight()), ", expected [", rows, ", ", cols, "]");
    weight = register_parameter("weight", options._weight());
    options._weight(Tensor());  // a clone's reset() makes a tensor of its own
  }
}

void EmbeddingImpl::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx()) return;
  const NoGradGuard off;
  weight.select(0, *options.padding_idx()).fill_(0);
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Embedding(num_embeddings=") << options.num_embeddings()
         << ", embedding_dim=" << options.embedding_dim();
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  if (options.max_norm()) stream << ", max_norm=" << *options.max_norm();
  if (options.norm_type() != 2) stream << ", norm_type=" << options.norm_type();
  if (options.scale_grad_by_freq())
    stream << std::boolalpha << ", scale_grad_by_freq=" << options.scale_grad_by_freq();
  stream << ")";
}

Tensor EmbeddingImpl::forward(const Tensor& indices) {
  return functional::embedding(indices, weight,
                               functional::EmbeddingFuncOptions()
                                   .padding_idx(options.padding_idx())
                                   .max_norm(options.max_norm())
                                   .norm_type(options.norm_type())
                                   .scale_grad_by_freq(options.scale_grad_by_freq()));
}

Embedding Embedding::from_pretrained(const Tensor& embeddings,
                                     const EmbeddingFromPretrainedOptions& options) {
  RAMET_CHECK(embeddings.dim() == 2, "Embedding",
              "Embeddings parameter is expected to be 2-dimensional: got ", describe(embeddings));
  Embedding made(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                     ._weight(embeddings)
                     .padding_idx(options.padding_idx())
                     .max_norm(options.max_norm())
                     .norm_type(options.norm_type())
                     .scale_grad_by_freq(options.scale_grad_by_freq())
                     .sparse(options.sparse()));
  made->weight.set_requires_grad(!options.freeze());
  return made;
}

template class Cloneable<EmbeddingImpl>;

}  // namespace ramet::nn
