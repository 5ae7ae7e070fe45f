// clang-format off
// LibTorch's folder comes first on the path. says: Ramet's compatibility headers in a unit with a header of a real LibTorch
#include <torch/torch.h>

#include <ramet/compat/torch.h>
