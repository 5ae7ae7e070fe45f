// One of LibTorch's headers: the door. Written by tools/compat/names.py.
#pragma once
#include <ramet/compat/torch.h>
