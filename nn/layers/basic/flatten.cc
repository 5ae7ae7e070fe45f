#include "nn/layers/basic/flatten.h"

#include "nn/module/listed_module_internal.h"

namespace ramet::nn {

RAMET_FIELDS(Flatten, {"start_dim", &o.start_dim()}, {"end_dim", &o.end_dim()})
RAMET_FIELDS(Unflatten, {"dim", &o.dim(), kNeeded},
             {"sizes", &o.sizes(), kInBraces, nullptr, "unflattened_size"})

}  // namespace ramet::nn
