// Findings about memory and time.
#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "tools/see/findings_internal.h"

namespace ramet {
namespace see {

void find_large_saved(RecordingData& d, const FindingLimits& limits) {
  for (const MemoryRow& m : d.memory) {
    for (const BlockRow& b : m.at_peak) {
      if (!b.owner.starts_with("saved by") || b.bytes < limits.saved_bytes || m.peak <= 0) continue;
      const double share = static_cast<double>(b.bytes) / static_cast<double>(m.peak);
      if (share < limits.saved_share) continue;
      const NodeRow* node = row(d.nodes, b.node);
      const Id operation = b.operation >= 0 ? b.operation : node ? node->operation : -1;
      const OperationRow* op = row(d.operations, operation);
      add_finding(d, "large saved tensor",
                  (op ? call_of(d, *op) : b.owner.substr(9)) + " keeps " + size_text(b.bytes) +
                      " for its backward: " + percent(share) + " of the peak of " +
                      device_of(d, m.device) + ", which is " + size_text(m.peak) +
                      ". A smaller batch, or computing it again in the backward, makes room.",
                  b.node, operation, -1);
    }
  }
}

namespace {

// Functions with a result that the host needs before it can go on.
bool asks_for_a_number(std::string_view name) {
  constexpr std::array kNames = {"item",
                                 "is_nonzero",
                                 "nonzero",
                                 "equal",
                                 "allclose",
                                 "unique",
                                 "masked_select",
                                 "print",
                                 "bincount",
                                 "_local_scalar_dense",
                                 "repeat_interleave"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}
bool is_gpu(const RecordingData& d, Id device) {
  const DeviceRow* r = row(d.devices, device);
  return r && r->kind != "cpu";
}
bool on_gpu(const RecordingData& d, Id tensor) {
  const TensorRow* t = row(d.tensors, tensor);
  return t && is_gpu(d, t->device);
}
bool on_host(const RecordingData& d, Id tensor) {
  const TensorRow* t = row(d.tensors, tensor);
  return t && row(d.devices, t->device) && !is_gpu(d, t->device);
}

}  // namespace

void find_host_waits(RecordingData& d) {
  uint64_t step_end = 0;
  std::vector<uint64_t> steps_ended;
  for (const EventRow& e : d.events) {
    if (e.kind == "step_end" || e.kind == "backward_end") step_end = std::max(step_end, e.time);
    if (e.kind == "step_end") steps_ended.push_back(e.time);
  }
  std::sort(steps_ended.begin(), steps_ended.end());
  std::vector<uint64_t> made;  // when operations left nodes
  for (const OperationRow& op : d.operations)
    if (op.node >= 0) made.push_back(op.start);
  std::sort(made.begin(), made.end());
  // After one step, before the forward of the next one has begun?
  const auto between_steps = [&](uint64_t time) {
    const auto after = std::upper_bound(steps_ended.begin(), steps_ended.end(), time);
    if (after == steps_ended.begin()) return false;
    const auto first = std::upper_bound(made.begin(), made.end(), *(after - 1));
    return first == made.end() || *first >= time;
  };
  for (size_t i = 0; i < d.operations.size(); ++i) {
    const OperationRow& op = d.operations[i];
    if (op.start >= step_end || between_steps(op.start)) continue;
    const auto there = std::ranges::find_if(op.inputs, [&](Id t) { return on_gpu(d, t); });
    const bool reads = there != op.inputs.end();
    const bool to_host =
        reads && op.inputs.size() == 1 && op.outputs.size() == 1 && on_host(d, op.outputs[0]);
    const bool asks = reads && asks_for_a_number(op.name);
    const bool synchronizes = op.name == "synchronize" && is_gpu(d, op.device);
    if (!to_host && !asks && !synchronizes) continue;
    const Id device = synchronizes ? op.device : d.tensors[static_cast<size_t>(*there)].device;
    add_finding(d, "host wait",
                "In the middle of the step " + call_of(d, op) + " waits for " +
                    device_of(d, device) +
                    ": the program cannot queue further work before the device has done all of "
                    "this. What needs the result can be done after the step.",
                op.node, static_cast<Id>(i), -1);
  }
}

namespace {

struct Lane {
  uint64_t busy = 0, last = 0;
  Id last_node = -1;
};

// One backward: its time, and what each lane did in it.
struct Backward {
  uint64_t begin = 0, end = 0;
  std::map<Id, Lane> lanes;
};

std::vector<Backward> backwards_of(const RecordingData& d) {
  std::vector<Backward> all;
  std::map<std::pair<Id, uint64_t>, std::pair<int, uint64_t>> open;  // lane, thread: depth, since
  bool inside = false;
  for (const EventRow& e : d.events) {
    if (e.kind == "backward_begin" && !inside) {
      all.push_back({e.time, e.time, {}});
      open.clear();
      inside = true;
    } else if (e.kind == "backward_end" && inside) {
      all.back().end = e.time;
      inside = false;
    }
    if (!inside || !row(d.devices, e.device)) continue;
    auto& [depth, since] = open[{e.device, e.thread}];
    if (e.kind == "begin" && depth++ == 0) since = e.time;
    if ((e.kind == "end" || e.kind == "failed") && depth > 0 && --depth == 0) {
      Lane& lane = all.back().lanes[e.device];
      lane.busy += e.time - since;
      lane.last = e.time;
      lane.last_node = e.node;
    }
  }
  if (inside) all.pop_back();  // it never ended
  // A GPU's nodes are only queued by its lane.
  for (Backward& b : all) {
    for (auto it = b.lanes.begin(); it != b.lanes.end();)
      it = is_gpu(d, it->first) ? b.lanes.erase(it) : std::next(it);
    for (const KernelRow& k : d.kernels) {
      const DeviceRow* device = row(d.devices, k.device);
      if (!device || device->kind != "gpu" || k.start < b.begin || k.end > b.end) continue;
      Lane& lane = b.lanes[k.device];
      lane.busy += k.end - k.start;
      if (k.end >= lane.last) lane.last = k.end, lane.last_node = k.node;
    }
  }
  return all;
}

}  // namespace

void find_late_replicas(RecordingData& d, const FindingLimits& limits) {
  for (const Backward& b : backwards_of(d)) {
    if (b.lanes.size() < 2 || b.end <= b.begin) continue;
    const auto busier = [](const auto& x, const auto& y) { return x.second.busy < y.second.busy; };
    const auto& [late, most] = *std::max_element(b.lanes.begin(), b.lanes.end(), busier);
    const auto time = static_cast<double>(b.end - b.begin);
    for (const auto& [device, lane] : b.lanes) {
      const uint64_t idle = most.busy - lane.busy;
      if (idle < limits.idle_ns || static_cast<double>(idle) < limits.idle_share * time) continue;
      const NodeRow* node = row(d.nodes, most.last_node);
      add_finding(
          d, "late replica",
          device_of(d, device) + " was busy for " + percent(static_cast<double>(lane.busy) / time) +
              " of the backward, " + device_of(d, late) + " for " +
              percent(static_cast<double>(most.busy) / time) + ": it waits for that one" +
              (node ? ", whose last node is " + node_of(d, *node) : std::string()) +
              ". Pieces of different size, or devices of different speed, bring this about.",
          most.last_node, node ? node->operation : -1, -1);
    }
  }
}

}  // namespace see
}  // namespace ramet
