// What tests of recordings check in one, and what each must be.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/see/recording_data.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {

inline size_t at(Id id) { return static_cast<size_t>(id); }
template <class Row> const Row& row(const std::vector<Row>& list, Id id) { return list.at(at(id)); }

inline std::vector<std::string> names(const RecordingData& d) {
  std::vector<std::string> out;
  for (const OperationRow& op : d.operations) out.push_back(op.name);
  return out;
}
inline Id find_node(const RecordingData& d, const std::string& name) {
  for (size_t i = 0; i < d.nodes.size(); ++i)
    if (d.nodes[i].name == name) return static_cast<Id>(i);
  return -1;
}
inline const ParameterRow* find_parameter(const RecordingData& d, const std::string& name) {
  for (const ParameterRow& p : d.parameters)
    if (p.name == name) return &p;
  return nullptr;
}
inline size_t count(const RecordingData& d, const std::string& kind) {
  return static_cast<size_t>(std::ranges::count(d.events, kind, &EventRow::kind));
}
inline size_t where(const RecordingData& d, const std::string& kind, Id node) {
  for (size_t i = 0; i < d.events.size(); ++i)
    if (d.events[i].kind == kind && d.events[i].node == node) return i;
  return d.events.size();
}
inline double sum_of(const Statistics& s) { return s.mean * static_cast<double>(s.count); }
inline const Statistics& statistics(const RecordingData& d, Id tensor) {
  return row(d.statistics, row(d.tensors, tensor).statistics);
}
// Every index leads somewhere: what a file is checked for.
inline void expect_whole(const RecordingData& d) {
  EXPECT_EQ(from_json(to_json(d), "recording"), d);
  for (size_t i = 1; i < d.events.size(); ++i) EXPECT_GE(d.events[i].time, d.events[i - 1].time);
}

// One backward pass: along each edge at most one gradient, after its node ended and before the next
// is ready. Every node begins and ends once.
inline void expect_walk(const RecordingData& d) {
  std::set<std::pair<Id, Id>> seen;
  std::map<Id, int> begun;
  for (size_t i = 0; i < d.events.size(); ++i) {
    const EventRow& e = d.events[i];
    if (e.kind == "begin") ++begun[e.node];
    if (e.kind != "delivered") continue;
    EXPECT_TRUE(seen.insert({e.node, e.edge}).second) << "twice along " << e.node << "/" << e.edge;
    const NodeRow& from = row(d.nodes, e.node);
    if (!from.reduces) { EXPECT_LT(where(d, "end", e.node), i); }
    const Id to = from.edges.at(at(e.edge)).to;
    ASSERT_GE(to, 0);
    EXPECT_GT(where(d, "ready", to), i) << from.name << " to " << row(d.nodes, to).name;
  }
  for (const auto& [node, times] : begun) EXPECT_EQ(times, 1) << row(d.nodes, node).name;
}

}  // namespace see
}  // namespace ramet
