// Embedding.
#pragma once
#include <optional>

#include "nn/module/listed_module.h"

namespace ramet::nn {

struct RAMET_API EmbeddingOptions {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RAMET_ARG(int64_t, num_embeddings);
  RAMET_ARG(int64_t, embedding_dim);
  /// This row starts as zeros and gets no gradient. Negative: from the end.
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// Rows that are used and have a larger norm_type-norm are scaled to it first, in place
  /// (embedding_renorm_).
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  /// Not implemented: an Error at construction.
  RAMET_ARG(bool, sparse) = false;
  /// The weight to start with; undefined: drawn.
  RAMET_ARG(Tensor, _weight);
};

struct RAMET_API EmbeddingFromPretrainedOptions {
  RAMET_ARG(bool, freeze) = true;
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  RAMET_ARG(bool, sparse) = false;
};

/// Row i of `weight` (num_embeddings, embedding_dim) for each index i: (*) to (*, embedding_dim).
/// Starts normal(0, 1).
class RAMET_API EmbeddingImpl : public detail::ListedModule<EmbeddingImpl, EmbeddingOptions> {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& indices);

  Tensor weight;
};
extern template class detail::ListedModule<EmbeddingImpl, EmbeddingOptions>;
extern template class Cloneable<EmbeddingImpl>;

class RAMET_API Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = EmbeddingImpl;
  /// Over the rows of `embeddings`, which become the weight.
  static Embedding from_pretrained(const Tensor& embeddings,
                                   const EmbeddingFromPretrainedOptions& options = {});
};

}  // namespace ramet::nn
