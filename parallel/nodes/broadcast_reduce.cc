#include "parallel/nodes/broadcast_reduce.h"

#include <algorithm>

#include "autograd/graph/node.h"
#include "parallel/move/movement_internal.h"
#include "parallel/move/pieces_internal.h"

using ramet::detail::tls;

namespace ramet {
namespace parallel {
namespace {

using autograd::Node;
using autograd::RawEdge;

void check_slots(const char* op, size_t n) {
  RAMET_CHECK(n < (1u << 16), op, "devices times tensors: got ", n, ", expected at most 65535");
}

// Gradient of a broadcast: slot d * tensors + i is the copy of tensor i on device d.
struct BroadcastBackward final : Node {
  std::vector<RawEdge> edge;
  std::vector<Device> home;  // of each tensor
  size_t rows;
  BroadcastBackward(const std::vector<Tensor>& tensors, size_t devices)
      : Node("BroadcastBackward", static_cast<int>(tensors.size()),
             static_cast<int>(tensors.size() * devices), sizeof(BroadcastBackward)),
        rows(devices) {
    for (const Tensor& t : tensors) {
      edge.push_back(autograd::edge_of(t.impl()));
      home.push_back(t.device());
    }
    device = static_cast<uint8_t>(home[0].ordinal());
    flags |= kSpans;
    follow_edges();
  }
  ~BroadcastBackward() override {
    for (RawEdge& e : edge) autograd::release(e.node);
  }
  RawEdge* edges() override { return edge.data(); }
  void apply(Tensor* in, Tensor* out) override {
    const size_t tensors = edge.size();
    std::vector<size_t> whole;  // tensors with a gradient for every copy: reduced together
    for (size_t i = 0; i < tensors; ++i) {
      if (!needs(static_cast<int>(i))) continue;
      std::vector<Tensor> slots;
      for (size_t d = 0; d < rows; ++d) slots.push_back(in[d * tensors + i]);
      if (tensors > 1 &&
          std::all_of(slots.begin(), slots.end(), [](const Tensor& t) { return t.defined(); }))
        whole.push_back(i);
      else out[i] = detail::sum_of_slots(slots.data(), rows, home[i], ReduceOrder::fixed());
    }
    if (whole.empty()) return;
    std::vector<std::vector<Tensor>> lists(rows);
    for (size_t d = 0; d < rows; ++d)
      for (size_t i : whole) lists[d].push_back(in[d * tensors + i]);
    std::vector<Tensor> sums = reduce_add_coalesced(lists, home[0]);
    for (size_t k = 0; k < whole.size(); ++k) out[whole[k]] = std::move(sums[k]);
  }
};

// Gradient of a sum: edge d * tensors + i is the contribution of device d to tensor i.
struct ReduceAddBackward final : Node {
  std::vector<RawEdge> edge;
  std::vector<Device> from;  // of each list
  ReduceAddBackward(const char* name, const std::vector<RawEdge>& edges, std::vector<Device> lists,
                    size_t tensors, Device to)
      : Node(name, static_cast<int>(edges.size()), static_cast<int>(tensors),
             sizeof(ReduceAddBackward)),
        edge(edges),
        from(std::move(lists)) {
    device = static_cast<uint8_t>(to.ordinal());
    flags |= kSpans;
    follow_edges();
  }
  ~ReduceAddBackward() override {
    for (RawEdge& e : edge) autograd::release(e.node);
  }
  RawEdge* edges() override { return edge.data(); }
  void apply(Tensor* in, Tensor* out) override {
    std::vector<Tensor> grads;
    std::vector<size_t> at;
    for (size_t i = 0; i < slot_count; ++i) {
      if (!in[i].defined()) continue;
      grads.push_back(in[i]);
      at.push_back(i);
    }
    std::vector<size_t> lists;  // those that have any edge
    std::vector<Device> devices;
    for (size_t d = 0; d < from.size(); ++d) {
      bool any = false;
      for (size_t i : at) any = any || needs(static_cast<int>(d * slot_count + i));
      if (!any) continue;
      lists.push_back(d);
      devices.push_back(from[d]);
    }
    // If nothing is recorded, a list that is already in place gets the gradient itself.
    const auto copies = tls.grad_mode ? broadcast_coalesced(grads, devices)
                                      : comm::broadcast_coalesced(grads, devices);
    for (size_t k = 0; k < lists.size(); ++k)
      for (size_t i = 0; i < at.size(); ++i) out[lists[k] * slot_count + at[i]] = copies[k][i];
  }
};

RawEdge edge_if_wanted(const Tensor& t) {
  return t.defined() && autograd::recording(t) ? autograd::edge_of(t.impl()) : RawEdge();
}

using Inputs = std::vector<autograd::Input>;

void attach_all(std::vector<Tensor>& out, Node* node, const Tensor& of) {
  for (size_t i = 0; i < out.size(); ++i) autograd::attach(out[i], node, static_cast<uint32_t>(i));
  if (RAMET_UNLIKELY(tls.watching))
    autograd::tell_made(*node, autograd::Input(of), Inputs(out.begin(), out.end()));
  autograd::release(node);
}

}  // namespace

std::vector<std::vector<Tensor>> broadcast_coalesced(ArrayRef<Tensor> tensors,
                                                     ArrayRef<Device> devices, int64_t buffer_size,
                                                     GroupRule rule) {
  auto rows = comm::broadcast_coalesced(tensors, devices, buffer_size, rule);
  std::vector<size_t> recorded;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!autograd::recording(tensors[i])) continue;
    recorded.push_back(i);
    inputs.push_back(tensors[i]);
  }
  if (inputs.empty() || rows.empty()) return rows;
  check_slots("broadcast_coalesced", inputs.size() * rows.size());
  auto* node = autograd::new_node<BroadcastBackward>(inputs, rows.size());
  for (size_t d = 0; d < rows.size(); ++d) {
    for (size_t k = 0; k < recorded.size(); ++k) {
      Tensor& t = rows[d][recorded[k]];
      if (t.is_same(inputs[k])) t = detail::shared(t);
      autograd::attach(t, node, static_cast<uint32_t>(d * recorded.size() + k));
    }
  }
  if (RAMET_UNLIKELY(tls.watching)) {
    Inputs results;
    for (const auto& row : rows)
      for (const size_t i : recorded) results.emplace_back(row[i]);
    autograd::tell_made(*node, Inputs(inputs.begin(), inputs.end()), results);
  }
  autograd::release(node);
  return rows;
}

