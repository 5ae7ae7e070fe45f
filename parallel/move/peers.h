// Work whose operands lie on several devices: bytes from one to another, sums over all of them.
// Private to parallel/.
//
// Note [Kernels over peer memory]
// Logical CPU devices share their memory, and a kernel of one reads another's. A GPU reads another
// GPU's memory where the two reach each other (gpu::Library::reaches): the sum's stream waits for
// what the owners' streams were given, and they wait for the sum before they use that memory again.
// Where any order will do and every contribution is on a GPU of its own, NCCL forms the sum.
//
// What the destination cannot read (the host's memory for a GPU, a GPU's for the host, a GPU that
// it does not reach) is copied there first.
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

/// How a kernel of `device` gets at memory of `owner`: local, peer or staged.
comm::Route route(Device device, Device owner);

/// While it lives, copy_tensors() from one GPU to several that reach its memory, of what is ready
/// when it is made. They all begin after what the GPU was given before, and it goes on after all of
/// them: one after the other, each would wait for the one before.
class FanOut {
 public:
  FanOut(Device from, ArrayRef<Device> to);
  ~FanOut();
  FanOut(const FanOut&) = delete;
  /// False where its copy has nothing to do with the others'.
  bool has(Device to) const { return to.is_cuda() && is_peer_[to.index()]; }

 private:
  const Device from_;
  bool is_peer_[kMaxDevicesPerType] = {};
};

/// All of them from one device to another, counted. Where kernels of `to_device` reach the memory
/// this is one call for every kCopiedTensors; elsewhere small ones are packed into one buffer,
/// which travels, and unpacked. `flat`: the targets are members of one flat buffer
/// (Note [Flat stores]), where the gaps between neighbours may be written.
void copy_tensors(Device to_device, Device from_device,
                  const std::vector<kernels::CopiedTensor>& tensors, bool flat,
                  const FanOut* fan = nullptr);

/// A sum as NarySumArgs describes it, whose leaf j lies on home[j]; `out` on `device`.
struct PeerSum {
  kernels::NarySumArgs args;
  bool any_order = false;  // then NCCL may form it
  std::vector<Device> home;
};

/// Of the run's operands 1, 2 ... into operand 0.
PeerSum peer_sum(const nn::FlatRun& run, ScalarType dtype, ReduceOrder order);

/// Sums that run concurrently with the kernels of their device, on its communication stream. The
/// memory that they use has to stay until join().
class ConcurrentSums {
 public:
  explicit ConcurrentSums(Device device) : device_(device) {}
  /// Kernels of the device, and of all GPUs whose memory was summed, wait for the sums from now on.
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
  bool at_peers_ = false;  // their communication streams were used, too
  std::vector<Tensor> kept_;
};

/// Forms the sum on `device`: of a GPU as one of `concurrent`, or among its kernels if that is
/// null.
void run_sum(Device device, const PeerSum& sum, ConcurrentSums* concurrent = nullptr);

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
