// What a recording holds: plain rows that refer to each other by index. The file (recording_file.h)
// is these structs as JSON, member for member, one list per kind of row.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace see {

/// An index into a list of RecordingData; -1: none.
using Id = int32_t;

/// Statistics of all elements of one tensor. Infinite and NaN elements are counted, and left out of
/// the rest.
struct Statistics {
  /// How many elements there are, and how many are zero, NaN or infinite:
  int64_t count = 0, zeros = 0, nans = 0, infinities = 0;

  /// Of the finite elements; `deviation` is the standard deviation:
  double min = 0, max = 0, mean = 0, deviation = 0;  // 0 where none is finite
  std::array<int64_t, 32> histogram{};               // equal bins from min to max
  uint64_t digest = 0;  // xxHash64 of the elements' bytes, row-major: equal bits; 0: not taken
  RAMET_API bool operator==(const Statistics&) const;
};

/// A line of the program that was recorded: the `file`, the `function` that has it, and the
/// `line`'s number from 1. The line is 0 where only the function is known.
struct SourceRow {
  std::string file, function;
  int line = 0;
  RAMET_API bool operator==(const SourceRow&) const;
};

/// A device that took part.
struct DeviceRow {
  std::string name;  // "cpu:0", "cuda:1"
  std::string kind;  // "cpu", "gpu", "emulated gpu": times of an emulated GPU say nothing about a
                     // GPU
  int rank = 0;      // the process
  RAMET_API bool operator==(const DeviceRow&) const;
};

/// A module of a model that was watched. Its `parent` is the module that has it.
struct ModuleRow {
  std::string path;  // "encoder.0.fc", as in named_modules(); empty for the root
  std::string type;  // "Linear"
  Id parent = -1;
  RAMET_API bool operator==(const ModuleRow&) const;
};

/// A tensor by its properties: sizes in `shape`, the `device` that has it, and `statistics`, where
/// they were taken. The elements are not kept.
struct TensorRow {
  std::vector<int64_t> shape;
  std::string dtype;  // "float32"
  Id device = -1;
  Id storage = -1;    // rows that show the same memory have the same number
  int64_t bytes = 0;  // of its elements
  std::string name;   // of a parameter or buffer, as in named_parameters(); else empty
  Id statistics = -1;
  RAMET_API bool operator==(const TensorRow&) const;
};

/// A function that was called in the forward, and left a node or not. It ran on `device`, on the
/// thread with the number `thread`, and its tensors are `inputs` and `outputs`. `replica` is the
/// index of the replica that called it, -1 outside of replicas. `node` is what it left.
struct OperationRow {
  std::string name;       // "addmm"
  std::string arguments;  // without tensors that the node has edges to: "dim=1, keepdim=false"
  Id module = -1;         // innermost module with a running forward
  std::string scope;      // RecordScopes around it, outermost first: "step > forward"
  Id source = -1;         // first frame outside of Ramet, where asked for
  std::vector<Id> inputs, outputs;
  std::vector<uint32_t> versions;  // of the inputs
  /// A `tensor` that the node saved, at this `version`.
  struct Saved {
    Id tensor = -1;
    int64_t bytes = 0;  // of its elements; not known: whether only this graph keeps them alive
    uint32_t version = 0;
    RAMET_API bool operator==(const Saved&) const;
  };
  std::vector<Saved> saved;  // by the node, for the backward pass
  Id device = -1;
  int replica = -1;
  uint64_t thread = 0;
  Id node = -1;
  /// Nanoseconds since the recording began; `end` is when the node was made:
  uint64_t start = 0, end = 0;

  bool autocast = false;  // a cast of its one input that autocast put in
  int reuses = 0;         // how often autocast used this cast again instead of casting
  RAMET_API bool operator==(const OperationRow&) const;
};

/// A node of the graph. Gradients flow from it along its `edges`. An `operation` made it. It is a
/// `leaf`'s collector, or a node that `moves` gradients between devices, or one that `reduces`
/// them.
struct NodeRow {
  std::string name;  // "AddmmBackward0"
  Id operation = -1;
  Id device = -1;     // its lane
  Id parameter = -1;  // of a leaf's collector: into `parameters`
  bool leaf = false, moves = false, reduces = false;
  bool in_backward = false;  // recorded by a backward with create_graph
  uint64_t sequence = 0;     // larger is later
  /// An edge to the node `to`, into its gradient number `slot`.
  struct Edge {
    Id to = -1;
    uint32_t slot = 0;
    Id tensor = -1;  // shape of the gradient that travels there
    RAMET_API bool operator==(const Edge&) const;
  };
  std::vector<Edge> edges;  // one per input, to = -1 where it wants none
  RAMET_API bool operator==(const NodeRow&) const;
};

/// A call of the kernel `name` on `device`, by `thread`, from `start` to `end` in nanoseconds.
/// `scope` has the RecordScopes around it.
struct KernelRow {
  std::string name;
  Id device = -1;
  /// The caller, where it is known:
  Id operation = -1, node = -1;

  std::string scope;
  uint64_t thread = 0, start = 0, end = 0;
  /// What it moves and computes; -1 where that is not known:
  int64_t bytes = -1, flops = -1;

  bool replayed = false;  // by a captured step
  RAMET_API bool operator==(const KernelRow&) const;
};

