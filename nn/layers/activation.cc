#include "nn/layers/activation.h"

#include <ostream>

#include "nn/functional/functional.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

// As LibTorch's they leave the stream at std::boolalpha, which what a program prints next shows.
void ReLUImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::ReLU(");
  if (options.inplace()) stream << std::boolalpha << "inplace=" << options.inplace();
  stream << ")";
}
Tensor ReLUImpl::forward(Tensor input) { return functional::relu(std::move(input), options); }

void LeakyReLUImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::LeakyReLU(negative_slope=")
         << options.negative_slope() << (options.inplace() ? ", inplace=true" : "") << ")";
}
Tensor LeakyReLUImpl::forward(Tensor input) {
  return functional::leaky_relu(std::move(input), options);
}

void GELUImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::GELU()");
}
Tensor GELUImpl::forward(const Tensor& input) { return functional::gelu(input, options); }

void TanhImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Tanh()");
}
void SigmoidImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Sigmoid()");
}
void SoftmaxImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Softmax(dim=") << options.dim() << ")";
}
void LogSoftmaxImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::LogSoftmax(dim=") << options.dim() << ")";
}

template class Cloneable<ReLUImpl>;
template class Cloneable<LeakyReLUImpl>;
template class Cloneable<GELUImpl>;
template class Cloneable<TanhImpl>;
template class Cloneable<SigmoidImpl>;
template class Cloneable<SoftmaxImpl>;
template class Cloneable<LogSoftmaxImpl>;

}  // namespace ramet::nn
