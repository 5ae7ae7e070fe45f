#include "parallel/peers.h"

#include <algorithm>

#include "kernels/copy.h"
#include "runtime/gpu.h"

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

PeerSum peer_sum(const FlatRun& run, ScalarType dtype, bool tree) {
  PeerSum s{};
  s.args.out = run.at[0];
  std::copy(run.at.begin() + 1, run.at.end(), s.args.in);
  s.home.assign(run.home.begin() + 1, run.home.end());
  s.args.n = run.bytes / static_cast<int64_t>(item_size(dtype));
  s.args.leaves = static_cast<int32_t>(run.at.size() - 1);
  s.args.dtype = dtype;
  s.args.tree = tree;
  return s;
}

void BesideStream::join() {
  const std::vector<Tensor> kept = std::move(kept_);  // until the end
  if (!std::exchange(used_, false)) return;
  gpu::Library& gpus = *gpu::library();
  const Stream sums{device_, gpu::kCommunication};
  gpus.order(sums, {device_, gpu::kCompute});
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (std::exchange(peer_[k], false))
      gpus.order(sums, {Device(kCUDA, static_cast<DeviceIndex>(k)), gpu::kCompute});
}

void run_sum(Device device, const PeerSum& sum, BesideStream* beside) {
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
