// What a forward did. Each node of the graph of gradients has the tensors and the arguments that
// its operation was called with, and its results.
#pragma once
#include <mutex>
#include <unordered_map>
#include <vector>

#include "autograd/graph/graph_observer.h"

namespace ramet {
namespace formats {

class OnnxHistory : public autograd::GraphObserver {
 public:
  /// A tensor, and its version when the node was made.
  struct At {
    Tensor tensor;
    Tensor shape;  // the same memory with the sizes and strides of then, which may change in place
    uint32_t version;
    /// Undefined where it has been written since.
    Tensor now() const {
      return tensor.defined() && tensor.version() == version ? tensor : Tensor();
    }
  };
  struct Operation {
    std::vector<At> inputs, results;
    autograd::Arguments arguments;
    std::vector<At> tensors;  // among the arguments
  };

  void on_operation(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                    ArrayRef<autograd::Input> results,
                    const autograd::Arguments& arguments) override;
  /// Null where nothing is known of it.
  const Operation* of(const autograd::Node& node) const;

 private:
  mutable std::mutex mutex_;
  // Results hold their node, so no other one is made at its address.
  std::unordered_map<const autograd::Node*, Operation> operations_;
};

}  // namespace formats
}  // namespace ramet
