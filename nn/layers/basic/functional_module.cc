#include "nn/layers/basic/functional_module.h"

#include <ostream>

#include "nn/module/class_name.h"

namespace ramet::nn {

void FunctionalImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Functional()");
}

template class Cloneable<FunctionalImpl>;

}  // namespace ramet::nn
