#include "parallel/peers.h"

#include <algorithm>

#include "kernels/copy.h"
#include "runtime/gpu_sums.h"

namespace ramet {
namespace parallel {
namespace detail {

void copy_bytes(Device to_device, void* to, Device from_device, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu())
    return kernels::copy_dense({to_device, 0}, {from, to, bytes, kByte, kByte});
  gpu::required("copy", to_device.is_cpu() ? from_device : to_device)
      .copy(to, to_device, from, from_device, static_cast<size_t>(bytes));
}

PeerSum peer_sum(const FlatRun& run, ScalarType dtype, ReduceOrder order) {
  PeerSum s{};
  s.args.out = run.at[0];
  std::copy(run.at.begin() + 1, run.at.end(), s.args.in);
  s.home.assign(run.home.begin() + 1, run.home.end());
  s.args.n = run.bytes / static_cast<int64_t>(item_size(dtype));
  s.args.leaves = static_cast<int32_t>(run.at.size() - 1);
  s.args.dtype = dtype;
  s.args.tree = order.is_tree();
  s.any_order = order.kind() == ReduceOrder::Kind::kAny;
  return s;
}

void BesideStream::join() {
  const std::vector<Tensor> kept = std::move(kept_);  // until the end
  if (!std::exchange(used_, false)) return;
  gpu::Library& gpus = *gpu::library();
  const Stream sums{device_, gpu::kCommunication};
  gpus.order(sums, {device_, gpu::kCompute});
  const bool at_peers = std::exchange(at_peers_, false);
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    if (!std::exchange(peer_[k], false)) continue;
    const Device peer(kCUDA, static_cast<DeviceIndex>(k));
    gpus.order(sums, {peer, gpu::kCompute});
    if (at_peers) gpus.order({peer, gpu::kCommunication}, {peer, gpu::kCompute});
  }
}

// Under any order, where each contribution is on a GPU of its own and one of them is the
// destination.
bool sum_by_library(Device device, const PeerSum& sum, BesideStream* beside) {
  if (!&gpu::sum_in_any_order || !device.is_cuda()) return false;
  const void* in[kernels::kMaxSummands];
  int devices[kernels::kMaxSummands], count = 0, root = -1;
  for (int j = 0; j < sum.args.leaves; ++j) {
    const Device home = sum.home[static_cast<size_t>(j)];
    if (!sum.args.in[j]) continue;
    if (!home.is_cuda()) return false;
    if (home == device) root = count;
    in[count] = sum.args.in[j];
    devices[count++] = home.index();
  }
  if (root < 0 || !gpu::sum_in_any_order("reduce_add", in, devices, count, sum.args.out, root,
                                         sum.args.n, sum.args.dtype))
    return false;
  BesideStream now(device);
  BesideStream& streams = beside ? *beside : now;
  streams.used_ = streams.at_peers_ = true;
  for (int i = 0; i < count; ++i)
    if (i != root) streams.peer_[devices[i]] = true;
  if (!beside) now.join();
  return true;
}

void run_sum(Device device, const PeerSum& sum, BesideStream* beside) {
  if (sum.any_order && sum_by_library(device, sum, beside)) return;
  kernels::NarySumArgs args = sum.args;
  const int64_t bytes = args.n * static_cast<int64_t>(item_size(args.dtype));
  std::vector<Tensor> staged;
  bool peer[kMaxDevicesPerType] = {};
  for (int j = 0; j < args.leaves; ++j) {
    const Device home = sum.home[static_cast<size_t>(j)];
    if (!args.in[j] || home == device || (device.is_cpu() && home.is_cpu())) continue;
    if (device.is_cuda() && home.is_cuda() &&
        gpu::library()->reaches(device.index(), home.index())) {
      peer[home.index()] = true;
      continue;
    }
    staged.push_back(flat_memory(bytes, device));
    copy_bytes(device, staged.back()->data, home, args.in[j], bytes);
    args.in[j] = staged.back()->data;
  }
  if (device.is_cpu()) return kernels::nary_sum({device, 0}, args);

  gpu::Library& gpus = gpu::required("reduce_add", device);
  const Stream stream{device, beside ? gpu::kCommunication : gpu::kCompute};
  const auto of_peers = [&](auto&& order) {
    for (int k = 0; k < kMaxDevicesPerType; ++k)
      if (peer[k]) order(Stream{Device(kCUDA, static_cast<DeviceIndex>(k)), gpu::kCompute}, k);
  };
  if (beside) gpus.order({device, gpu::kCompute}, stream);
  of_peers([&](Stream owner, int) { gpus.order(owner, stream); });
  kernels::nary_sum(stream, args);
  if (!beside) return of_peers([&](Stream owner, int) { gpus.order(stream, owner); });
  beside->used_ = true;
  of_peers([&](Stream, int k) { beside->peer_[k] = true; });
  beside->keep(std::move(staged));
}

}  // namespace detail
}  // namespace parallel
}  // namespace ramet
