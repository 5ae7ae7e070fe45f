#include "nn/layers/basic/flatten.h"

#include <ostream>

#include "nn/module/class_name.h"

namespace ramet::nn {

void FlattenImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Flatten(start_dim=") << options.start_dim()
         << ", end_dim=" << options.end_dim() << ")";
}
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Unflatten(dim=") << options.dim() << ", unflattened_size={";
  for (size_t i = 0; i < options.sizes().size(); ++i)
    stream << (i ? ", " : "") << options.sizes()[i];
  stream << "})";
}

template class Cloneable<FlattenImpl>;
template class Cloneable<UnflattenImpl>;

}  // namespace ramet::nn
