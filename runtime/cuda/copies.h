// Copies between the host and the cards, and from card to card.
//
// Note [Copies]
// Host memory is pageable (that which is pinned: host_copies.h), and the card reads only pinned
// memory by itself: pieces of kPiece bytes go through a few pinned buffers of each device and
// direction, one being filled while others travel. A copy to the card returns when the host's
// memory has been read; a copy to the host returns when it has been written. Small ones, of which a
// step may have many, have places of their own, taken in turn: what the first one's stream waits
// for holds up none of the next thirty.
//
// From card to card memory travels directly where the driver says that the two reach each other and
// a trial at first use arrived whole and in time, by a copy and by a kernel that reads there:
// boards exist that say so and deliver rubbish, or hang. Otherwise it goes through the host, and a
// line in the log says why. What hangs holds its stream for ever and may still write, so a trial
// has a stream, an event and memory of its own that nothing else waits for; if it is late they stay
// as they are, and the two cards keep their cached memory, because cudaFree() waits for all
// streams. (A driver that waits for the whole card when it loads a kernel or pins memory does so
// there from then on, too: what a program does for the first time after that may not return.)
#pragma once
#include <cstddef>

#include "runtime/base/device.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/events.h"

namespace ramet {
namespace cuda {

/// At least one of the devices is a GPU. Ordered after everything that both were given before, and
/// before everything that either is given later.
RAMET_API void copy(const char* op, void* to, Device to_device, const void* from,
                    Device from_device, size_t bytes);
/// Between a GPU and the host, behind `earlier` of that GPU alone.
RAMET_API void copy_after(const char* op, CardEvent& earlier, void* to, Device to_device,
                          const void* from, Device from_device, size_t bytes);

/// Does memory travel directly from one to the other? Tried at the first call of each pair.
RAMET_API bool direct_access(int from, int to);
/// `later` of one device begins what it is given from now on after what `earlier` of another one
/// was given.
RAMET_API void order_across(const char* op, DeviceState& from, Queue earlier, DeviceState& to,
                            Queue later);
/// How long a trial may take, in milliseconds (5,000).
RAMET_API void set_trial_deadline(int milliseconds);
/// For tests: what a trial reads the other card's memory by (null: by a kernel).
using TrialRead = cudaError_t (*)(void* to, const void* from, size_t bytes, cudaStream_t stream);
RAMET_API void set_trial_read(TrialRead read);

/// What tests count.
struct CopyCounts {
  uint64_t to_device = 0, to_host = 0, direct = 0, through_host = 0;
};
RAMET_API CopyCounts copy_counts();

/// Gives the pinned buffers back and forgets the trials.
RAMET_API void destroy_buffers();

}  // namespace cuda
}  // namespace ramet
