#include "nn/layers/image/pooling.h"

#include "nn/functional/functional.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

template <size_t D, class Derived> Tensor MaxPoolImpl<D, Derived>::forward(const Tensor& input) {
  if constexpr (D == 1) return functional::max_pool1d(input, this->options);
  else if constexpr (D == 2) return functional::max_pool2d(input, this->options);
  else return functional::max_pool3d(input, this->options);
}
template <size_t D, class Derived>
std::tuple<Tensor, Tensor> MaxPoolImpl<D, Derived>::forward_with_indices(const Tensor& input) {
  if constexpr (D == 1) return functional::max_pool1d_with_indices(input, this->options);
  else if constexpr (D == 2) return functional::max_pool2d_with_indices(input, this->options);
  else return functional::max_pool3d_with_indices(input, this->options);
}
template <size_t D, class Derived> Tensor AvgPoolImpl<D, Derived>::forward(const Tensor& input) {
  if constexpr (D == 1) return functional::avg_pool1d(input, this->options);
  else if constexpr (D == 2) return functional::avg_pool2d(input, this->options);
  else return functional::avg_pool3d(input, this->options);
}
template <size_t D, class output_size_t, class Derived>
Tensor AdaptiveAvgPoolImpl<D, output_size_t, Derived>::forward(const Tensor& input) {
  if constexpr (D == 1) return functional::adaptive_avg_pool1d(input, this->options);
  else if constexpr (D == 2) return functional::adaptive_avg_pool2d(input, this->options);
  else return functional::adaptive_avg_pool3d(input, this->options);
}
template <size_t D, class output_size_t, class Derived>
Tensor AdaptiveMaxPoolImpl<D, output_size_t, Derived>::forward(const Tensor& input) {
  return std::get<0>(forward_with_indices(input));
}
template <size_t D, class output_size_t, class Derived>
std::tuple<Tensor, Tensor> AdaptiveMaxPoolImpl<D, output_size_t, Derived>::forward_with_indices(
    const Tensor& input) {
  if constexpr (D == 1) return functional::adaptive_max_pool1d_with_indices(input, this->options);
  else if constexpr (D == 2)
    return functional::adaptive_max_pool2d_with_indices(input, this->options);
  else return functional::adaptive_max_pool3d_with_indices(input, this->options);
}

#define RAMET_WINDOW                                                                           \
  {"kernel_size", &o.kernel_size(), kCount}, {"stride", &o.stride(), kPositive | kAsBefore}, { \
    "padding", &o.padding(), kNotNegative                                                      \
  }
#define RAMET_SIZE \
  { "output_size", &o.output_size(), kCount, "a size, or a list of them" }
#define RAMET_POOLS(D, Size)                                                            \
  template class MaxPoolImpl<D, MaxPool##D##dImpl>;                                     \
  template class AvgPoolImpl<D, AvgPool##D##dImpl>;                                     \
  template class AdaptiveAvgPoolImpl<D, Size<D>, AdaptiveAvgPool##D##dImpl>;            \
  template class AdaptiveMaxPoolImpl<D, Size<D>, AdaptiveMaxPool##D##dImpl>;            \
  RAMET_FIELDS(MaxPool##D##d, RAMET_WINDOW, {"dilation", &o.dilation(), kPositive},     \
               {"ceil_mode", &o.ceil_mode()})                                           \
  RAMET_FIELDS(AvgPool##D##d, RAMET_WINDOW, {"ceil_mode", &o.ceil_mode(), kNotPrinted}, \
               {"count_include_pad", &o.count_include_pad(), kNotPrinted},              \
               {"divisor_override", &o.divisor_override(), kNotPrinted})                \
  RAMET_FIELDS(AdaptiveAvgPool##D##d, RAMET_SIZE)                                       \
  RAMET_FIELDS(AdaptiveMaxPool##D##d, RAMET_SIZE)
RAMET_POOLS(1, ExpandingArray)
RAMET_POOLS(2, ExpandingArrayWithOptionalElem)
RAMET_POOLS(3, ExpandingArrayWithOptionalElem)

}  // namespace ramet::nn
