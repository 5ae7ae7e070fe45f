// Linear, Identity.
//
// Note [A branch in the layer]
// LoRA (nn/layers/basic/lora.h) adds a branch to a layer that a program has already. The program
// calls the layer through holders of this type, in members, vectors and Sequential. None of these
// can be found and exchanged in every module: a class without clone() does not show its members. So
// the branch belongs to the layer itself, and each handle of the layer calls it, by forward() too.
// Its matrices are child modules. So files, replicas, optimizers and to() find them by name.
#pragma once
#include "nn/module/listed_module.h"

namespace ramet::nn {

struct LoRAOptions;

struct RAMET_API LinearOptions {
  LinearOptions(int64_t in_features, int64_t out_features)
      : in_features_(in_features), out_features_(out_features) {}
  RAMET_ARG(int64_t, in_features);
  RAMET_ARG(int64_t, out_features);
  RAMET_ARG(bool, bias) = true;
};

/// y = x weight^T + bias: (*, in_features) to (*, out_features). `weight` is (out_features,
/// in_features); `bias` is undefined without one. Both start uniform in +-1/sqrt(in_features).
class RAMET_API LinearImpl : public detail::ListedModule<LinearImpl, LinearOptions> {
 public:
  LinearImpl(int64_t in_features, int64_t out_features)
      : LinearImpl(LinearOptions(in_features, out_features)) {}
  explicit LinearImpl(const LinearOptions& options_);
  void reset() override;
  void reset_parameters();
  Tensor forward(const Tensor& input);
  void pretty_print(std::ostream& stream) const override;

  /// The options of its LoRA branch; null: it has none. Note [A branch in the layer].
  const std::shared_ptr<const LoRAOptions>& lora() const noexcept { return lora_; }
  /// Adds a branch as nn::apply_lora does; weight and bias still require gradients. An Error where
  /// there is one already, and for options that do not fit.
  void add_lora(const LoRAOptions& branch);
  /// Only the Errors of add_lora.
  void check_lora(const LoRAOptions& branch) const;
  /// The weight with the branch folded in: weight + alpha / rank * lora_B lora_A. It is computed in
  /// float32 for 16-bit weights, or in float64, and rounded once. `weight` itself without a branch.
  Tensor merged_weight() const;
  /// Drops the branch; `weight` is a parameter of these values from now on. With `own_memory` it is
  /// a new tensor, else the old one is written.
  void merge_lora(bool own_memory = false);

  Tensor weight, bias;

 private:
  void register_lora();
  Tensor with_lora(const Tensor& input, const Tensor& y) const;
  void guard_lora() const;

  std::shared_ptr<const LoRAOptions> lora_;
};
RAMET_LISTED_MODULE(Linear, LinearOptions)

/// Returns its input.
RAMET_LAYER(
    Identity, void, Tensor forward(const Tensor& input) { return input; })

}  // namespace ramet::nn
