// Shared libraries of NVIDIA, opened at their first use, so that a program starts without them.
#pragma once
#include <string>
#include <vector>

#include "runtime/base/device.h"

namespace ramet {
namespace cuda {

/// Possible paths of library `file` ("libnccl.so.2"), in order. First the folders of
/// RAMET_CUDA_LIBS (colons between) and the loader's path (the bare name). Then the toolkit
/// (CUDA_PATH, else /usr/local/cuda) and a Python wheel. The wheel's library is in
/// nvidia/`wheel`/lib in the active environment, the user's and the system's.
RAMET_API std::vector<std::string> places_of(const std::string& file, const std::string& wheel);

/// Opens the first one that can be opened. If there is none: null, and `why` gets the error of
/// each.
RAMET_API void* open_library(const std::string& file, const std::string& wheel, std::string* why);

}  // namespace cuda
}  // namespace ramet
