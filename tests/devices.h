// Lists of devices.
#pragma once
#include <vector>

#include "runtime/base/device.h"

namespace ramet {

/// cpu:0 to cpu:(n - 1).
inline std::vector<Device> cpus(int n) {
  std::vector<Device> out;
  for (int i = 0; i < n; ++i) out.emplace_back(kCPU, static_cast<DeviceIndex>(i));
  return out;
}

}  // namespace ramet