/// Data that went from devices to devices: so many `bytes`, for an `operation`, a `node` or a
/// `bucket`, from `start` to `end` in nanoseconds.
struct MovementRow {
  // "scatter", "gather", "broadcast", "reduce_add", and of ranks "all_reduce", "all_gather",
  // "send"...
  std::string kind;
  /// Tensors:
  std::vector<Id> from, to;

  int64_t bytes = 0;
  Id operation = -1, node = -1, bucket = -1;
  uint64_t start = 0, end = 0;
  RAMET_API bool operator==(const MovementRow&) const;
};

/// Gradients that are reduced by one call, on `device`. All together have so many `bytes`.
struct BucketRow {
  std::string kind;         // "reduce_add", "all_reduce"
  std::vector<Id> members;  // nodes
  Id device = -1;
  int64_t bytes = 0;
  RAMET_API bool operator==(const BucketRow&) const;
};

/// An event. They are in the order in which they happened, so a viewer steps through a recording by
/// reading them. `kind` says what happened, and which of `node`, `edge`, `bucket`, `device`,
/// `tensor` and `text` it has. `thread` is where.
struct EventRow {
  std::string kind;
  // "backward_begin"  node: its first root.
  // "ready"           node: all of its gradients have come.
  // "begin", "end"    node ran on device.
  // "failed"          node threw: text.
  // "delivered"       node, edge: which of its edges; tensor: the gradient.
  // "accumulated"     node: a leaf added its gradient; tensor: its gradient now.
  // "slot"            bucket, node: a member is complete.
  // "reduce_begin", "reduce_end"  bucket.
  // "backward_end".
  // "step_begin", "step_end"      an optimizer's step: text is its name.
  uint64_t time = 0;  // nanoseconds since the recording began
  Id node = -1, edge = -1, bucket = -1, device = -1, tensor = -1;
  uint64_t thread = 0;
  std::string text;
  RAMET_API bool operator==(const EventRow&) const;
};

/// A parameter by its `name`, as in named_parameters(). `requires_grad` is what it was at the end.
struct ParameterRow {
  std::string name;
  /// Tensors; `gradient` is -1 where it has none:
  Id tensor = -1, gradient = -1;

  Id node = -1;  // its collector, where the graph has it
  bool requires_grad = true;
  std::vector<Id> contributors;  // nodes with gradients for it
  RAMET_API bool operator==(const ParameterRow&) const;
};

/// Memory that was alive at the peak: a `storage` of so many `bytes`, and what it belongs to.
struct BlockRow {
  Id storage = -1;
  int64_t bytes = 0;
  std::string owner;  // "parameter fc.weight", "gradient of fc.weight", "saved by AddmmBackward0",
                      // "output of relu", "other"
  /// What the owner is, where it has a row:
  Id operation = -1, node = -1, parameter = -1;

  RAMET_API bool operator==(const BlockRow&) const;
};

/// The memory of a `device` over time. The most bytes were `peak`, at `peak_time`.
struct MemoryRow {
  Id device = -1;
  std::vector<std::array<int64_t, 2>> curve;  // time in ns, bytes of live storages
  int64_t peak = 0;
  uint64_t peak_time = 0;
  std::vector<BlockRow> at_peak;  // largest first
  RAMET_API bool operator==(const MemoryRow&) const;
};

/// Something that looks wrong, in words. It is about a `node`, an `operation` or a `parameter`.
struct FindingRow {
  std::string kind;  // "no gradient", "dead relu", "vanishing", "exploding", "nan", "large saved
                     // tensor", "host wait", "late replica"
  std::string text;
  Id node = -1, operation = -1, parameter = -1;
  RAMET_API bool operator==(const FindingRow&) const;
};

/// A whole recording of so many `ranks`, with a list of rows per kind. About the program:
/// `devices`, `sources`, `modules`, `tensors`, `statistics`, `parameters`. About what happened:
/// `operations`, `nodes`, `kernels`, `movements`, `buckets`, `events`, `findings`.
struct RecordingData {
  std::string program;             // argv[0] without its folder.
  std::string title;               // given by the program that recorded.
  std::string library;             // ramet::version()
  std::string created;             // "2026-11-27T08:00:00Z"
  int64_t began = 0;               // microseconds since 1970 by the machine's clock
  std::vector<std::string> notes;  // what a reader must know, e.g. that times are an emulation's
  int ranks = 1;
  uint64_t duration = 0;  // ns; times count from `began`
  std::vector<DeviceRow> devices;
  std::vector<SourceRow> sources;
  std::vector<ModuleRow> modules;
  std::vector<TensorRow> tensors;
  std::vector<Statistics> statistics;
  std::vector<OperationRow> operations;
  std::vector<NodeRow> nodes;
  std::vector<KernelRow> kernels;
  std::vector<MovementRow> movements;
  std::vector<BucketRow> buckets;
  std::vector<EventRow> events;
  std::vector<ParameterRow> parameters;
  std::vector<MemoryRow> memory;  // one per device that had any
  std::vector<FindingRow> findings;
  RAMET_API bool operator==(const RecordingData&) const;
};

/// Bumped when a reader of the older version would be wrong.
inline constexpr int kRecordingVersion = 1;

}  // namespace see
}  // namespace ramet
