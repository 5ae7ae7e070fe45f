// Libraries of the CUDA toolkit, opened when they are first needed: nothing is linked with them,
// and who does not use them does not need them.
#pragma once
#include <string>
#include <vector>

#include "runtime/error.h"

namespace ramet {
namespace cuda {

/// Opens the first of `names` (libcublasLt.so.13, ...) that is found, looked for, in this order: in
/// the folders that RAMET_CUDA_LIBS lists (separated by ':'), where the loader looks, in the
/// toolkit (CUDA_PATH, CUDA_HOME, /usr/local/cuda) and in the wheels of NVIDIA's libraries of the
/// Python environment that is active (VIRTUAL_ENV, CONDA_PREFIX). Stays open for ever. Null where
/// there is none; `why` then says where it was looked for and what the loader said.
RAMET_API void* open_library(const std::vector<std::string>& names, std::string& why);
/// A function of it; null where it has none of this name.
RAMET_API void* library_function(void* library, const char* name);

}  // namespace cuda
}  // namespace ramet
