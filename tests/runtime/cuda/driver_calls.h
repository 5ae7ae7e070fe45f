// How often this program has called the CUDA runtime, from any caller. The linker's --wrap counts
// the calls on their way there (see BUILD). So the count is that of a real GPU's program, too.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace ramet {

/// Calls by function since the program began, of those that were made at all. Launches of kernels
/// and graphs are left out, and so is what only asks the calling thread (cudaGetDevice,
/// cudaGetLastError). A copy from a GPU to the host counts as "cudaMemcpyAsync to the host".
std::map<std::string, uint64_t> driver_calls();
/// The calls since `before` was read.
std::map<std::string, uint64_t> driver_calls_since(const std::map<std::string, uint64_t>& before);
/// Of these, waits for a GPU and copies from one to the host. (Waits for events are those of copies
/// from the host, for their pinned buffers, and of callers that ask an event.)
uint64_t host_waits();

}  // namespace ramet
