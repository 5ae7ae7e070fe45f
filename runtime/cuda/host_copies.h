// Pinned host memory and the copies that do not block the host: gpu::HostCopies. See the Note in
// runtime/tensor/pinned.h.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {

/// Points in the copy streams of cuda:k after its copies that do not block the host. Empty where
/// there were none.
RAMET_API std::vector<EventHandle> marks_of_copies(const char* op, int device);

/// The size of the pinned block for a request of so many bytes. Up to a mebibyte it is a power of
/// two, so that blocks are reused. Above, there are eight sizes to a doubling, because no caller
/// uses the bytes added by rounding.
RAMET_API size_t pinned_block(size_t bytes);

/// Pinned memory for the library itself. If the driver has none, cached memory goes back, and it
/// tries once more. If that fails, an OutOfMemoryError with the statistics.
RAMET_API void* host_memory(const char* op, int device, size_t bytes);
/// Gives it back (null: nothing), which waits for all GPUs. If one of them may never end its work,
/// the memory is kept.
RAMET_API void free_host_memory(void* memory) noexcept;

/// Forgets all copies, which must be done, and gives back the pinned memory that is not in use.
RAMET_API void forget_copies();

}  // namespace cuda
}  // namespace ramet
