// Which kernels this program has queued, each with its threads: DeviceState::launching, noted on
// its way there (the linker's --wrap; see BUILD). The runtime itself keeps the widest one alone.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ramet {

struct KernelLaunch {
  std::string kernel;
  uint64_t threads;
};

/// Those since the last call of this function.
std::vector<KernelLaunch> take_launches();

}  // namespace ramet
