// Copies between the host and the GPUs, and from GPU to GPU.
//
// Note [Copies]
// Host memory is pageable (for pinned memory see host_copies.h), and the GPU reads only pinned
// memory by itself. So pieces of kPiece bytes go through a few pinned buffers for each device and
// direction. One buffer is filled while the GPU copies others. A copy to the GPU returns when the
// host's memory has been read. A copy to the host returns when it has been written. A step may have
// many small copies. They have separate places, which are used in turn. If the stream of one copy
// has to wait, the next thirty copies are not delayed.
//
// Copies between GPUs are direct if the driver says that the two reach each other and a trial at
// first use succeeds. The trial sends data by a copy and by a kernel that reads the other GPU's
// memory. All data must arrive correct and in time. The trial is needed because some boards report
// access but deliver garbage, or hang. Otherwise the copy goes through the host, and a line in the
// log says why. A copy that hangs holds its stream for ever and may still write. So a trial has its
// own stream, event and memory, and nothing else waits for them. If it is late, they are never
// freed, and the two GPUs keep their cached memory, because cudaFree() waits for all streams. (Some
// drivers wait for the whole GPU when they load a kernel or pin memory. After a late trial they do
// that there, too. So a call that a program makes for the first time after it may not return.)
#pragma once
#include <cstddef>

#include "runtime/base/device.h"
#include "runtime/cuda/device_state.h"
#include "runtime/cuda/events.h"

namespace ramet {
namespace cuda {

/// At least one of the devices is a GPU. Ordered after all work that both had before, and before
/// all work that either gets later.
RAMET_API void copy(const char* op, void* to, Device to_device, const void* from,
                    Device from_device, size_t bytes);
/// Between a GPU and the host, ordered only after `earlier` of that GPU.
RAMET_API void copy_after(const char* op, CardEvent& earlier, void* to, Device to_device,
                          const void* from, Device from_device, size_t bytes);

/// Are copies between the two direct? The first call for each pair tries it.
RAMET_API bool direct_access(int from, int to);
/// Work that `later` of one device gets from now on begins after the work that `earlier` of another
/// one has.
RAMET_API void order_across(const char* op, DeviceState& from, Queue earlier, DeviceState& to,
                            Queue later);
/// How long a trial may take, in milliseconds (5,000).
RAMET_API void set_trial_deadline(int milliseconds);
/// For tests: how a trial reads the other GPU's memory (null: by a kernel).
using TrialRead = cudaError_t (*)(void* to, const void* from, size_t bytes, cudaStream_t stream);
RAMET_API void set_trial_read(TrialRead read);

/// Counters for tests.
struct CopyCounts {
  uint64_t to_device = 0, to_host = 0, direct = 0, through_host = 0;
};
RAMET_API CopyCounts copy_counts();

/// Gives the pinned buffers back and forgets the trials.
RAMET_API void destroy_buffers();

}  // namespace cuda
}  // namespace ramet
