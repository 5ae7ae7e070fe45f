#include "nn/functional_module.h"

#include <ostream>

namespace ramet::nn {

void FunctionalImpl::pretty_print(std::ostream& stream) const {
  stream << "ramet::nn::Functional()";
}

template class Cloneable<FunctionalImpl>;

}  // namespace ramet::nn
