// EmbeddingBag: sums, means or maxima of bags of rows.
#pragma once
#include <optional>
#include <variant>

#include "nn/module/any_module.h"
#include "nn/module/enum.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

using EmbeddingBagMode = OneOf<enumtype::kSum, enumtype::kMean, enumtype::kMax>;

struct RAMET_API EmbeddingBagOptions {
  EmbeddingBagOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {}
  RAMET_ARG(int64_t, num_embeddings);
  RAMET_ARG(int64_t, embedding_dim);
  /// Rows that are used and have a larger norm are scaled to it first, in place.
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  /// What a bag's rows become: their sum, mean or maximum.
  RAMET_ARG(EmbeddingBagMode, mode) = kMean;
  /// Not implemented: an Error at construction.
  RAMET_ARG(bool, sparse) = false;
  /// The weight to start with; undefined: drawn.
  RAMET_ARG(Tensor, _weight);
  /// The last offset is the end of the last bag.
  RAMET_ARG(bool, include_last_offset) = false;
  /// This row starts as zeros, counts as not there and gets no gradient. Negative: from the end.
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

struct RAMET_API EmbeddingBagFromPretrainedOptions {
  RAMET_ARG(bool, freeze) = true;
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  /// What a bag's rows become: their sum, mean or maximum.
  RAMET_ARG(EmbeddingBagMode, mode) = kMean;
  RAMET_ARG(bool, sparse) = false;
  RAMET_ARG(bool, include_last_offset) = false;
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

/// Reduces bags of rows of `weight` (num_embeddings, embedding_dim), which starts normal(0, 1). In
/// a matrix of indices each row is a bag; a vector of indices is cut at `offsets`.
class RAMET_API EmbeddingBagImpl
    : public detail::ListedModule<EmbeddingBagImpl, EmbeddingBagOptions> {
 public:
  EmbeddingBagImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingBagImpl(EmbeddingBagOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingBagImpl(EmbeddingBagOptions options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {});

  Tensor weight;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::ListedModule<EmbeddingBagImpl, EmbeddingBagOptions>;
extern template class Cloneable<EmbeddingBagImpl>;

class RAMET_API EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = EmbeddingBagImpl;
  /// Over the rows of `embeddings`, which become the weight.
  static EmbeddingBag from_pretrained(const Tensor& embeddings,
                                      const EmbeddingBagFromPretrainedOptions& options = {});
};

namespace functional {

struct RAMET_API EmbeddingBagFuncOptions {
  RAMET_ARG(Tensor, offsets);
  RAMET_ARG(std::optional<double>, max_norm) = std::nullopt;
  RAMET_ARG(double, norm_type) = 2.;
  RAMET_ARG(bool, scale_grad_by_freq) = false;
  /// What a bag's rows become: their sum, mean or maximum.
  RAMET_ARG(EmbeddingBagMode, mode) = kMean;
  RAMET_ARG(bool, sparse) = false;
  /// Of mode kSum alone: a factor for each row, of weight's dtype, in the shape of the indices.
  RAMET_ARG(Tensor, per_sample_weights);
  RAMET_ARG(bool, include_last_offset) = false;
  RAMET_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
};

namespace detail {
RAMET_API Tensor embedding_bag(const Tensor& input, const Tensor& weight, const Tensor& offsets,
                               std::optional<double> max_norm, double norm_type,
                               bool scale_grad_by_freq, EmbeddingBagMode mode, bool sparse,
                               const Tensor& per_sample_weights, bool include_last_offset,
                               std::optional<int64_t> padding_idx);
}  // namespace detail
RAMET_API Tensor embedding_bag(const Tensor& input, const Tensor& weight,
                               const EmbeddingBagFuncOptions& options = {});

}  // namespace functional
}  // namespace ramet::nn
