// Operations with operands on several devices: copies from one to another, sums over all of them.
// Private to parallel/.
//
// Note [Kernels over peer memory]
// Logical CPU devices share their memory, and a kernel of one reads another's. A GPU reads another
// GPU's memory if the two reach each other (gpu::Library::reaches). The sum's stream then waits for
// the work that the owners' streams were given before. The owners' streams wait for the sum before
// they use that memory again. If any order is allowed and every contribution is on a GPU of its
// own, NCCL forms the sum.
//
// Memory that the destination cannot read is copied to it first. That is the host's memory for a
// GPU, a GPU's memory for the host, and memory of a GPU that it does not reach.
#pragma once
#include <cstdint>
#include <vector>

#include "autograd/tensor.h"
#include "kernels/copy/copy_tensors.h"
#include "kernels/pointwise/nary_sum.h"
#include "nn/module/flat_store.h"
#include "parallel/move/comm.h"

namespace ramet {
namespace parallel {
namespace detail {

/// to = from, as bytes.
void copy_bytes(Device to_device, void* to, Device from_device, const void* from, int64_t bytes);

/// How a kernel of `device` reads memory of `owner`: local, peer or staged.
comm::Route route(Device device, Device owner);

/// Lets copy_tensors() from one GPU to several run concurrently, while the object exists. It covers
/// GPUs that reach the source's memory, and tensors that are ready when it is made. All copies
/// begin after the work that the source GPU was given before, and that GPU continues after all of
/// them. Without it each copy would wait for the one before.
class FanOut {
 public:
  FanOut(Device from, ArrayRef<Device> to);
  ~FanOut();
  FanOut(const FanOut&) = delete;
  /// False if the copy to that device is independent of the others.
  bool has(Device to) const { return to.is_cuda() && is_peer_[to.index()]; }

 private:
  const Device from_;
  bool is_peer_[kMaxDevicesPerType] = {};
};

/// Copies all tensors from one device to another, counted. If kernels of `to_device` reach the
/// memory, this is one call for every kCopiedTensors tensors. Otherwise small tensors are packed
/// into one buffer, which is moved and unpacked. `flat`: the targets are members of one flat buffer
/// (Note [Flat stores]), where the gaps between neighbours may be written.
void copy_tensors(Device to_device, Device from_device,
                  const std::vector<kernels::CopiedTensor>& tensors, bool flat,
                  const FanOut* fan = nullptr);

/// A sum as NarySumArgs describes it. Leaf j is on home[j], `out` on `device`.
struct PeerSum {
  kernels::NarySumArgs args;
  bool any_order = false;  // then NCCL may form it
  std::vector<Device> home;
};

/// The sum of the run's operands 1, 2 ... into operand 0.
PeerSum peer_sum(const nn::FlatRun& run, ScalarType dtype, ReduceOrder order);

/// Sums that run concurrently with the kernels of their device, on its communication stream. The
/// memory that they use must stay until join().
class ConcurrentSums {
 public:
  explicit ConcurrentSums(Device device) : device_(device) {}
  /// From now on, kernels of the device, and of all GPUs with summed memory, wait for the sums.
  void join();
  /// Keeps `operands` until join().
  void keep(std::vector<Tensor> operands) {
    for (Tensor& t : operands) kept_.push_back(std::move(t));
  }

 private:
  friend void run_sum(Device device, const PeerSum& sum, ConcurrentSums* concurrent);
  friend bool sum_by_library(Device device, const PeerSum& sum, ConcurrentSums* concurrent);
  Device device_;
  bool used_ = false;
  bool peer_[kMaxDevicesPerType] = {};
  bool at_peers_ = false;  // their communication streams were used too
  std::vector<Tensor> kept_;
};

/// Forms the sum on `device`. On a GPU it is one of the `concurrent` sums, or is queued among the
/// GPU's kernels if that is null.
void run_sum(Device device, const PeerSum& sum, ConcurrentSums* concurrent = nullptr);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
