// The positions of the nodes of a recording's graph in a picture: lanes by sequence.
//
// Note [Lanes by sequence]
// A lane is a device. It has three zones from left to right: the collectors of leaves, the
// reductions that lead to them, and everything else. All lanes share the rows. A node stands below
// all nodes that its gradients go to. So the forward reads downwards and the backward upwards, and
// replicas, which have equal graphs, stand next to each other row by row. A collector or reduction
// stands next to the first operation that uses its parameter, two in a row. A graph that follows
// another one in the same lanes (the next step) stands below it. A graph that a backward recorded
// stands below that backward's root. The layout takes a few passes over the edges, whatever the
// size, and gives the same picture on every machine. The page decides which rows and modules it
// shows: it leaves out rows and never changes their order.
//
// Where Graphviz is installed and a graph is small, dot chooses the columns of a lane
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
  int half = 0;      // of collectors and reductions: the upper or the lower place of the row.
  bool bar = false;  // a movement between lanes: drawn over all of them.
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

/// Lays out a recording with valid indices (check.h). Lanes are its devices. With `dot` false it
/// never runs Graphviz.
Layout lay_out(const RecordingData& data, bool dot = true);

namespace detail {
/// The columns of the nodes of one lane in the order that dot gives them. `nodes` have their rows
/// already. Empty where dot is missing or failed.
std::vector<int> columns_by_dot(const RecordingData& data, const std::vector<Place>& places,
                                const std::vector<Id>& nodes);
}  // namespace detail

}  // namespace see
}  // namespace ramet
