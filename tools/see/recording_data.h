// What a recording holds: plain rows that refer to each other by index. The file (recording_file.h)
// is these structs as JSON, member for member, one list a kind of row.
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
  int64_t count = 0, zeros = 0, nans = 0, infinities = 0;
  double min = 0, max = 0, mean = 0, deviation = 0;  // 0 where no element is finite
  std::array<int64_t, 32> histogram{};               // equal bins from min to max
  uint64_t digest = 0;  // xxHash64 of the elements' bytes, row-major: equal bits; 0: not taken
  RAMET_API bool operator==(const Statistics&) const;
};

/// A line of the program that was recorded.
struct SourceRow {
  std::string file, function;
  int line = 0;
  RAMET_API bool operator==(const SourceRow&) const;
};

struct DeviceRow {
  std::string name;  // "cpu:0", "cuda:1"
  std::string kind;  // "cpu", "gpu", "emulated gpu": times of an emulated GPU say nothing about a
                     // GPU
  int rank = 0;      // the process
  RAMET_API bool operator==(const DeviceRow&) const;
};

struct ModuleRow {
  std::string path;  // "encoder.0.fc", as in named_modules(); empty for the root
  std::string type;  // "Linear"
  Id parent = -1;
  RAMET_API bool operator==(const ModuleRow&) const;
};

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

/// A function that was called in the forward, and left a node or not.
struct OperationRow {
  std::string name;       // "addmm"
  std::string arguments;  // without tensors that the node has edges to: "dim=1, keepdim=false"
  Id module = -1;         // innermost module with a running forward
  std::string scope;      // RecordScopes around it, outermost first: "step > forward"
  Id source = -1;         // first frame outside of Ramet, where asked for
  std::vector<Id> inputs, outputs;
  std::vector<uint32_t> versions;  // of the inputs
  struct Saved {
    Id tensor = -1;
    int64_t bytes = 0;  // of its elements; not known: whether only this graph keeps them alive
    uint32_t version = 0;
    RAMET_API bool operator==(const Saved&) const;
  };
  std::vector<Saved> saved;
  Id device = -1;
  int replica = -1;
  uint64_t thread = 0;
  Id node = -1;
  uint64_t start = 0, end = 0;  // ns since the recording began; end: when the node was made
  bool autocast = false;        // a cast of its one input that autocast put in
  int reuses = 0;               // how often autocast used this cast again instead of casting
  RAMET_API bool operator==(const OperationRow&) const;
};

/// A node of the graph. Gradients flow from it along its edges.
struct NodeRow {
  std::string name;  // "AddmmBackward0"
  Id operation = -1;
  Id device = -1;     // its lane
  Id parameter = -1;  // of a leaf's collector: into `parameters`
  bool leaf = false, moves = false, reduces = false;
  bool in_backward = false;  // recorded by a backward with create_graph
  uint64_t sequence = 0;     // larger is later
  struct Edge {
    Id to = -1;
    uint32_t slot = 0;
    Id tensor = -1;  // shape of the gradient that travels there
    RAMET_API bool operator==(const Edge&) const;
  };
  std::vector<Edge> edges;  // one an input, to = -1 where it wants none
  RAMET_API bool operator==(const NodeRow&) const;
};

struct KernelRow {
  std::string name;
  Id device = -1;
  Id operation = -1, node = -1;  // the caller, where known
  std::string scope;
  uint64_t thread = 0, start = 0, end = 0;
  int64_t bytes = -1, flops = -1;  // -1: not known
  bool replayed = false;           // by a captured step
  RAMET_API bool operator==(const KernelRow&) const;
};

/// Data that went from devices to devices.
struct MovementRow {
  // "scatter", "gather", "broadcast", "reduce_add", and of ranks "all_reduce", "all_gather",
  // "send"...
  std::string kind;
  std::vector<Id> from, to;  // tensors
  int64_t bytes = 0;
  Id operation = -1, node = -1, bucket = -1;
  uint64_t start = 0, end = 0;
  RAMET_API bool operator==(const MovementRow&) const;
};

/// Gradients that are reduced by one call.
struct BucketRow {
  std::string kind;         // "reduce_add", "all_reduce"
  std::vector<Id> members;  // nodes
  Id device = -1;
  int64_t bytes = 0;
  RAMET_API bool operator==(const BucketRow&) const;
};

/// The events, in the order in which they happened. A viewer steps through a recording by reading
/// them.
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
  uint64_t time = 0;
  Id node = -1, edge = -1, bucket = -1, device = -1, tensor = -1;
  uint64_t thread = 0;
  std::string text;
  RAMET_API bool operator==(const EventRow&) const;
};

struct ParameterRow {
  std::string name;
  Id tensor = -1, gradient = -1;  // tensors; -1: it has no gradient
  Id node = -1;                   // its collector, where the graph has it
  bool requires_grad = true;
  std::vector<Id> contributors;  // nodes with gradients for it
  RAMET_API bool operator==(const ParameterRow&) const;
};

struct BlockRow {
  Id storage = -1;
  int64_t bytes = 0;
  std::string owner;  // "parameter fc.weight", "gradient of fc.weight", "saved by AddmmBackward0",
                      // "output of relu", "other"
  Id operation = -1, node = -1, parameter = -1;
  RAMET_API bool operator==(const BlockRow&) const;
};
struct MemoryRow {
  Id device = -1;
  std::vector<std::array<int64_t, 2>> curve;  // time in ns, bytes of live storages
  int64_t peak = 0;
  uint64_t peak_time = 0;
  std::vector<BlockRow> at_peak;  // largest first
  RAMET_API bool operator==(const MemoryRow&) const;
};

/// Something that looks wrong, in words.
struct FindingRow {
  std::string kind;  // "no gradient", "dead relu", "vanishing", "exploding", "nan", "large saved
                     // tensor", "host wait", "late replica"
  std::string text;
  Id node = -1, operation = -1, parameter = -1;
  RAMET_API bool operator==(const FindingRow&) const;
};

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
  std::vector<MemoryRow> memory;  // one a device that had any
  std::vector<FindingRow> findings;
  RAMET_API bool operator==(const RecordingData&) const;
};

/// Bumped when a reader of the older version would be wrong.
inline constexpr int kRecordingVersion = 1;

}  // namespace see
}  // namespace ramet
