// How often this program has waited for a GPU's streams: the runtime's waits, counted on their way
// there (the linker's --wrap; see BUILD), whoever calls them. Waits for events are those of copies
// for their pinned buffers (runtime/cuda/copies.cc), which counts copies itself.
#pragma once
#include <cstdint>

namespace ramet {
uint64_t host_waits();
}
