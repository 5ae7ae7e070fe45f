// clang-format off
// says: Ramet has no Python module to extend
#include <torch/extension.h>
