// GPUs with work that may never end. Calls that wait for such a GPU, like cudaFree() and
// cudaFreeHost(), are not made.
#pragma once
#include <functional>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// Until `ended` returns true, the GPU has work that may never end. (For ever:
/// DeviceState::keep_cached_memory().)
void keep_memory_until(int card, std::function<bool()> ended);
/// Has any logical device given such work to the GPU?
RAMET_API bool keeps_memory(int card);
/// On any GPU?
bool any_card_keeps_memory();
/// Forgets all of it. Call it before the states are destroyed.
void forget_kept_memory();

}  // namespace cuda
}  // namespace ramet
