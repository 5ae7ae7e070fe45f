// The graph of a tensor, as data, as text and as DOT: it shows what record() built.
//
//   auto graph = autograd::collect_graph({loss}, model->named_parameters());   // before backward()
//   std::cout << graph.text();
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

/// The nodes and edges that a backward would visit.
struct RAMET_API GraphPicture {
  /// A node.
  struct Vertex {
    std::string name;   // "AddBackward0"
    std::string label;  // of a named leaf: "fc.weight float32[10, 128]". Otherwise empty.
    Device device;      // where its backward runs
    bool leaf = false;  // an AccumulateGrad
    // Its gradients come from or go to another device: Broadcast, ReduceAdd, Scatter, Gather.
    bool moves = false;
    bool reduces = false;  // a ReduceAdd
  };
  /// An edge.
  struct Edge {
    size_t from, to;  // indices of vertices; gradients flow from `from` to `to`
    uint32_t slot;    // which of `to`'s gradients
  };

  // In the order in which a backward may visit them: every edge leads to a later vertex.
  std::vector<Vertex> vertices;
  std::vector<Edge> edges;  // sorted by `from`, then by the position among its edges
  bool complete = true;     // false: the graph is larger than the limit

  /// One line for each vertex: "#3 AddmmBackward0 cpu:1 -> #4, #7[1]".
  std::string text() const;
  /// The graph in Graphviz's language; `dot -Tsvg` draws it.
  std::string dot() const;
};

/// Collects everything that a backward from `roots` would visit, at most `max_vertices` nodes.
/// `names` gives names to the leaves of its tensors. Needs constant stack for a graph of any depth.
/// During the call no backward may run on the graph.
RAMET_API GraphPicture collect_graph(ArrayRef<Tensor> roots,
                                     const std::vector<std::pair<std::string, Tensor>>& names = {},
                                     size_t max_vertices = static_cast<size_t>(-1));

}  // namespace autograd
}  // namespace ramet
