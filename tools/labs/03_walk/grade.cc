// Graphs with known gradients, and a check of every call of pass_on().
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "tools/labs/03_walk/lab.h"

namespace ramet::labs {
namespace {

class Graph {
 public:
  WalkNode* node(std::string name, std::vector<WalkNode*> inputs = {},
                 std::vector<double> slopes = {}) {
    nodes_.push_back(std::make_unique<WalkNode>());
    WalkNode* n = nodes_.back().get();
    n->name = std::move(name);
    n->inputs_ = std::move(inputs);
    n->slopes_ = std::move(slopes);
    n->watch = [this](WalkNode& which) { passes_on(which); };
    return n;
  }

  /// Runs the answer's backward pass from `loss`, and checks that each node that it leads to has
  /// passed on.
  void walk(const WalkLab& answer, WalkNode* loss) {
    find_users(loss);
    answer.backward(loss);
    for (const auto& n : nodes_) {
      if (n.get() != loss && !users_.count(n.get())) continue;
      expect(done_.count(n.get()) != 0, "the walk is over, and node ", n->name,
             " with its gradient ", n->grad,
             " has never called pass_on(): its gradient never went on to what it was "
             "computed from");
    }
  }
  size_t passed() const { return done_.size(); }

 private:
  std::vector<std::unique_ptr<WalkNode>> nodes_;
  std::map<WalkNode*, std::vector<WalkNode*>> users_;  // of those that the loss leads to
  std::set<WalkNode*> done_, reached_;

  void find_users(WalkNode* loss) {
    std::vector<WalkNode*> stack = {loss};
    reached_ = {loss};
    while (!stack.empty()) {
      WalkNode* n = stack.back();
      stack.pop_back();
      for (WalkNode* input : n->inputs()) {
        users_[input].push_back(n);
        if (reached_.insert(input).second) stack.push_back(input);
      }
    }
  }

  void passes_on(WalkNode& which) {
    expect(reached_.count(&which) != 0, "node ", which.name,
           " passed a gradient on, and the loss does not lead there");
    expect(done_.insert(&which).second, "node ", which.name,
           " passed its gradient on a second time, so what it contributes was added twice");
    const auto users = users_.find(&which);
    if (users == users_.end()) return;
    for (WalkNode* user : users->second)
      expect(done_.count(user) != 0, "node ", which.name, " passed its gradient on before node ",
             user->name, ", which uses it, had: it was not complete");
  }
};

void gradient_is(const WalkNode* node, double want) {
  expect(std::fabs(node->grad - want) <= 1e-9 * std::fabs(want), "node ", node->name,
         " has the gradient ", node->grad, ", expected ", want);
}

std::string chain(const WalkLab& answer) {
  Graph g;
  WalkNode *x = g.node("x"), *a = g.node("a", {x}, {2}), *b = g.node("b", {a}, {-3}),
           *loss = g.node("loss", {b}, {0.5});
  g.walk(answer, loss);
  gradient_is(x, -3);
  return "x <- a <- b <- loss: x has -3";
}

// The shorter path reaches `a` first, and the longer one brings the rest. Whichever of loss's two
// inputs a backward pass visits first, one of the two graphs has the longer path last.
std::string two_paths(const WalkLab& answer) {
  for (const bool longer_first : {false, true}) {
    Graph g;
    WalkNode *x = g.node("x"), *a = g.node("a", {x}, {2}), *b = g.node("b", {a}, {3}),
             *c = g.node("c", {b}, {5}), *loss = nullptr;
    if (longer_first) loss = g.node("loss", {c, a}, {1, 7});
    else loss = g.node("loss", {a, c}, {7, 1});
    g.walk(answer, loss);
    gradient_is(a, 22);
    gradient_is(x, 44);
  }
  return "a gets 7 by the short one and 15 by the long one, and x 44";
}

std::string used_twice(const WalkLab& answer) {
  Graph g;
  WalkNode *x = g.node("x"), *y = g.node("y", {x}, {1}), *square = g.node("square", {y, y}, {3, 3}),
           *loss = g.node("loss", {square}, {2});
  g.walk(answer, loss);
  gradient_is(x, 12);
  return "y * y gives y both its gradients";
}

std::string others(const WalkLab& answer) {
  Graph g;
  WalkNode *x = g.node("x"), *a = g.node("a", {x}, {2}), *elsewhere = g.node("elsewhere", {a}, {9}),
           *loss = g.node("loss", {a}, {3});
  g.walk(answer, loss);
  expect(elsewhere->grad == 0, "node elsewhere has the gradient ", elsewhere->grad,
         ", and the loss does not lead there");
  gradient_is(x, 6);
  return "what else uses a is not waited for";
}

// 2^60 paths.
std::string ladder(const WalkLab& answer) {
  Graph g;
  WalkNode* below = g.node("x");
  WalkNode* x = below;
  for (int i = 0; i < 60; ++i) {
    const std::string n = std::to_string(i);
    WalkNode *left = g.node("left " + n, {below}, {0.5}),
             *right = g.node("right " + n, {below}, {0.5});
    below = g.node("rung " + n, {left, right}, {1, 1});
  }
  g.walk(answer, below);
  gradient_is(x, 1);
  return words(g.passed(), " nodes passed on once each");
}

constexpr int kLong = 200000;
std::string long_chain(const WalkLab& answer) {
  // Without the checks: their maps are slower than the backward pass.
  std::vector<WalkNode> nodes(kLong);
  for (int i = 0; i < kLong; ++i) {
    nodes[size_t(i)].name = words("number ", i);
    if (i == 0) continue;
    nodes[size_t(i)].inputs_ = {&nodes[size_t(i) - 1]};
    nodes[size_t(i)].slopes_ = {1};
  }
  answer.backward(&nodes.back());
  gradient_is(&nodes[0], 1);
  return "the first node has the gradient 1";
}

}  // namespace

void grade(const WalkLab& answer, Report& report) {
  const std::string order =
      "when may a node pass its gradient on? chapter 3, and the small example "
      "in task.md";
  report.step("a chain", order, [&] { return chain(answer); });
  report.step("two paths of different lengths", order, [&] { return two_paths(answer); });
  report.step("a node that is used twice by one other",
              "inputs() names it twice: count uses, not users: task.md",
              [&] { return used_twice(answer); });
  report.step("a use that the loss does not lead to",
              "only uses that this walk reaches bring a gradient: task.md",
              [&] { return others(answer); });
  report.step("60 rungs of a ladder, 2^60 paths",
              "the work has to grow with the number of edges, not of paths: chapter 3",
              [&] { return ladder(answer); });
  report.step(
      words("a chain of ", kLong),
      "a call of a function inside itself takes a piece of the stack, which has 8 MB: a list "
      "of what is to do has no such limit: chapter 3",
      [&] { return long_chain(answer); });
}

}  // namespace ramet::labs
