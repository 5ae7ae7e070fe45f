// What the engine tells a capture.
#pragma once

namespace ramet {
namespace autograd {

struct AccumulateGrad;
struct Node;

// All of them on a thread that makes a capture.

/// Before a leaf's gradient is looked at or changed.
void note_gradient(AccumulateGrad* sink);
/// A gradient comes to a node, perhaps only to be returned (autograd::grad): a leaf's hooks would
/// run.
void note_hooks(Node* node);
/// Before a node runs, or what watches its gradients. An Error where it is older than the capture:
/// a graph from outside may have other nodes, hooks and retained gradients at a replay.
void refuse_older(const Node* node);

}  // namespace autograd
}  // namespace ramet
