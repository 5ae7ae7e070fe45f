// Which kernels this program has queued, each with its threads. The linker's --wrap notes the calls
// of DeviceState::launching (see BUILD). The runtime itself keeps only the widest one.
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
/// The kernels since then; ends the record.
std::vector<KernelLaunch> recorded_launches();

}  // namespace ramet