std::vector<Tensor> broadcast(const Tensor& t, ArrayRef<Device> devices) {
  std::vector<Tensor> out = comm::broadcast(t, devices);
  if (out.empty() || !autograd::recording(t)) return out;
  for (Tensor& o : out)
    if (o.is_same(t)) o = detail::shared(t);
  check_slots("broadcast", out.size());
  attach_all(out, autograd::new_node<BroadcastBackward>(std::vector<Tensor>{t}, out.size()), t);
  return out;
}

namespace {

Tensor record_sum(Tensor out, ArrayRef<Tensor> inputs) {
  std::vector<RawEdge> edges;
  std::vector<Device> from;
  bool any = false;
  for (const Tensor& t : inputs) {
    edges.push_back(edge_if_wanted(t));
    any = any || edges.back().node;
    from.push_back(t.defined() ? t.device() : out.device());
  }
  if (!any) return out;
  if (std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.is_same(out); }))
    out = detail::shared(out);
  auto* node = autograd::new_node<ReduceAddBackward>("ReduceAddBackward", edges, std::move(from), 1,
                                                     out.device());
  autograd::attach(out, node, 0);
  if (RAMET_UNLIKELY(tls.watching))
    autograd::tell_made(*node, Inputs(inputs.begin(), inputs.end()), autograd::Input(out));
  autograd::release(node);
  return out;
}

}  // namespace

Tensor reduce_add(ArrayRef<Tensor> inputs, std::optional<Device> destination,
                  const ReduceOptions& options) {
  return record_sum(comm::reduce_add(inputs, destination, options), inputs);
}

std::vector<Tensor> reduce_add_coalesced(ArrayRef<std::vector<Tensor>> inputs,
                                         std::optional<Device> destination, int64_t buffer_size,
                                         const ReduceOptions& options) {
  std::vector<Tensor> out = comm::reduce_add_coalesced(inputs, destination, buffer_size, options);
  std::vector<size_t> recorded;
  for (size_t i = 0; i < out.size(); ++i)
    for (const auto& row : inputs)
      if (autograd::recording(row[i])) {
        recorded.push_back(i);
        break;
      }
  if (recorded.empty()) return out;
  check_slots("reduce_add_coalesced", recorded.size() * inputs.size());
  std::vector<RawEdge> edges;
  std::vector<Device> from;
  for (const auto& row : inputs) {
    from.push_back(row[0].device());
    for (size_t i : recorded) edges.push_back(edge_if_wanted(row[i]));
  }
  auto* node =
      autograd::new_node<ReduceAddBackward>("ReduceAddCoalescedBackward", edges, std::move(from),
                                            recorded.size(), out[recorded[0]].device());
  for (size_t k = 0; k < recorded.size(); ++k) {
    Tensor& t = out[recorded[k]];
    for (const auto& row : inputs)
      if (t.is_same(row[recorded[k]])) t = detail::shared(t);
    autograd::attach(t, node, static_cast<uint32_t>(k));
  }
  if (RAMET_UNLIKELY(tls.watching)) {
    Inputs from_all, results;
    for (const auto& row : inputs)
      for (const size_t i : recorded) from_all.emplace_back(row[i]);
    for (const size_t i : recorded) results.emplace_back(out[i]);
    autograd::tell_made(*node, from_all, results);
  }
  autograd::release(node);
  return out;
}

namespace detail {

Tensor sum_of_slots(const Tensor* slots, size_t count, Device destination, ReduceOrder order) {
  const Tensor* only = nullptr;
  size_t present = 0;
  for (size_t i = 0; i < count; ++i)
    if (slots[i].defined()) only = &slots[i], ++present;
  if (present == 0) return {};
  if (present == 1 && only->device() == destination) return *only;
  Tensor out = empty_in_layout_of(*only, only->sizes(), destination);
  const std::vector<Tensor> in(slots, slots + count);
  if (present == 1) copy(out, *only);
  else sum_into(out, in, order);
  return record_sum(std::move(out), in);
}

}  // namespace detail

}  // namespace parallel
}  // namespace ramet
