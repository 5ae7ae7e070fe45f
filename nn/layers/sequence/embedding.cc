#include "nn/layers/sequence/embedding.h"

#include <ostream>

#include "nn/functional/functional.h"
#include "nn/layers/sequence/embedding_internal.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options_) : options(std::move(options_)) {
  EmbeddingImpl::reset();
}

void EmbeddingImpl::reset() { detail::reset_embedding(*this, "Embedding", "_weight"); }
void EmbeddingImpl::reset_parameters() { detail::draw_embedding(*this); }

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
