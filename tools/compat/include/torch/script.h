// LibTorch's header for TorchScript: may be included; using torch::jit says what to use instead (ramet/compat/jit.h).
#pragma once
#include <ramet/compat/torch.h>
