#include "tests/autograd/fuzz/fuzz_graphs.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/check.h"

namespace ramet {
namespace fuzz {
namespace {

struct Graph {
  std::vector<Tensor> leaves;
  Tensor sum;
};

// The same tape gives the same graph; with `devices` > 1 its nodes lie on that many devices.
Graph build(Tape tape, int devices) {
  Graph g;
  std::vector<Tensor> open;
  for (int64_t n = tape.between(1, 4); n > 0; --n) {
    g.leaves.push_back(varied_leaf({4}, static_cast<int>(n)));
    open.push_back(g.leaves.back());
  }
  // Late nodes more often than early ones: otherwise the graph would be wide and flat.
  const auto pick = [&] {
    const int64_t n = static_cast<int64_t>(open.size());
    return open[static_cast<size_t>(tape.one_in(3) ? tape.below(n)
                                                   : n - 1 - tape.below(std::min<int64_t>(n, 4)))];
  };
  while (tape.left()) {
    const int64_t kind = tape.below(8);
    const Device device(kCPU, static_cast<DeviceIndex>(tape.below(3) % devices));
    const Tensor a = pick().to(device), b = pick().to(device);
    switch (kind) {
      case 0: open.push_back(a + b); break;
      case 1: open.push_back(a * b * 0.5); break;
      case 2: open.push_back((a + a * 0.5).tanh()); break;
      case 3: open.push_back((a - b).sin()); break;
      case 4: {  // several results, of which some may stay unused
        const std::vector<Tensor> halves = a.chunk(2);
        open.push_back(cat({halves[1], tape.one_in(2) ? halves[1] : b.slice(0, 0, 2)}));
        break;
      }
      case 5: {
        Tensor c = a.clone();
        c.slice(0, 1, 3).mul_(b.slice(0, 0, 2));
        open.push_back(c);
        break;
      }
      case 6: open.push_back(a.detach() * b); break;
      default: open.push_back(stack({a, b, a}).sum(0) * 0.3); break;
    }
  }
  const Device home(kCPU, 0);
  g.sum = (open.back().to(home) * varied({4}, 99)).sum();
  for (int64_t n = tape.below(3); n >= 0; --n) g.sum = g.sum + pick().to(home).sum() * 0.1;
  return g;
}

using Gradients = std::vector<std::vector<double>>;
Gradients numbers(const std::vector<Tensor>& list, double factor = 1) {
  Gradients out;
  for (const Tensor& t : list) {
    out.push_back(t.defined() ? values(t) : std::vector<double>());
    for (double& v : out.back()) v *= factor;
  }
  return out;
}
Gradients collected(const Graph& g) {
  std::vector<Tensor> list;
  for (const Tensor& leaf : g.leaves) list.push_back(leaf.grad());
  return numbers(list);
}

bool close(const Gradients& a, const Gradients& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (size_t k = 0; k < a[i].size(); ++k)
      if (!(std::fabs(a[i][k] - b[i][k]) <= 1e-10 * (1 + std::fabs(b[i][k])))) return false;
  }
  return true;
}

}  // namespace

void check_graph(Tape& tape) {
  const Graph g = build(tape, 1);
  const auto grad = [](const Graph& of, bool create) {
    return autograd::grad({of.sum}, of.leaves, {}, /*retain_graph=*/true, create,
                          /*allow_unused=*/true);
  };
  const std::vector<Tensor> general = grad(g, false);
  const Gradients want = numbers(general);
  g.sum.backward({}, /*retain_graph=*/true);
  RC_ASSERT(collected(g) == want);
  g.sum.backward({}, /*retain_graph=*/true);
  RC_ASSERT(collected(g) == numbers(general, 2));
  RC_ASSERT(numbers(grad(g, true)) == want);
  // Some of the leaves only: nothing else changes.
  const Graph again = build(tape, 1);
  again.sum.backward({}, std::nullopt, false, TensorList(again.leaves.data(), 1));
  Gradients first(want.size());
  first[0] = want[0];
  RC_ASSERT(collected(again) == first);
  // Copies between devices are nodes that group what they pass on: other sums, but the same ones
  // every time.
  for (const int devices : {2, 3}) {
    const Graph spread = build(tape, devices);
    const Gradients there = numbers(grad(spread, false));
    RC_ASSERT(close(there, want));
    spread.sum.backward();
    RC_ASSERT(collected(spread) == there);
    const Graph twice = build(tape, devices);
    twice.sum.backward();
    RC_ASSERT(collected(twice) == there);
  }
}

}  // namespace fuzz
}  // namespace ramet
