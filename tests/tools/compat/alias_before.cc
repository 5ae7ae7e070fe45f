// clang-format off
// says: an error here: the alias `namespace torch = ramet;` is for programs without these headers
#include "ramet.h"

namespace torch = ramet;
#include <torch/torch.h>
