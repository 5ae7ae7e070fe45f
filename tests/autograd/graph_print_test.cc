// Graphs as text and DOT.
#include "autograd/graph_print.h"

#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "tests/autograd/graph/small_stack.h"

namespace ramet {
namespace {

using autograd::collect_graph;

TEST(GraphPrint, ASmallGraphAsText) {
  const Tensor w = ones({2, 3}, requires_grad()), b = ones({3}, requires_grad());
  const Tensor x = ones({4, 2});
  const Tensor loss = (mm(x, w) + b).sum();
  const auto graph = collect_graph({loss}, {{"w", w}, {"b", b}, {"x", x}});
  EXPECT_TRUE(graph.complete);
  EXPECT_EQ(graph.text(),
            "#0 SumBackward0 cpu -> #1\n"
            "#1 AddBackward0 cpu -> #3, #2\n"
            "#2 AccumulateGrad b float32[3] cpu\n"
            "#3 MmBackward0 cpu -> #4\n"
            "#4 AccumulateGrad w float32[2, 3] cpu\n");
}

TEST(GraphPrint, EdgesLeadToLaterVertices) {
  const Tensor x = ones({3}, requires_grad());
  Tensor a = x * 2, b = a + x, c = a * b;
  const Tensor y = c + b + x.sin();
  const auto graph = collect_graph({y, c});
  EXPECT_EQ(graph.vertices.front().name, "AddBackward0");
  size_t leaves = 0;
  for (const auto& v : graph.vertices) leaves += v.leaf;
  EXPECT_EQ(leaves, 1u);
  for (const auto& e : graph.edges) EXPECT_LT(e.from, e.to);
  // x is used by a, b and sin; a by b and c; b by c and the sum. c and sin are each used by a sum,
  // and the sums by one another.
  EXPECT_EQ(graph.edges.size(), 10u);
}

TEST(GraphPrint, TiedParametersAndNothingAtAll) {
  const Tensor w = ones({2}, requires_grad());
  const auto graph = collect_graph({w.sum()}, {{"a", w}, {"b", w}});
  EXPECT_EQ(graph.vertices.at(1).label, "b = a float32[2]");
  EXPECT_TRUE(collect_graph({ones({2})}).vertices.empty());
  EXPECT_EQ(collect_graph({w}).text(), "#0 AccumulateGrad cpu\n");
  EXPECT_THROW(collect_graph({Tensor()}), Error);
}

TEST(GraphPrint, ChainOfAMillionNodesOnASmallStack) {
  on_small_stack([] {
    Tensor x = ones({1}, requires_grad());
    Tensor y = x;
    const size_t length = 1'000'000;
    for (size_t i = 0; i < length; ++i) y = y + 1;
    const auto graph = collect_graph({y});
    EXPECT_EQ(graph.vertices.size(), length + 1);
    EXPECT_NE(graph.text().find("#1000000 AccumulateGrad"), std::string::npos);
    EXPECT_NE(graph.dot().find("n999999 -> n1000000;"), std::string::npos);
    const auto cut = collect_graph({y}, {}, 10);
    EXPECT_FALSE(cut.complete);
    EXPECT_EQ(cut.vertices.size(), 10u);
    EXPECT_NE(cut.text().find("the graph goes on"), std::string::npos);
  });
}

TEST(GraphPrint, Dot) {
  const Tensor w = ones({2}, requires_grad());
  const std::string dot = collect_graph({w.sum()}, {{"the \"w\"", w}}).dot();
  EXPECT_EQ(dot.rfind("digraph autograd {", 0), 0u);
  EXPECT_NE(dot.find("n0 [label=\"SumBackward0\\ncpu\"]"), std::string::npos) << dot;
  EXPECT_NE(dot.find("AccumulateGrad\\nthe \\\"w\\\" float32[2]\\ncpu"), std::string::npos) << dot;
  EXPECT_NE(dot.find("n0 -> n1;"), std::string::npos);
}

}  // namespace
}  // namespace ramet
