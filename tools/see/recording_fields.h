// The members of a recording's rows by name, once: for writing, reading, checking and merging.
//
// A visitor has three functions. v(name, value) takes plain values. v.id(name, value, list) takes
// an index into a list of the recording, or a vector of indices. v.rows(name, vector) takes rows
// inside a row.
#pragma once
#include <concepts>
#include <type_traits>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// What an Id counts. The last two are no lists of rows: numbers that mean "the same one".
enum class List {
  devices,
  sources,
  modules,
  tensors,
  statistics,
  operations,
  nodes,
  buckets,
  parameters,
  storages,
  threads,
};
inline constexpr int kLists = 11;

template <class R, class Row>
concept RowOf = std::same_as<std::remove_const_t<R>, Row>;

template <class V, RowOf<Statistics> R> void fields(V& v, R& r) {
  v("count", r.count), v("zeros", r.zeros), v("nans", r.nans), v("infinities", r.infinities);
  v("min", r.min), v("max", r.max), v("mean", r.mean), v("deviation", r.deviation);
  v("histogram", r.histogram), v("digest", r.digest);
}
template <class V, RowOf<SourceRow> R> void fields(V& v, R& r) {
  v("file", r.file), v("function", r.function), v("line", r.line);
}
template <class V, RowOf<DeviceRow> R> void fields(V& v, R& r) {
  v("name", r.name), v("kind", r.kind), v("rank", r.rank);
}
template <class V, RowOf<ModuleRow> R> void fields(V& v, R& r) {
  v("path", r.path), v("type", r.type), v.id("parent", r.parent, List::modules);
}
template <class V, RowOf<TensorRow> R> void fields(V& v, R& r) {
  v("shape", r.shape), v("dtype", r.dtype), v.id("device", r.device, List::devices);
  v.id("storage", r.storage, List::storages), v("bytes", r.bytes), v("name", r.name);
  v.id("statistics", r.statistics, List::statistics);
}
template <class V, RowOf<OperationRow::Saved> R> void fields(V& v, R& r) {
  v.id("tensor", r.tensor, List::tensors), v("bytes", r.bytes), v("version", r.version);
}
template <class V, RowOf<OperationRow> R> void fields(V& v, R& r) {
  v("name", r.name), v("arguments", r.arguments), v.id("module", r.module, List::modules);
  v("scope", r.scope);
  v.id("source", r.source, List::sources);
  v.id("inputs", r.inputs, List::tensors), v.id("outputs", r.outputs, List::tensors);
  v("versions", r.versions), v.rows("saved", r.saved), v.id("device", r.device, List::devices);
  v("replica", r.replica), v.id("thread", r.thread, List::threads);
  v.id("node", r.node, List::nodes), v("start", r.start), v("end", r.end);
  v("autocast", r.autocast), v("reuses", r.reuses);
}
template <class V, RowOf<NodeRow::Edge> R> void fields(V& v, R& r) {
  v.id("to", r.to, List::nodes), v("slot", r.slot), v.id("tensor", r.tensor, List::tensors);
}
template <class V, RowOf<NodeRow> R> void fields(V& v, R& r) {
  v("name", r.name), v.id("operation", r.operation, List::operations);
  v.id("device", r.device, List::devices), v.id("parameter", r.parameter, List::parameters);
  v("leaf", r.leaf), v("moves", r.moves), v("reduces", r.reduces);
  v("in_backward", r.in_backward), v("sequence", r.sequence), v.rows("edges", r.edges);
}
template <class V, RowOf<KernelRow> R> void fields(V& v, R& r) {
  v("name", r.name), v.id("device", r.device, List::devices);
  v.id("operation", r.operation, List::operations), v.id("node", r.node, List::nodes);
  v("scope", r.scope), v.id("thread", r.thread, List::threads), v("start", r.start);
  v("end", r.end), v("bytes", r.bytes), v("flops", r.flops), v("replayed", r.replayed);
}
template <class V, RowOf<MovementRow> R> void fields(V& v, R& r) {
  v("kind", r.kind), v.id("from", r.from, List::tensors), v.id("to", r.to, List::tensors);
  v("bytes", r.bytes), v.id("operation", r.operation, List::operations);
  v.id("node", r.node, List::nodes), v.id("bucket", r.bucket, List::buckets);
  v("start", r.start), v("end", r.end);
}
template <class V, RowOf<BucketRow> R> void fields(V& v, R& r) {
  v("kind", r.kind), v.id("members", r.members, List::nodes);
  v.id("device", r.device, List::devices), v("bytes", r.bytes);
}
template <class V, RowOf<EventRow> R> void fields(V& v, R& r) {
  v("kind", r.kind), v("time", r.time), v.id("node", r.node, List::nodes), v("edge", r.edge);
  v.id("bucket", r.bucket, List::buckets), v.id("device", r.device, List::devices);
  v.id("tensor", r.tensor, List::tensors), v.id("thread", r.thread, List::threads);
  v("text", r.text);
}
template <class V, RowOf<ParameterRow> R> void fields(V& v, R& r) {
  v("name", r.name), v.id("tensor", r.tensor, List::tensors);
  v.id("gradient", r.gradient, List::tensors), v.id("node", r.node, List::nodes);
  v("requires_grad", r.requires_grad), v.id("contributors", r.contributors, List::nodes);
}
template <class V, RowOf<BlockRow> R> void fields(V& v, R& r) {
  v.id("storage", r.storage, List::storages), v("bytes", r.bytes), v("owner", r.owner);
  v.id("operation", r.operation, List::operations), v.id("node", r.node, List::nodes);
  v.id("parameter", r.parameter, List::parameters);
}
template <class V, RowOf<MemoryRow> R> void fields(V& v, R& r) {
  v.id("device", r.device, List::devices), v("curve", r.curve), v("peak", r.peak);
  v("peak_time", r.peak_time), v.rows("at_peak", r.at_peak);
}
template <class V, RowOf<FindingRow> R> void fields(V& v, R& r) {
  v("kind", r.kind), v("text", r.text), v.id("node", r.node, List::nodes);
  v.id("operation", r.operation, List::operations);
  v.id("parameter", r.parameter, List::parameters);
}

/// The lists alone.
template <class V, RowOf<RecordingData> R> void lists(V& v, R& r) {
  v.rows("devices", r.devices), v.rows("sources", r.sources), v.rows("modules", r.modules);
  v.rows("tensors", r.tensors), v.rows("statistics", r.statistics);
  v.rows("operations", r.operations), v.rows("nodes", r.nodes), v.rows("kernels", r.kernels);
  v.rows("movements", r.movements), v.rows("buckets", r.buckets), v.rows("events", r.events);
  v.rows("parameters", r.parameters), v.rows("memory", r.memory), v.rows("findings", r.findings);
}
template <class V, RowOf<RecordingData> R> void fields(V& v, R& r) {
  v("program", r.program), v("title", r.title), v("library", r.library), v("created", r.created);
  v("began", r.began), v("notes", r.notes), v("ranks", r.ranks), v("duration", r.duration);
  lists(v, r);
}

/// The length of each list; for the numbers that are no list, the largest number.
std::array<int64_t, kLists> sizes_of(const RecordingData& data);

}  // namespace see
}  // namespace ramet
