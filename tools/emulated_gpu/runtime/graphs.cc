// Stream capture, and the graphs it makes.
//
// A replay is one operation of its stream. It runs the nodes in the order of their recording. Where
// the streams' order is random, it runs them in any order that the captured dependencies allow. So
// a missing event between two captured streams shows there.
#include <algorithm>
#include <utility>

#include "tools/emulated_gpu/runtime/capture.h"

namespace ramet::emulated {

cudaError_t Capture::record(CUstream_st* stream, Operation operation) {
  if (invalid) return cudaErrorStreamCaptureInvalidated;
  if (operation.meeting) return record_meeting(stream, operation.meeting);
  std::set<size_t>& tail = tails[stream];
  nodes.push_back({std::move(operation.work), std::move(tail), stream->device});
  tail = {nodes.size() - 1};
  return cudaSuccess;
}

// One node for all members: it comes after what each of them has done before, and before what each
// of them does next. Its members must be in one capture.
cudaError_t Capture::record_meeting(CUstream_st* stream, const std::shared_ptr<Meeting>& meeting) {
  const auto [entry, first] = meetings.try_emplace(meeting, nodes.size());
  const size_t node = entry->second;
  if (first) nodes.push_back({meeting->work, {}, stream->device});
  std::set<size_t>& tail = tails[stream];
  nodes[node].after.insert(tail.begin(), tail.end());
  tail = {node};
  meeting->members.push_back(stream);
  return cudaSuccess;
}

std::vector<GraphNode> Capture::in_order() {
  for (const auto& [meeting, node] : meetings)
    if (static_cast<int>(meeting->members.size()) != meeting->count) return {};
  // A node that several streams made may come after one that was recorded later.
  std::vector<GraphNode> ordered;
  std::vector<size_t> place(nodes.size(), nodes.size());
  while (ordered.size() < nodes.size()) {
    const size_t before = ordered.size();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto placed = [&](size_t k) { return place[k] < nodes.size(); };
      const std::set<size_t>& after = nodes[i].after;
      if (placed(i) || !std::all_of(after.begin(), after.end(), placed)) continue;
      place[i] = ordered.size();
      GraphNode node{std::move(nodes[i].work), {}, nodes[i].device};
      for (const size_t k : after) node.after.insert(place[k]);
      ordered.push_back(std::move(node));
    }
    if (ordered.size() == before) return {};  // members that wait for each other
  }
  return ordered;
}

bool Capture::holds_blocking_stream_of(int device) const {
  return std::any_of(tails.begin(), tails.end(), [&](const auto& entry) {
    return entry.first->device == device && entry.first->blocking();
  });
}

bool Capture::all_joined() const {
  std::set<size_t> followed = tails.at(origin);
  for (const GraphNode& node : nodes) followed.insert(node.after.begin(), node.after.end());
  return followed.size() == nodes.size();
}

bool captures_here(const Engine& engine) {
  return std::any_of(engine.captures.begin(), engine.captures.end(), [](const auto& capture) {
    return capture->thread == std::this_thread::get_id();
  });
}

cudaError_t refuse_while_capturing(Engine& engine) {
  cudaError_t refused = cudaSuccess;
  for (const auto& capture : engine.captures) {
    const bool mine = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeRelaxed) continue;
    if (capture->mode == cudaStreamCaptureModeThreadLocal && !mine) continue;
    capture->invalid = true;
    refused = cudaErrorStreamCaptureUnsupported;
  }
  return refused;
}

cudaError_t refuse_to_free_while_capturing(Engine& engine) {
  cudaError_t refused = refuse_while_capturing(engine);
  if (settings().free_in_capture) return refused;
  for (const auto& capture : engine.captures) {
    if (capture->thread != std::this_thread::get_id()) continue;
    capture->invalid = true;
    refused = cudaErrorStreamCaptureUnsupported;
  }
  return refused;
}

namespace {

using Nodes = std::shared_ptr<const std::vector<GraphNode>>;

void run_node(const GraphNode& node) {
  // After a fault nothing more runs on that device.
  const Device& device = *engine().devices[static_cast<size_t>(node.device)];
  if (node.work && device.sticky.load() == cudaSuccess) node.work();
}

void replay(const Nodes& nodes, uint64_t seed) {
  if (settings().streams != StreamMode::Random) {
    for (const GraphNode& node : *nodes) run_node(node);
    return;
  }
  std::vector<bool> done(nodes->size());
  for (size_t left = nodes->size(); left > 0; --left) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < nodes->size(); ++i) {
      const std::set<size_t>& after = (*nodes)[i].after;
      if (!done[i] && std::all_of(after.begin(), after.end(), [&](size_t k) { return done[k]; }))
        ready.push_back(i);
    }
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    const size_t next = ready[(seed >> 33) % ready.size()];
    run_node((*nodes)[next]);
    done[next] = true;
  }
}

}  // namespace
}  // namespace ramet::emulated

using namespace ramet::emulated;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (stream->is_default) return result(cudaErrorStreamCaptureUnsupported);
  if (stream->capture) return result(cudaErrorStreamCaptureUnmatched);
  auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->origin = stream;
  capture->thread = std::this_thread::get_id();
  capture->tails[stream] = {};
  stream->capture = capture;
  call.engine.captures.push_back(std::move(capture));
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return result(cudaErrorStreamCaptureUnmatched);
  call.engine.end_capture(capture);
  if (capture->invalid) return result(cudaErrorStreamCaptureInvalidated);
  if (!capture->all_joined()) return result(cudaErrorStreamCaptureUnjoined);
  const bool empty = capture->nodes.empty();
  std::vector<GraphNode> nodes = capture->in_order();
  if (nodes.empty() && !empty) return result(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(nodes)};
  call.engine.graphs.insert(*graph);
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus* status) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  *status = !stream->capture           ? cudaStreamCaptureStatusNone
            : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  RAMET_EMULATED_ENTER;
  if (!call.engine.graphs.count(graph)) return result(cudaErrorInvalidValue);
  RAMET_EMULATED_DRIVER_ALLOCATES;
  if (const cudaError_t error =
          call.engine.wait_as_drivers_may(call.device(), call.lock, "cudaGraphInstantiate"))
    return result(error);
  *executable = new CUgraphExec_st{std::make_shared<std::vector<GraphNode>>(graph->nodes)};
  call.engine.executables.insert(*executable);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  RAMET_EMULATED_ENTER;
  RAMET_EMULATED_STREAM(stream, handle);
  if (!call.engine.executables.count(executable)) return result(cudaErrorInvalidValue);
  RAMET_EMULATED_DRIVER_ALLOCATES;
  const uint64_t seed = settings().stream_seed + ++call.engine.launches;
  // The nodes live as long as the replay, even when the executable does not.
  Operation operation{"graph", [nodes = executable->nodes, seed] { replay(nodes, seed); }};
  return result(call.engine.enqueue(stream, std::move(operation), call.lock));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  RAMET_EMULATED_ENTER;
  if (!call.engine.graphs.erase(graph)) return result(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  RAMET_EMULATED_ENTER;
  if (!call.engine.executables.erase(executable)) return result(cudaErrorInvalidValue);
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
