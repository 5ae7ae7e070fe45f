// clang-format off
// The compatibility headers' folder comes first on the path. says: a header of a real LibTorch in a unit with Ramet's compatibility headers
#include <torch/torch.h>

#include <ATen/native/Resize.h>
