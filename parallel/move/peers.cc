#include "parallel/move/peers_internal.h"

#include <algorithm>
#include <array>

#include "kernels/copy/copy.h"
#include "parallel/move/counters.h"
#include "parallel/move/movement_internal.h"
#include "runtime/base/logging.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu_sums.h"

namespace ramet {
namespace parallel {
namespace detail {

void copy_bytes(Device to_device, void* to, Device from_device, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  if (to_device.is_cpu() && from_device.is_cpu())
    return kernels::copy_dense({to_device, 0}, {from, to, bytes, kByte, kByte});
  capture::in_turn([&gpus = gpu::required("copy", to_device.is_cpu() ? from_device : to_device), to,
                    to_device, from, from_device, bytes = static_cast<size_t>(bytes)] {
    gpus.copy(to, to_device, from, from_device, bytes);
  });
}

comm::Route route(Device device, Device owner) {
  if (owner == device || (device.is_cpu() && owner.is_cpu())) return comm::Route::local;
  const bool peer = device.is_cuda() && owner.is_cuda() &&
                    gpu::required("reduce_add", device).reaches(device.index(), owner.index());
  return peer ? comm::Route::peer : comm::Route::staged;
}

namespace {

void order(Stream earlier, Stream later) {
  capture::in_turn([=] { gpu::library()->order(earlier, later); });
}

void call_copies(Device device, const std::vector<kernels::CopiedTensor>& tensors) {
  constexpr size_t kMost = kernels::kCopiedTensors;
  for (size_t first = 0; first < tensors.size(); first += kMost) {
    kernels::CopyTensorsArgs args{};
    const size_t n = std::min(kMost, tensors.size() - first);
    args.count = static_cast<int32_t>(n);
    std::copy_n(tensors.begin() + static_cast<ptrdiff_t>(first), n, args.tensors);
    count(Count::kLaunches);
    kernels::copy_tensors({device, gpu::kCompute}, args);
  }
}

// For memory that no kernel reaches: tensors of at least this many bytes are copied separately, the
// others together.
constexpr int64_t kAlone = int64_t{1} << 20;

void copy_packed(Device to_device, Device from_device,
                 const std::vector<kernels::CopiedTensor>& tensors, bool flat) {
  std::vector<kernels::CopiedTensor> pack, unpack;
  int64_t room = 0, end = 0;
  bool lie_so = flat;  // are the targets laid out like the packed tensors?
  for (const kernels::CopiedTensor& t : tensors) {
    if (t.n >= kAlone) {
      count(Count::kLaunches);
      copy_bytes(to_device, t.to, from_device, t.from, t.n);
      continue;
    }
    if (!unpack.empty()) lie_so = lie_so && static_cast<char*>(unpack[0].to) + room == t.to;
    pack.push_back(t);
    unpack.push_back(t);
    end = room + t.n;
    room += nn::flat_padded(t.n);
  }
  if (pack.empty()) return;
  count(Count::kLaunches);
  if (pack.size() == 1)
    return copy_bytes(to_device, pack[0].to, from_device, pack[0].from, pack[0].n);
  const Tensor here = flat_memory(room, from_device);
  const Tensor there = lie_so ? Tensor() : flat_memory(room, to_device);
  room = 0;
  for (size_t i = 0; i < pack.size(); ++i) {
    pack[i].to = static_cast<char*>(here->data) + room;
    if (!lie_so) unpack[i].from = static_cast<char*>(there->data) + room;
    room += nn::flat_padded(pack[i].n);
  }
  call_copies(from_device, pack);
  copy_bytes(to_device, lie_so ? unpack[0].to : there->data, from_device, here->data, end);
  if (!lie_so) call_copies(to_device, unpack);
}

Stream kernels_of(Device device) { return {device, gpu::kCompute}; }

}  // namespace

FanOut::FanOut(Device from, ArrayRef<Device> to) : from_(from) {
  for (Device d : to)
    if (route(d, from) == comm::Route::peer && !std::exchange(is_peer_[d.index()], true))
      order(kernels_of(from), kernels_of(d));
}
FanOut::~FanOut() {
  try {
    for (int k = 0; k < kMaxDevicesPerType; ++k)
      if (is_peer_[k])
        order(kernels_of(Device(kCUDA, static_cast<DeviceIndex>(k))), kernels_of(from_));
  } catch (const std::exception& e) { log(LogLevel::Warning, e.what()); }
}

void copy_tensors(Device to_device, Device from_device,
                  const std::vector<kernels::CopiedTensor>& tensors, bool flat, const FanOut* fan) {
  if (tensors.empty()) return;
  if (fan && fan->has(to_device)) return call_copies(to_device, tensors);
  if (tensors.size() == 1) {
    count(Count::kLaunches);
    return copy_bytes(to_device, tensors[0].to, from_device, tensors[0].from, tensors[0].n);
  }
  switch (route(to_device, from_device)) {
    case comm::Route::local: return call_copies(to_device, tensors);
    case comm::Route::peer: {
      const Stream owner = kernels_of(from_device), stream = kernels_of(to_device);
      order(owner, stream);
      call_copies(to_device, tensors);
      return order(stream, owner);
    }
    default: return copy_packed(to_device, from_device, tensors, flat);
  }
}

PeerSum peer_sum(const nn::FlatRun& run, ScalarType dtype, ReduceOrder order) {
  PeerSum s{};
  s.args.out = run.at(0);
  for (int i = 1; i < run.operands(); ++i) {
    s.args.in[i - 1] = run.at(i);
    s.home.push_back(run.device(i));
  }
  s.args.n = run.bytes() / static_cast<int64_t>(item_size(dtype));
  s.args.leaves = run.operands() - 1;
  s.args.dtype = dtype;
  s.args.tree = order.is_tree();
  s.any_order = order.kind() == ReduceOrder::Kind::kAny;
  return s;
}

void ConcurrentSums::join() {
  const std::vector<Tensor> kept = std::move(kept_);  // destroyed at the end
  if (!std::exchange(used_, false)) return;
  const Stream sums{device_, gpu::kCommunication};
  order(sums, {device_, gpu::kCompute});
  const bool at_peers = std::exchange(at_peers_, false);
  for (int k = 0; k < kMaxDevicesPerType; ++k) {
    if (!std::exchange(peer_[k], false)) continue;
    const Device peer(kCUDA, static_cast<DeviceIndex>(k));
    order(sums, {peer, gpu::kCompute});
    if (at_peers) order({peer, gpu::kCommunication}, {peer, gpu::kCompute});
  }
}

// Sums by NCCL, if any order is allowed, each contribution is on a GPU of its own, and one of these
// is the destination. With n = 0 it only answers whether it could.
bool sum_by_library(Device device, const PeerSum& sum, ConcurrentSums* concurrent) {
  if (!&gpu::sum_in_any_order || !device.is_cuda()) return false;
  std::array<const void*, kernels::kMaxSummands> in;
  std::array<int, kernels::kMaxSummands> devices;
  int count = 0, root = -1;
  for (int j = 0; j < sum.args.leaves; ++j) {
    const Device home = sum.home[static_cast<size_t>(j)];
    if (!sum.args.in[j]) continue;
    if (!home.is_cuda()) return false;
    if (home == device) root = count;
    in[static_cast<size_t>(count)] = sum.args.in[j];
    devices[static_cast<size_t>(count++)] = home.index();
  }
  constexpr const char* kOp = "reduce_add";
  if (root < 0 || !gpu::can_sum_in_any_order(kOp, devices.data(), count, sum.args.dtype))
    return false;
  if (sum.args.n == 0) return true;
  capture::in_turn([=, out = sum.args.out, n = sum.args.n, dtype = sum.args.dtype] {
    gpu::sum_in_any_order(kOp, in.data(), devices.data(), count, out, root, n, dtype);
  });
  ConcurrentSums now(device);
  ConcurrentSums& streams = concurrent ? *concurrent : now;
  streams.used_ = streams.at_peers_ = true;
  for (int i = 0; i < count; ++i)
    if (i != root) streams.peer_[devices[static_cast<size_t>(i)]] = true;
  if (!concurrent) now.join();
  return true;
}

void run_sum(Device device, const PeerSum& sum, ConcurrentSums* concurrent) {
  if (sum.any_order && sum_by_library(device, sum, concurrent)) return;
  kernels::NarySumArgs args = sum.args;
  const int64_t bytes = args.n * static_cast<int64_t>(item_size(args.dtype));
  std::vector<Tensor> staged;
  bool peer[kMaxDevicesPerType] = {};
  for (int j = 0; j < args.leaves; ++j) {
    const Device home = sum.home[static_cast<size_t>(j)];
    const comm::Route way = args.in[j] ? route(device, home) : comm::Route::local;
    if (way == comm::Route::peer) peer[home.index()] = true;
    if (way != comm::Route::staged) continue;
    staged.push_back(flat_memory(bytes, device));
    copy_bytes(device, staged.back()->data, home, args.in[j], bytes);
    args.in[j] = staged.back()->data;
  }
  if (device.is_cpu()) return kernels::nary_sum({device, 0}, args);

  const Stream stream{device, concurrent ? gpu::kCommunication : gpu::kCompute};
  const auto of_peers = [&](auto&& act) {
    for (int k = 0; k < kMaxDevicesPerType; ++k)
      if (peer[k]) act(Stream{Device(kCUDA, static_cast<DeviceIndex>(k)), gpu::kCompute}, k);
  };
  if (concurrent) order({device, gpu::kCompute}, stream);
  of_peers([&](Stream owner, int) { order(owner, stream); });
  kernels::nary_sum(stream, args);
  if (!concurrent) return of_peers([&](Stream owner, int) { order(stream, owner); });
  concurrent->used_ = true;
  of_peers([&](Stream, int k) { concurrent->peer_[k] = true; });
  concurrent->keep(std::move(staged));
}

}  // namespace detail

std::vector<comm::Route> comm::plan(ArrayRef<Device> inputs, Device destination, ReduceOrder order,
                                    ScalarType dtype) {
  RAMET_CHECK(inputs.size() <= static_cast<size_t>(kMaxLeaves), "plan", "inputs: got ",
              inputs.size(), ", expected at most ", kMaxLeaves);
  const Device to = resolve(destination);
  detail::PeerSum sum{};
  for (Device input : inputs) {
    sum.home.push_back(resolve(input));
    sum.args.in[sum.args.leaves++] = &sum;  // any address: nothing is read
  }
  sum.args.dtype = dtype;
  if (order.kind() == ReduceOrder::Kind::kAny && detail::sum_by_library(to, sum, nullptr))
    return std::vector<Route>(inputs.size(), Route::library);
  std::vector<Route> routes;
  for (Device home : sum.home) routes.push_back(detail::route(to, home));
  return routes;
}

}  // namespace parallel
}  // namespace ramet
