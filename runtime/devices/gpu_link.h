// Ranks with a GPU each, connected by the vendor's collectives (NCCL). Process groups use this
// interface. A separate header, because only parallel/distributed includes it.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/error.h"
#include "runtime/devices/gpu.h"

namespace ramet {
namespace gpu {

/// Bytes of make_link_id().
inline constexpr size_t kLinkId = 128;
/// How long abort() waits for a device, or other ranks, that do not end the link's work.
inline constexpr std::chrono::seconds kLinkAbortTakes(2);

/// An error of a link, in its library's words.
class RAMET_API LinkError final : public Error {
 public:
  LinkError(const std::string& text, bool other) : Error(text), of_another_rank(other) {}
  ~LinkError() override;
  const bool of_another_rank;
};

/// One rank's end of a connection between `size` GPUs. Its work is queued on its own stream, in the
/// order of the calls. All ranks make the same exchanges and sums in the same order. The library
/// accepts work concurrently with the caller. So after make_link(), exchange() and sum() the caller
/// may call nothing else before settled(). Errors are LinkErrors and those of CUDA calls. After
/// one, only abort() may be called. Thread safety: one call at a time.
class RAMET_API Link {
 public:
  struct Outgoing {
    int to;
    const void* data;
    size_t bytes;
  };
  struct Incoming {
    int from;
    void* data;
    size_t bytes;
  };
  /// Closes the connection. Waits at most two seconds for the other ranks.
  virtual ~Link() = default;
  /// Has the library accepted all work?
  virtual bool settled() = 0;
  /// Messages of device memory, all at once. Messages of no bytes are left out, on both sides.
  virtual void exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) = 0;
  /// n elements become their sum over all ranks, in any order.
  virtual void sum(void* data, int64_t n, ScalarType dtype) = 0;
  virtual bool can_sum(ScalarType dtype) const = 0;

  /// Work that it gets from now on begins after `earlier`.
  virtual void come_after(Event& earlier) = 0;
  /// Its further work begins after the current work of the device's compute stream.
  virtual void come_after_kernels() = 0;
  /// Work that the compute stream gets from now on begins after all work of this link.
  virtual void come_before_kernels() = 0;
  /// Work that `work` queues on the device's compute stream goes to the link's stream instead.
  /// `work` allocates no device memory.
  virtual void run(const std::function<void()>& work) = 0;

  /// mark() records a point after all work so far. reached() says whether it was reached.
  virtual void mark() = 0;
  virtual bool reached() = 0;
  /// Starts the abort that abort() waits for. Of several links, first start all, then abort() each.
  virtual void begin_abort() noexcept = 0;
  /// Ends the work that is under way here. From then on nothing touches the memory, unless the
  /// device does not end its work by the deadline. Then a warning says so, and until that work ends
  /// the GPU gives no memory back. Other ranks may get an error, or wait until they abort, too.
  virtual void abort(std::chrono::steady_clock::time_point deadline) noexcept = 0;
};

// Weak, as linked() is: null without //runtime/cuda.

/// Why there can be no links: no library, or one that is too old. Empty where there can be.
[[gnu::weak]] std::string why_no_links();
/// One rank makes it and passes it to all ranks of a connection. An Error where it cannot be made.
[[gnu::weak]] std::string make_link_id();
/// This rank's end, on cuda:`device`. It is settled() when all ranks have made theirs.
[[gnu::weak]] std::unique_ptr<Link> make_link(const std::string& id, int device, int rank,
                                              int size);
/// Distinguishes the GPU of cuda:`device` from all other GPUs, those of other hosts included. Not
/// 0.
[[gnu::weak]] uint64_t card_identity(int device);

}  // namespace gpu
}  // namespace ramet
