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

/// Clears the record and begins a new one.
void record_launches();
/// Those since then; ends the record.
std::vector<KernelLaunch> recorded_launches();

}  // namespace ramet
