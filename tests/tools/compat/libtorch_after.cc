// clang-format off
// LibTorch's folder comes first on the path. says: a real LibTorch in a unit with Ramet's compatibility headers | C10_MACROS_EXPORT_H_
#include <ramet/compat/torch.h>

#include <torch/torch.h>
