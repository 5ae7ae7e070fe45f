#include "nn/layers/pooling.h"

#include <ostream>

#include "nn/functional/functional.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

template <size_t D, class Derived>
void MaxPoolImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::MaxPool") << D
         << "d(kernel_size=" << options.kernel_size() << ", stride=" << options.stride()
         << ", padding=" << options.padding() << ", dilation=" << options.dilation()
         << ", ceil_mode=" << options.ceil_mode() << ")";
}
template <size_t D, class Derived>
void AvgPoolImpl<D, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::AvgPool") << D << "d(kernel_size=" << options.kernel_size()
         << ", stride=" << options.stride() << ", padding=" << options.padding() << ")";
}
template <size_t D, class output_size_t, class Derived>
void AdaptiveAvgPoolImpl<D, output_size_t, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::AdaptiveAvgPool") << D
         << "d(output_size=" << options.output_size() << ")";
}

template class MaxPoolImpl<1, MaxPool1dImpl>;
template class MaxPoolImpl<2, MaxPool2dImpl>;
template class AvgPoolImpl<1, AvgPool1dImpl>;
template class AvgPoolImpl<2, AvgPool2dImpl>;
template class AdaptiveAvgPoolImpl<1, ExpandingArray<1>, AdaptiveAvgPool1dImpl>;
template class AdaptiveAvgPoolImpl<2, ExpandingArrayWithOptionalElem<2>, AdaptiveAvgPool2dImpl>;

Tensor MaxPool1dImpl::forward(const Tensor& input) {
  return functional::max_pool1d(input, options);
}
std::tuple<Tensor, Tensor> MaxPool1dImpl::forward_with_indices(const Tensor& input) {
  return functional::max_pool1d_with_indices(input, options);
}
Tensor MaxPool2dImpl::forward(const Tensor& input) {
  return functional::max_pool2d(input, options);
}
std::tuple<Tensor, Tensor> MaxPool2dImpl::forward_with_indices(const Tensor& input) {
  return functional::max_pool2d_with_indices(input, options);
}
Tensor AvgPool1dImpl::forward(const Tensor& input) {
  return functional::avg_pool1d(input, options);
}
Tensor AvgPool2dImpl::forward(const Tensor& input) {
  return functional::avg_pool2d(input, options);
}
Tensor AdaptiveAvgPool1dImpl::forward(const Tensor& input) {
  return functional::adaptive_avg_pool1d(input, options);
}
Tensor AdaptiveAvgPool2dImpl::forward(const Tensor& input) {
  return functional::adaptive_avg_pool2d(input, options);
}

template class Cloneable<MaxPool1dImpl>;
template class Cloneable<MaxPool2dImpl>;
template class Cloneable<AvgPool1dImpl>;
template class Cloneable<AvgPool2dImpl>;
template class Cloneable<AdaptiveAvgPool1dImpl>;
template class Cloneable<AdaptiveAvgPool2dImpl>;

}  // namespace ramet::nn
