#include "runtime/devices/gpu.h"

#include "runtime/devices/gpu_link.h"

namespace ramet {
namespace gpu {

LinkError::~LinkError() = default;

Library* library() { return &linked ? linked() : nullptr; }

Library& required(const char* op, Device device) {
  Library* all = library();
  if (!all)
    fail(op, "device: got ", device.str(), ", but this program is linked without CUDA support");
  return *all;
}

}  // namespace gpu
}  // namespace ramet
