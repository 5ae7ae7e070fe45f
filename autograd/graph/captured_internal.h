// Notifications from the engine to a capture.
#pragma once

namespace ramet {
namespace autograd {

struct AccumulateGrad;
struct Node;

// Call all of them on a thread that makes a capture.

/// Call before reading or changing a leaf's gradient.
void note_gradient(AccumulateGrad* sink);
/// A gradient arrives at a node, perhaps only for autograd::grad to return. A leaf's hooks would
/// run.
void note_hooks(Node* node);
/// Call before a node runs, or before an observer of its gradients does. An Error where the node is
/// older than the capture: at a replay, a graph from outside may have other nodes, hooks and
/// retained gradients.
void refuse_older(const Node* node);

}  // namespace autograd
}  // namespace ramet
