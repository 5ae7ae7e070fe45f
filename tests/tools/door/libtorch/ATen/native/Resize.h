// One of LibTorch's headers that the door does not have.
#pragma once
#include <ATen/core/TensorBody.h>
