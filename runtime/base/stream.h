// A stream names where an operation runs: a device and one of its ordered queues. A small value,
// passed to every kernel.
//
// Operations on a CPU device run at once on the calling thread. (See Note [What an operation on a
// logical device means] in runtime/devices/devices.h.) On a GPU they are queued on the stream.
#pragma once
#include "runtime/base/device.h"

namespace ramet {

/// A device and one of its ordered queues.
struct Stream {
  Device device;    // on which the stream is
  uint32_t id = 0;  // 0: the device's default stream
};
inline bool operator==(Stream a, Stream b) { return a.device == b.device && a.id == b.id; }
inline bool operator!=(Stream a, Stream b) { return !(a == b); }

}  // namespace ramet
