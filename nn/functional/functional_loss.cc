// The losses of nn::functional.
#include "autograd/ops/loss/loss.h"
#include "nn/functional/functional.h"
#include "runtime/base/logging.h"

namespace ramet::nn::functional {
namespace {

// Undefined tensors are refused by the operation.
bool differ(const Tensor& input, const Tensor& target) {
  return input.defined() && target.defined() && input.sizes() != target.sizes();
}
void warn_of_broadcast(const char* op, const Tensor& input, const Tensor& target) {
  if (differ(input, target))
    RAMET_WARN_MISTAKE("[", op, "] Using a target size (", target.sizes(),
                       ") that is different to the input size (", input.sizes(),
                       "). This will likely lead to incorrect results due to broadcasting. Please "
                       "ensure they have the same size.");
}

}  // namespace

Tensor l1_loss(const Tensor& input, const Tensor& target, const L1LossFuncOptions& options) {
  warn_of_broadcast("l1_loss", input, target);
  return ramet::l1_loss(input, target, enumtype::reduction_get_enum(options.reduction()));
}
Tensor mse_loss(const Tensor& input, const Tensor& target, const MSELossFuncOptions& options) {
  warn_of_broadcast("mse_loss", input, target);
  return ramet::mse_loss(input, target, enumtype::reduction_get_enum(options.reduction()));
}
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1LossFuncOptions& options) {
  warn_of_broadcast("smooth_l1_loss", input, target);
  return ramet::smooth_l1_loss(input, target, enumtype::reduction_get_enum(options.reduction()),
                               options.beta().value_or(1.0));
}
Tensor binary_cross_entropy(const Tensor& input, const Tensor& target,
                            const BinaryCrossEntropyFuncOptions& options) {
  RAMET_CHECK(!differ(input, target), "binary_cross_entropy", "target size: got ", target.sizes(),
              ", expected the input's, ", input.sizes());
  return ramet::binary_cross_entropy(input, target, options.weight(),
                                     enumtype::reduction_get_enum(options.reduction()));
}

namespace detail {

Tensor binary_cross_entropy_with_logits(
    const Tensor& input, const Tensor& target, const Tensor& weight,
    const BinaryCrossEntropyWithLogitsFuncOptions::reduction_t& reduction,
    const Tensor& pos_weight) {
  RAMET_CHECK(!differ(input, target), "binary_cross_entropy_with_logits", "target size: got ",
              target.sizes(), ", expected the input's, ", input.sizes());
  return ramet::binary_cross_entropy_with_logits(input, target, weight, pos_weight,
                                                 enumtype::reduction_get_enum(reduction));
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const Tensor& weight,
                int64_t ignore_index, const NLLLossFuncOptions::reduction_t& reduction) {
  return ramet::nll_loss_nd(input, target, weight, enumtype::reduction_get_enum(reduction),
                            ignore_index);
}

Tensor cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight,
                     int64_t ignore_index, const CrossEntropyFuncOptions::reduction_t& reduction,
                     double label_smoothing) {
  return ramet::cross_entropy_loss(input, target, weight, enumtype::reduction_get_enum(reduction),
                                   ignore_index, label_smoothing);
}

}  // namespace detail
Tensor smooth_l1_loss(const Tensor& input, const Tensor& target,
                      const SmoothL1LossFuncOptions& options, double beta) {
  return smooth_l1_loss(input, target, SmoothL1LossFuncOptions(options).beta(beta));
}
Tensor binary_cross_entropy_with_logits(const Tensor& input, const Tensor& target,
                                        const BinaryCrossEntropyWithLogitsFuncOptions& options) {
  return detail::binary_cross_entropy_with_logits(input, target, options.weight(),
                                                  options.reduction(), options.pos_weight());
}
Tensor nll_loss(const Tensor& input, const Tensor& target, const NLLLossFuncOptions& options) {
  return detail::nll_loss(input, target, options.weight(), options.ignore_index(),
                          options.reduction());
}
Tensor cross_entropy(const Tensor& input, const Tensor& target,
                     const CrossEntropyFuncOptions& options) {
  return detail::cross_entropy(input, target, options.weight(), options.ignore_index(),
                               options.reduction(), options.label_smoothing());
}

}  // namespace ramet::nn::functional
