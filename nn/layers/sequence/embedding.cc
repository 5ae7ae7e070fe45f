#include "nn/layers/sequence/embedding.h"

#include "nn/functional/functional.h"
#include "nn/layers/sequence/embedding_internal.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options_) : ListedModule(options_) {
  EmbeddingImpl::reset();
}

void EmbeddingImpl::reset() { detail::reset_embedding(*this, "Embedding", "_weight"); }
void EmbeddingImpl::reset_parameters() { detail::draw_embedding(*this); }

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

RAMET_FIELDS(Embedding, {"num_embeddings", &o.num_embeddings(), kCount},
             {"embedding_dim", &o.embedding_dim(), kCount},
             {"padding_idx", &o.padding_idx(), kIfChanged}, {"max_norm", &o.max_norm(), kIfChanged},
             {"norm_type", &o.norm_type(), kIfChanged},
             {"scale_grad_by_freq", &o.scale_grad_by_freq(), kIfChanged})

}  // namespace ramet::nn
