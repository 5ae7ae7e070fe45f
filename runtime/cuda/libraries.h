// Shared libraries of NVIDIA's that are opened at their first use, so that a program starts without
// them.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/device.h"

namespace ramet {
namespace cuda {

/// The files that library `file` ("libnccl.so.2") may be, in the order in which they are tried: the
/// folders of RAMET_CUDA_LIBS (colons between), the loader's path (the bare name), the toolkit
/// (CUDA_PATH, else /usr/local/cuda), and the wheel of Python packages that carries it
/// (nvidia/`wheel`/lib in the environment that is active, the user's and the system's).
RAMET_API std::vector<std::string> places_of(const std::string& file, const std::string& wheel);

/// Opens the first that can be opened; null, and in `why` what was said of each, where none can.
RAMET_API void* open_library(const std::string& file, const std::string& wheel, std::string* why);

}  // namespace cuda
}  // namespace ramet
