// clang-format off
// says: an error here: the alias `namespace torch = ramet;` is for programs without this door
#include "ramet.h"

namespace torch = ramet;
#include <torch/torch.h>
