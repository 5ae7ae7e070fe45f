// What the files of findings share: rows by index, and how they are named in a sentence.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "tools/see/findings.h"

namespace ramet {
namespace see {

/// The row at `id`; null where there is none, or where the index is not in the list.
template <class Row> const Row* row(const std::vector<Row>& list, Id id) {
  return id >= 0 && static_cast<size_t>(id) < list.size() ? &list[static_cast<size_t>(id)]
                                                          : nullptr;
}
inline const Statistics* statistics_of(const RecordingData& d, Id tensor) {
  const TensorRow* t = row(d.tensors, tensor);
  const Statistics* s = t ? row(d.statistics, t->statistics) : nullptr;
  return s && s->count > 0 ? s : nullptr;
}
/// Of the finite elements.
inline double root_mean_square(const Statistics& s) { return std::hypot(s.mean, s.deviation); }
inline double zero_share(const Statistics& s) {
  return static_cast<double>(s.zeros) / static_cast<double>(s.count);
}

std::string number(double x);      // "2.1e-09"
std::string percent(double part);  // 0.38: "38 %"; never "100 %" of what is not all
std::string size_text(int64_t bytes);
/// "relu in encoder.0.act (model.cc:12)": as much of it as is known.
std::string call_of(const RecordingData& d, const OperationRow& op);
/// "ReluBackward0 of relu in encoder.0.act (model.cc:12)".
std::string node_of(const RecordingData& d, const NodeRow& node);
std::string device_of(const RecordingData& d, Id device);

void add_finding(RecordingData& d, std::string kind, std::string text, Id node, Id operation,
                 Id parameter);

// The parts of find(), each for its kinds.
void find_missing_gradients(RecordingData& d);
void find_dead_relus(RecordingData& d, const FindingLimits& limits);
void find_gradient_ratios(RecordingData& d, const FindingLimits& limits);
void find_first_nan(RecordingData& d);
void find_large_saved(RecordingData& d, const FindingLimits& limits);
void find_host_waits(RecordingData& d);
void find_late_replicas(RecordingData& d, const FindingLimits& limits);

}  // namespace see
}  // namespace ramet
