// In place of the driver's interface: emulated::has_context and emulated::encode_tensor_map.
#pragma once
#include "tools/emulated_gpu/executor/hopper.h"
#include "tools/emulated_gpu/runtime/control.h"
