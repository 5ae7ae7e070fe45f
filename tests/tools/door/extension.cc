// clang-format off: compilers are asked about these lines
// says: Ramet has no Python module to extend
#include <torch/extension.h>
