// Pinned host memory and the copies that nobody waits for: gpu::HostCopies. See the Note in
// runtime/tensor/pinned.h.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {

/// Points in the copy streams of cuda:k behind its copies that nobody waited for; none where there
/// were none.
RAMET_API std::vector<EventHandle> marks_of_copies(const char* op, int device);

/// The pinned block that a request for so many bytes gets: powers of two up to a mebibyte, so that
/// a block serves again, then eight sizes to a doubling, for what is rounded up is nobody's.
RAMET_API size_t pinned_block(size_t bytes);

/// Pinned memory for the library itself. Where the driver has none, what is cached goes back, and
/// it tries once more; then an OutOfMemoryError with the statistics.
RAMET_API void* host_memory(const char* op, int device, size_t bytes);
/// Gives it back (null: nothing), which waits for all cards; where one of them may never end its
/// work, it stays.
RAMET_API void free_host_memory(void* memory) noexcept;

/// Forgets all copies, which are done, and gives back the pinned memory that nobody holds.
RAMET_API void forget_copies();

}  // namespace cuda
}  // namespace ramet
