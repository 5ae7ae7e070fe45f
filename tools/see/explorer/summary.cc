#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "tools/see/explore.h"

namespace ramet {
namespace see {

namespace {

std::string bytes_of(int64_t n) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double x = static_cast<double>(n);
  size_t unit = 0;
  while (x >= 1024 && unit + 1 < std::size(kUnits)) {
    x /= 1024;
    ++unit;
  }
  return ramet::detail::formatted("%.*f %s", unit && x < 10 ? 1 : 0, x, kUnits[unit]);
}

std::string time_of(uint64_t ns) {
  const double x = static_cast<double>(ns);
  if (x < 1e6) return ramet::detail::formatted("%.3g us", x / 1e3);
  if (x < 1e9) return ramet::detail::formatted("%.3g ms", x / 1e6);
  return ramet::detail::formatted("%.3g s", x / 1e9);
}

// A terminal's control characters, and what would break the line, are left out.
std::string plain(const std::string& text, size_t most = 60) {
  std::string out;
  for (const char c : text) out += static_cast<unsigned char>(c) < 32 || c == 127 ? '?' : c;
  if (out.size() <= most) return out;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  return out.substr(0, end) + "...";
}

std::string many(size_t n, const char* one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

// The names that took longest, with how often they ran.
void longest(std::ostringstream& out, const char* head,
             const std::map<std::string, std::pair<uint64_t, int>>& by_name) {
  std::vector<std::pair<std::string, std::pair<uint64_t, int>>> rows(by_name.begin(),
                                                                     by_name.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
  if (rows.empty()) return;
  out << head << '\n';
  for (size_t i = 0; i < std::min<size_t>(rows.size(), 5); ++i)
    out << ramet::detail::formatted("  %-44s %10s  %d x\n", plain(rows[i].first, 44).c_str(),
                                    time_of(rows[i].second.first).c_str(), rows[i].second.second);
}

}  // namespace

std::string summary(const RecordingData& d) {
  auto out = ramet::detail::classic<std::ostringstream>();
  out << plain(d.title.empty() ? d.program : d.title, 100) << ": "
      << many(d.operations.size(), "operation") << ", " << many(d.nodes.size(), "node") << ", "
      << many(d.events.size(), "event") << " in " << time_of(d.duration) << '\n';
  const auto device = [&](const DeviceRow& row) {
    return plain(row.name) + (d.ranks > 1 ? " of rank " + std::to_string(row.rank) : "");
  };
  out << "devices:";
  for (const DeviceRow& row : d.devices) {
    out << ' ' << device(row);
    if (row.kind == "emulated gpu") out << " (emulated: its times say nothing about a card)";
    if (&row != &d.devices.back()) out << ',';
  }
  out << '\n';
  std::map<std::string, std::pair<int, int>> casts;  // made, used again
  for (const OperationRow& row : d.operations) {
    if (!row.autocast || row.inputs.empty() || row.outputs.empty()) continue;
    if (row.inputs[0] < 0 || row.outputs[0] < 0) continue;
    auto& [made, again] =
        casts[d.tensors[row.inputs[0]].dtype + " to " + d.tensors[row.outputs[0]].dtype];
    ++made;
    again += row.reuses;
  }
  for (const auto& [dtypes, counts] : casts)
    out << "autocast: " << many(counts.first, "cast") << " from " << plain(dtypes)
        << ", used again " << counts.second << " x\n";
  std::map<std::string, std::pair<uint64_t, int>> operations, backward;
  for (const OperationRow& row : d.operations) {
    auto& here = operations[row.name];
    here.first += row.end - std::min(row.start, row.end);
    ++here.second;
  }
  std::map<Id, uint64_t> began;
  for (const EventRow& e : d.events) {
    if (e.kind == "begin" && e.node >= 0) began[e.node] = e.time;
    if (e.kind != "end" || e.node < 0 || !began.count(e.node)) continue;
    auto& here = backward[d.nodes[e.node].leaf ? "AccumulateGrad" : d.nodes[e.node].name];
    here.first += e.time - std::min(e.time, began[e.node]);
    ++here.second;
  }
  longest(out, "forward, longest first:", operations);
  longest(out, "backward, longest first:", backward);
  for (const MemoryRow& row : d.memory) {
    if (row.device < 0) continue;
    out << "memory of " << device(d.devices[row.device]) << ": at most " << bytes_of(row.peak)
        << " after " << time_of(row.peak_time);
    for (size_t i = 0; i < std::min<size_t>(row.at_peak.size(), 3); ++i)
      out << (i ? ", " : "; ") << bytes_of(row.at_peak[i].bytes) << " "
          << plain(row.at_peak[i].owner);
    out << '\n';
  }
  for (const BucketRow& row : d.buckets)
    out << "bucket " << &row - d.buckets.data() << " (" << plain(row.kind)
        << "): " << many(row.members.size(), "member") << ", " << bytes_of(row.bytes) << '\n';
  for (const FindingRow& row : d.findings)
    out << "found: " << plain(row.kind) << ": " << plain(row.text, 160) << '\n';
  for (const std::string& note : d.notes) out << "note: " << plain(note, 160) << '\n';
  return out.str();
}

}  // namespace see
}  // namespace ramet
