// Ranks that are cards, connected by the vendor's collectives (NCCL): what process groups ask of
// the GPUs. A header of its own: only parallel/distributed asks.
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
/// How long a link that is given up waits for a device, or other ranks, that do not end its work.
inline constexpr std::chrono::seconds kLinkAbortTakes(2);

/// What a link failed with: its library's words.
class RAMET_API LinkError final : public Error {
 public:
  LinkError(const std::string& text, bool other) : Error(text), of_another_rank(other) {}
  ~LinkError() override;
  const bool of_another_rank;
};

/// One rank's end of a connection between `size` cards. What it is given is queued on a stream of
/// its own, in that order; every rank gives its end the same exchanges and sums, in one order. The
/// library takes work over beside the caller: after its making, exchange() and sum() nothing else
/// may be called before settled(). Errors are LinkErrors and those of CUDA calls; after one,
/// abort() alone. Thread safety: one call at a time.
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
  /// Gives the connection back; waits two seconds for the other ranks at most.
  virtual ~Link() = default;
  /// Was everything taken over?
  virtual bool settled() = 0;
  /// Messages of device memory, all at once. Messages of no bytes are left out, on both sides.
  virtual void exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in) = 0;
  /// n elements become their sum over all ranks, in whatever order.
  virtual void sum(void* data, int64_t n, ScalarType dtype) = 0;
  virtual bool can_sum(ScalarType dtype) const = 0;

  /// What it is given from now on begins after `earlier`.
  virtual void come_after(Event& earlier) = 0;
  /// After everything that the device's compute stream was given so far.
  virtual void come_after_kernels() = 0;
  /// What the compute stream is given from now on begins after all of this link's.
  virtual void come_before_kernels() = 0;
  /// What `work` gives to the device's compute stream goes to the link's stream instead. It
  /// allocates no device memory.
  virtual void run(const std::function<void()>& work) = 0;

  /// A point behind everything so far, and whether it was reached.
  virtual void mark() = 0;
  virtual bool reached() = 0;
  /// Begins what abort() waits for: of several links first all of them, then all abort().
  virtual void begin_abort() noexcept = 0;
  /// Ends what is under way here; memory is not touched from then on, but where the device does not
  /// end its work by the deadline, which a warning says: until it does, the card gives no memory
  /// back. Other ranks may see an error, or wait until they abort, too.
  virtual void abort(std::chrono::steady_clock::time_point deadline) noexcept = 0;
};

// Weak, as linked() is: null without //runtime/cuda.

/// Why there can be no links: no library, or one that is too old. Empty where there can be.
[[gnu::weak]] std::string why_no_links();
/// What one rank makes and all ranks of a connection are given. An Error where it cannot be.
[[gnu::weak]] std::string make_link_id();
/// This rank's end, on cuda:`device`; settled() when all ranks have made theirs.
[[gnu::weak]] std::unique_ptr<Link> make_link(const std::string& id, int device, int rank,
                                              int size);
/// Tells the card behind cuda:`device` from all other cards, those of other hosts included. Not 0.
[[gnu::weak]] uint64_t card_identity(int device);

}  // namespace gpu
}  // namespace ramet
