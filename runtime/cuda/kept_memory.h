// Cards whose work may not end: what waits for them, as cudaFree() and cudaFreeHost() do, is not
// called.
#pragma once
#include <functional>

#include "runtime/base/error.h"

namespace ramet {
namespace cuda {

/// Until `ended` says so, something is under way on the card that may never end. (For ever:
/// DeviceState::keep_cached_memory().)
void keep_memory_until(int card, std::function<bool()> ended);
/// Is there such work on the card, whichever of its logical devices gave it?
RAMET_API bool keeps_memory(int card);
/// On any card?
bool any_card_keeps_memory();
/// All of it. Before states go.
void forget_kept_memory();

}  // namespace cuda
}  // namespace ramet
