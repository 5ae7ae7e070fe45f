// Asks Graphviz for the order of the nodes in a row: fewer crossings than by sequence.
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tools/see/explorer/layout.h"

namespace ramet {
namespace see {
namespace detail {

namespace {

// Numbers only: no name of a recording gets into a program's input. Every node has dot's size of
// one, and a row is one of dot's ranks.
std::string question(const RecordingData& data, const std::vector<Place>& places,
                     const std::vector<Id>& nodes) {
  auto out = ramet::detail::classic<std::ostringstream>();
  out << "digraph g { rankdir=TB; nodesep=0.1; ranksep=0.3; node [shape=box, fixedsize=true, "
         "width=1, height=0.3, label=\"\"];\n";
  std::map<int, std::vector<Id>> rows;
  std::vector<char> here(data.nodes.size(), 0);
  for (const Id i : nodes) {
    rows[places[i].row].push_back(i);
    here[i] = 1;
  }
  std::string before;
  for (const auto& [row, ids] : rows) {
    const std::string name = "r" + std::to_string(row);
    out << name << " [style=invis, width=0.01]; { rank=same; " << name << ";";
    for (const Id i : ids) out << " n" << i << ";";
    out << " }\n";
    if (!before.empty()) out << before << " -> " << name << " [style=invis];\n";
    before = name;
  }
  for (const Id i : nodes)
    for (const auto& e : data.nodes[i].edges)
      if (e.to >= 0 && here[e.to]) out << "n" << e.to << " -> n" << i << ";\n";
  out << "}\n";
  return out.str();
}

// "node n12 3.5 1.0 ..." among dot's plain lines.
std::map<Id, double> places_of(std::FILE* answer) {
  std::map<Id, double> x;
  char line[4096];
  while (std::fgets(line, sizeof line, answer)) {
    int id = 0, number = 0;
    if (std::sscanf(line, "node n%d %n", &id, &number) != 1) continue;
    char* end = nullptr;
    const double at = ramet::detail::read_double(line + number, &end);
    if (end != line + number) x[id] = at;
  }
  return x;
}

}  // namespace

std::vector<int> columns_by_dot(const RecordingData& data, const std::vector<Place>& places,
                                const std::vector<Id>& nodes) {
  char path[] = "/tmp/ramet-dot-XXXXXX";
  const int file = ::mkstemp(path);
  if (file < 0) return {};
  ::close(file);
  ramet::detail::classic<std::ofstream>(path) << question(data, places, nodes);
  std::map<Id, double> x;
  if (std::FILE* answer =
          ::popen(("dot -Tplain " + std::string(path) + " 2>/dev/null").c_str(), "r")) {
    x = places_of(answer);
    if (::pclose(answer) != 0) x.clear();
  }
  ::unlink(path);
  if (x.size() != nodes.size()) return {};
  double left = 1e300;
  for (const auto& [id, at] : x) left = std::min(left, at);
  std::vector<int> columns;
  for (const Id i : nodes) {
    const auto found = x.find(i);
    if (found == x.end()) return {};
    columns.push_back(static_cast<int>(std::lround((found->second - left) / 1.1)));
  }
  return columns;
}

}  // namespace detail
}  // namespace see
}  // namespace ramet
