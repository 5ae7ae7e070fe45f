// broadcast and its coalesced form.
#include <algorithm>

#include "autograd/graph/graph_observer.h"
#include "autograd/graph/inplace.h"
#include "autograd/graph/layout.h"
#include "autograd/ops/make/copy.h"
#include "parallel/move/comm.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/peers_internal.h"
#include "parallel/move/pieces_internal.h"
#include "runtime/tensor/storage_ref.h"

namespace ramet {
namespace parallel {
namespace comm {

std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices) {
  RAMET_CHECK(t.defined(), "broadcast", "undefined tensor");
  std::vector<Tensor> out;
  for (auto& row : broadcast_coalesced(t, devices)) out.push_back(std::move(row[0]));
  return out;
}

std::vector<Tensor>& broadcast_out(const Tensor& t, std::vector<Tensor>& out) {
  RAMET_CHECK(t.defined(), "broadcast_out", "undefined tensor");
  for (size_t i = 0; i < out.size(); ++i) {
    detail::check_out("broadcast_out", out[i], i);
    RAMET_CHECK(out[i].sizes() == t.sizes(), "broadcast_out",
                "Expected all output tensors to have same shape as the source tensor ", t.sizes(),
                ", but output tensor at index ", i, " has shape ", out[i].sizes());
    RAMET_CHECK(out[i].scalar_type() == t.scalar_type(), "broadcast_out",
                "Expected all output tensors to have same dtype as the source tensor ",
                name_of(t.scalar_type()), ", but output tensor at index ", i, " has dtype ",
                name_of(out[i].scalar_type()));
  }
  autograd::settle(t);
  for (Tensor& o : out) {
    if (o->data == t->data && same_strides(o, t)) continue;
    detail::copy(o, t);
    autograd::wrote("broadcast_out", o);
  }
  return out;
}

namespace {

// One row: copies of `tensors` on another device, with the members of a group in one allocation.
std::vector<Tensor> copied_row(ArrayRef<Tensor> tensors,
                               const std::vector<std::vector<size_t>>& groups, Device device,
                               const detail::FanOut& fan) {
  std::vector<Tensor> row(tensors.size());
  for (const auto& group : groups) {
    int64_t total = 0, at = 0;
    for (size_t i : group) total += nn::flat_padded(static_cast<int64_t>(tensors[i].nbytes()));
    const Tensor flat = detail::flat_memory(total, device);
    struct Part {
      Tensor to, from;
    };
    std::vector<Part> strided;
    std::vector<nn::FlatRun> runs;
    std::vector<Tensor> reads, writes;
    for (size_t i : group) {
      const Tensor& t = tensors[i];
      const auto bytes = static_cast<int64_t>(t.nbytes());
      row[i] = Tensor(member_of(flat, at, t.sizes(), detail::strides_in_layout_of(t, t.sizes()),
                                t.scalar_type()));
      at += nn::flat_padded(bytes);
      detail::count_bytes(t->device, device.ordinal(), t.nbytes());
      reads.push_back(t);
      writes.push_back(row[i]);
      if (!same_strides(t, row[i])) {
        strided.push_back({row[i], t});
        continue;
      }
      const std::vector<const TensorBase*> pair = {&row[i], &t};
      if (runs.empty() || !runs.back().extend_later(pair)) runs.emplace_back().extend_later(pair);
    }
    detail::count(detail::Count::kTransfers, runs.size() + strided.size());
    detail::count(detail::Count::kLaunches, strided.size());
    std::vector<kernels::CopiedTensor> dense;  // neighbours as one
    for (const auto& run : runs)
      if (!run.empty()) dense.push_back({run.at(1), run.at(0), run.bytes()});
    const auto copies = [device, home = tensors[0].device(), dense,
                         strided](const detail::FanOut* together) {
      detail::copy_tensors(device, home, dense, /*flat=*/true, together);
      for (const auto& part : strided) autograd::copy_values(part.to, part.from);
    };
    if (fan.has(device)) copies(&fan);  // only if all tensors are ready
    else detail::move(device, reads, writes, [copies] { copies(nullptr); });
  }
  return row;
}

}  // namespace

std::vector<std::vector<Tensor>> broadcast_coalesced(ArrayRef<Tensor> tensors,
                                                     ArrayRef<Device> devices, int64_t buffer_size,
                                                     GroupRule rule) {
  const std::vector<Device> where = detail::resolved(devices);
  std::vector<BucketItem> items;
  for (size_t i = 0; i < tensors.size(); ++i) {
    RAMET_CHECK(tensors[i].defined(), "broadcast_coalesced", "tensor at index ", i,
                " is undefined");
    RAMET_CHECK(tensors[i].device() == tensors[0].device(), "broadcast_coalesced",
                "All tensors must be on one device: tensor at index ", i, " is on ",
                tensors[i].device(), ", expected ", tensors[0].device());
    autograd::settle(tensors[i]);
    items.push_back({static_cast<int64_t>(tensors[i].nbytes()), tensors[i].scalar_type()});
  }
  const auto groups = plan_buckets(items, buffer_size, rule);
  if (tensors.empty()) return std::vector<std::vector<Tensor>>(where.size());
  const uint64_t begun = autograd::movement_begins();
  const Device home = tensors[0].device();
  // A copy that waits for a task that writes its source begins later than the others.
  const bool ready = std::all_of(tensors.begin(), tensors.end(), detail::is_ready);
  const detail::FanOut fan(home, ready ? ArrayRef<Device>(where) : ArrayRef<Device>());
  std::vector<std::vector<Tensor>> out;
  bool used = false;
  for (Device d : where) {
    if (d == home && !used) {
      used = true;
      out.push_back(tensors.vec());
    } else {
      out.push_back(copied_row(tensors, groups, d, fan));
    }
  }
  if (begun) {
    std::vector<Tensor> to;
    for (const auto& row : out) to.insert(to.end(), row.begin(), row.end());
    autograd::tell_moved("broadcast", tensors, to, begun);
  }
  return out;
}

}  // namespace comm
}  // namespace parallel
}  // namespace ramet
