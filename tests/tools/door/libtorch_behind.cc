// clang-format off
// The door's folder comes first on the path. says: a header of a real LibTorch in a unit with Ramet's door
#include <torch/torch.h>

#include <ATen/native/Resize.h>
