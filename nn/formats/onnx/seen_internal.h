// What a forward does, seen while it runs: which tensors each node of the graph of gradients was
// made of and is the history of, and which numbers its kernel was given. The node itself tells
// neither.
#pragma once
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "autograd/graph/graph_observer.h"

namespace ramet {
namespace formats {

class OnnxSeen : public autograd::GraphObserver {
 public:
  /// A tensor, and its version when the node was made.
  struct At {
    Tensor tensor;
    uint32_t version;
    /// Undefined where it has been written since.
    Tensor now() const {
      return tensor.defined() && tensor.version() == version ? tensor : Tensor();
    }
  };
  /// Two numbers of a pointwise kernel (PointwiseArgs); 0 where the node had none.
  struct Numbers {
    double s = 0, t = 0;
  };
  struct Made {
    std::vector<At> inputs, results;
    Numbers numbers;
  };

  OnnxSeen();
  ~OnnxSeen() override;
  void on_node_made(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                    ArrayRef<autograd::Input> results) override;
  /// Null where nothing is known of it.
  const Made* made(const autograd::Node& node) const;

 private:
  void on_kernel(const KernelCall& call);

  mutable std::mutex mutex_;
  const std::thread::id thread_ = std::this_thread::get_id();
  // Results hold their node, so no other one is made at its address.
  std::unordered_map<const autograd::Node*, Made> made_;
  Numbers last_;  // of the last kernel of this thread
  uint64_t observer_;
};

}  // namespace formats
}  // namespace ramet
