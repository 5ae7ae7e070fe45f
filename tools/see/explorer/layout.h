// Where the nodes of a recording's graph stand in a picture of it: lanes by sequence.
//
// Note [Lanes by sequence]
// A lane is a device, and has three zones from left to right: the collectors of leaves, the
// reductions that lead to them, and everything else. Rows are shared by all lanes: a node stands
// below all that its gradients go to, so the forward reads downwards and the backward upwards, and
// replicas, whose graphs are alike, stand side by side row by row. A collector or reduction stands
// beside the first operation that uses its parameter, two in a row. A graph that comes after
// another one in the same lanes (the next step) stands below it, and what a backward recorded below
// that backward's root. All this is a few passes over the edges, whatever the size, and gives the
// same picture on every machine. Which rows and modules are shown is the page's business: it leaves
// out rows and never changes their order.
//
// Where Graphviz is there, and a graph is small, dot chooses the columns of a lane
// (columns_dot.cc).
#pragma once
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

enum Zone : int { kLeaves, kReductions, kOperations, kZones };

struct Place {
  int lane = 0, zone = kOperations, row = 0, column = 0;
  int half = 0;      // of collectors and reductions: the upper or the lower place of the row
  bool bar = false;  // a movement between lanes: drawn over all of them
  int part = 0;      // graphs that hang together have one number
};

/// Data that moved outside of the graph, between two rows of it.
struct MovementBar {
  int row = 0;
  std::string kind;
  std::vector<Id> movements;  // that began between the same operations
  std::vector<Id> from, to;   // lanes
};

struct Layout {
  std::vector<Place> nodes;  // as RecordingData::nodes
  std::vector<MovementBar> bars;
  int rows = 0;
  std::string columns_by;  // "dot" or "sequence"
};

/// Of a recording whose indices are right (check.h). Lanes are its devices.
/// `dot` false: never asks for Graphviz.
Layout lay_out(const RecordingData& data, bool dot = true);

namespace detail {
/// The columns of the nodes of one lane in the order that dot gives them, for `nodes` with their
/// rows; empty where there is no dot or it failed.
std::vector<int> columns_by_dot(const RecordingData& data, const std::vector<Place>& places,
                                const std::vector<Id>& nodes);
}  // namespace detail

}  // namespace see
}  // namespace ramet
