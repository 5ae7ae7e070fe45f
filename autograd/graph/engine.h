// Two ways to run the backward pass of one graph.
//
// Fast pass: backward() on a graph with all nodes on the caller's device. Operation counters are a
// topological order, so a heap of (counter, node) suffices. The pass needs no dependency count, no
// map, no lock and no other thread. A gradient waits in its node, or in the heap where a single
// edge leads to the node. The gradients of a node with several slots wait in a table.
//
// General pass (graph_task.h): everything else, that is grad(outputs, inputs) and graphs that span
// devices.
#pragma once
#include "autograd/graph/graph_order.h"

namespace ramet {
namespace autograd {

/// Chooses the pass and runs it.
void run_backward(std::vector<Root>& roots, bool retain_graph, bool create_graph);
/// Returns sum + g, computed in place where nothing else refers to sum. Recorded in grad mode.
Tensor accumulate(Tensor sum, const Tensor& g);
/// Calls n->apply inside a profiling scope, with anomaly checks.
void run_node(Node* n, Tensor* in, Tensor* out);
/// Reports to the graph's observers what a node delivers: `out`, one tensor for each edge. `pass`:
/// the address of the pass.
[[gnu::cold]] void tell_delivered(const void* pass, Node& from, const Tensor* out);

}  // namespace autograd
}  // namespace ramet
