// How often this program has waited for a GPU, or copied from one to the host: the runtime's calls,
// counted on their way there (the linker's --wrap; see BUILD), whoever makes them. Waits for events
// are those of copies from the host, for their pinned buffers, and of who asks an event.
#pragma once
#include <cstdint>

namespace ramet {
uint64_t host_waits();
}
