// Lab 3: a graph, what the grader calls, and what it watches.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/labs/grader.h"

namespace ramet::labs {

/// A node of a graph in a backward pass. Its gradient is complete when every node that uses it, and
/// that the loss leads to, has passed its own on.
class WalkNode {
 public:
  double grad = 0;

  /// The nodes that it was computed from. One that it uses twice (x * x) is there twice.
  const std::vector<WalkNode*>& inputs() const { return inputs_; }
  /// Adds to the grad of each of its inputs what this node contributes. To be called once.
  void pass_on() {
    if (watch) watch(*this);
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->grad += grad * slopes_[i];
  }

  // The grader's.
  std::string name;
  std::vector<WalkNode*> inputs_;
  std::vector<double> slopes_;
  std::function<void(WalkNode&)> watch;
};

struct WalkLab {
  /// The backward of `loss`; the loss's own gradient is 1. It does not touch nodes that `loss` does
  /// not lead to.
  void (*backward)(WalkNode* loss);
};
void grade(const WalkLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::WalkLab { &space::backward }
