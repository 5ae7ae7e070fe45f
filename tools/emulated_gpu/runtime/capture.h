// Streams in capture: their operations are recorded into a graph instead of being queued.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "tools/emulated_gpu/runtime/engine.h"

namespace ramet::emulated {

/// One operation of a graph, and the earlier ones that it comes after.
struct GraphNode {
  std::function<void()> work;
  std::set<size_t> after;
  int device;
};

struct Capture {
  cudaStreamCaptureMode mode;
  CUstream_st* origin;
  std::thread::id thread;
  std::vector<GraphNode> nodes;
  /// Each stream that takes part, and the nodes that its next operation comes after.
  std::map<CUstream_st*, std::set<size_t>> tails;
  /// The node of each meeting that a captured stream has joined.
  std::map<std::shared_ptr<Meeting>, size_t> meetings;
  bool invalid = false, ended = false;

  cudaError_t record(CUstream_st* stream, Operation operation);
  bool holds_blocking_stream_of(int device) const;
  /// Every node but those that the origin's next operation would come after has a successor.
  bool all_joined() const;
  /// The nodes in an order in which each comes after its dependencies. Empty where there is no such
  /// order, or a meeting lacks members.
  std::vector<GraphNode> in_order();

 private:
  cudaError_t record_meeting(CUstream_st* stream, const std::shared_ptr<Meeting>& meeting);
};

/// Does the calling thread capture a stream?
bool captures_here(const Engine& engine);
/// Answers to calls that no capture allows (cudaMalloc, synchronisation): invalidates the captures
/// that they would break.
cudaError_t refuse_while_capturing(Engine& engine);
/// The same of calls that give memory back: Settings::free_in_capture.
cudaError_t refuse_to_free_while_capturing(Engine& engine);

}  // namespace ramet::emulated

struct CUgraph_st {
  std::vector<ramet::emulated::GraphNode> nodes;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<ramet::emulated::GraphNode>> nodes;
};
