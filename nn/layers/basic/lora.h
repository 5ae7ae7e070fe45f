// LoRA, Hu et al. 2021: a layer learns a sum of few outer products, and its weight stays.
//
// nn/utils/lora.h adds branches to the layers of a whole module.
#pragma once
#include "nn/layers/basic/linear.h"

namespace ramet::nn {

/// A branch of a Linear: y = x weight^T + bias + alpha / rank * (dropout(x) lora_A^T) lora_B^T.
/// lora_A.weight is (rank, in_features); lora_B.weight is (out_features, rank).
///
/// They have the weight's dtype, but float32 where that has 16 bits. The branch computes in their
/// dtype, and the sum is rounded once to the layer's. lora_A starts as the weight of a Linear does,
/// lora_B with zeros: as in the paper's programs and PEFT. So the layer's results are those of its
/// weight alone at first.
struct RAMET_API LoRAOptions {
  LoRAOptions(int64_t rank, double alpha) : rank_(rank), alpha_(alpha) {}
  /// From 1 to the smaller one of in_features and out_features.
  RAMET_ARG(int64_t, rank);
  /// Finite.
  RAMET_ARG(double, alpha);
  /// The probability with which training zeroes an element of the branch's input; from 0 to 1.
  RAMET_ARG(double, dropout) = 0;

 public:
  /// alpha / rank.
  double scaling() const { return alpha_ / static_cast<double>(rank_); }
};

struct RAMET_API LoRALinearOptions {
  LoRALinearOptions(int64_t in_features, int64_t out_features, int64_t rank)
      : in_features_(in_features), out_features_(out_features), rank_(rank) {}
  RAMET_ARG(int64_t, in_features);
  RAMET_ARG(int64_t, out_features);
  RAMET_ARG(bool, bias) = true;
  /// As in LoRAOptions:
  RAMET_ARG(int64_t, rank);
  RAMET_ARG(double, alpha) = 1;
  RAMET_ARG(double, dropout) = 0;
};

/// A Linear that has a LoRA branch from the start: `weight` and `bias` are frozen, and lora_A and
/// lora_B are trained. A Linear of nn::apply_lora is the same and prints the same.
class RAMET_API LoRALinearImpl : public LinearImpl {
 public:
  /// The class of its options.
  using options_t = LoRALinearOptions;
  LoRALinearImpl(int64_t in_features, int64_t out_features, int64_t rank)
      : LoRALinearImpl(LoRALinearOptions(in_features, out_features, rank)) {}
  explicit LoRALinearImpl(const LoRALinearOptions& options_);
  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;
  std::unique_ptr<Module> plain_copy() const override;
};
RAMET_MODULE(LoRALinear);

}  // namespace ramet::nn
