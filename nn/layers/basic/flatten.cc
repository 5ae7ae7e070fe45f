#include "nn/layers/basic/flatten.h"

#include "nn/module/class_name.h"
#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

// Its text is no list of options.
void UnflattenImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::Unflatten(dim=") << options.dim() << ", unflattened_size={";
  for (size_t i = 0; i < options.sizes().size(); ++i)
    stream << (i ? ", " : "") << options.sizes()[i];
  stream << "})";
}

RAMET_FIELDS(Flatten, {"start_dim", &o.start_dim()}, {"end_dim", &o.end_dim()})
RAMET_FIELDS(Unflatten, {"dim", &o.dim(), kNeeded}, {"sizes", &o.sizes()})

}  // namespace ramet::nn
