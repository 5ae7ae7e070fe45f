#include "nn/layers/dropout.h"

#include <ostream>

#include "nn/functional/functional.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

void DropoutImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::Dropout(p=") << options.p()
         << ", inplace=" << options.inplace() << ")";
}
Tensor DropoutImpl::forward(Tensor input) {
  return functional::detail::dropout(std::move(input), options.p(), is_training(),
                                     options.inplace());
}

void Dropout2dImpl::pretty_print(std::ostream& stream) const {
  stream << std::boolalpha << detail::qualified("nn::Dropout2d(p=") << options.p()
         << ", inplace=" << options.inplace() << ")";
}
Tensor Dropout2dImpl::forward(Tensor input) {
  return functional::detail::dropout2d(std::move(input), options.p(), is_training(),
                                       options.inplace());
}

template class Cloneable<DropoutImpl>;
template class Cloneable<Dropout2dImpl>;

}  // namespace ramet::nn
