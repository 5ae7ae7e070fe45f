#include "nn/layers/image/pooling.h"

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
template class MaxPoolImpl<3, MaxPool3dImpl>;
template class AvgPoolImpl<1, AvgPool1dImpl>;
template class AvgPoolImpl<2, AvgPool2dImpl>;
template class AvgPoolImpl<3, AvgPool3dImpl>;
template class AdaptiveAvgPoolImpl<1, ExpandingArray<1>, AdaptiveAvgPool1dImpl>;
template class AdaptiveAvgPoolImpl<2, ExpandingArrayWithOptionalElem<2>, AdaptiveAvgPool2dImpl>;
template class AdaptiveAvgPoolImpl<3, ExpandingArrayWithOptionalElem<3>, AdaptiveAvgPool3dImpl>;

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
Tensor MaxPool3dImpl::forward(const Tensor& input) {
  return functional::max_pool3d(input, options);
}
std::tuple<Tensor, Tensor> MaxPool3dImpl::forward_with_indices(const Tensor& input) {
  return functional::max_pool3d_with_indices(input, options);
}
Tensor AvgPool1dImpl::forward(const Tensor& input) {
  return functional::avg_pool1d(input, options);
}
Tensor AvgPool2dImpl::forward(const Tensor& input) {
  return functional::avg_pool2d(input, options);
}
Tensor AvgPool3dImpl::forward(const Tensor& input) {
  return functional::avg_pool3d(input, options);
}
Tensor AdaptiveAvgPool1dImpl::forward(const Tensor& input) {
  return functional::adaptive_avg_pool1d(input, options);
}
Tensor AdaptiveAvgPool2dImpl::forward(const Tensor& input) {
  return functional::adaptive_avg_pool2d(input, options);
}

Tensor AdaptiveAvgPool3dImpl::forward(const Tensor& input) {
  return functional::adaptive_avg_pool3d(input, options);
}

template <size_t D, class output_size_t, class Derived>
void AdaptiveMaxPoolImpl<D, output_size_t, Derived>::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::AdaptiveMaxPool") << D
         << "d(output_size=" << options.output_size() << ")";
}
template <size_t D, class output_size_t, class Derived>
Tensor AdaptiveMaxPoolImpl<D, output_size_t, Derived>::forward(const Tensor& input) {
  return std::get<0>(forward_with_indices(input));
}
template <size_t D, class output_size_t, class Derived>
std::tuple<Tensor, Tensor> AdaptiveMaxPoolImpl<D, output_size_t, Derived>::forward_with_indices(
    const Tensor& input) {
  if constexpr (D == 1) return functional::adaptive_max_pool1d_with_indices(input, options);
  else if constexpr (D == 2) return functional::adaptive_max_pool2d_with_indices(input, options);
  else return functional::adaptive_max_pool3d_with_indices(input, options);
}
template class AdaptiveMaxPoolImpl<1, ExpandingArray<1>, AdaptiveMaxPool1dImpl>;
template class AdaptiveMaxPoolImpl<2, ExpandingArrayWithOptionalElem<2>, AdaptiveMaxPool2dImpl>;
template class AdaptiveMaxPoolImpl<3, ExpandingArrayWithOptionalElem<3>, AdaptiveMaxPool3dImpl>;

template class Cloneable<MaxPool3dImpl>;
template class Cloneable<AvgPool3dImpl>;
template class Cloneable<AdaptiveAvgPool3dImpl>;
template class Cloneable<AdaptiveMaxPool1dImpl>;
template class Cloneable<AdaptiveMaxPool2dImpl>;
template class Cloneable<AdaptiveMaxPool3dImpl>;
template class Cloneable<MaxPool1dImpl>;
template class Cloneable<MaxPool2dImpl>;
template class Cloneable<AvgPool1dImpl>;
template class Cloneable<AvgPool2dImpl>;
template class Cloneable<AdaptiveAvgPool1dImpl>;
template class Cloneable<AdaptiveAvgPool2dImpl>;

}  // namespace ramet::nn
