#include "autograd/graph_print.h"

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "autograd/graph/node.h"

namespace ramet {
namespace autograd {

namespace {

// Depth first without recursion. A node is appended after all nodes that it leads to, so the
// reversed list is a topological order. Among independent nodes the later operation comes first, as
// in a backward.
struct Walk {
  struct Frame {
    Node* node;
    int next;
  };
  std::unordered_map<const Node*, bool> seen;
  std::vector<Node*> finished;
  bool complete = true;

  void from(Node* root, size_t limit) {
    std::vector<Frame> stack;
    visit(root, limit, stack);
    while (!stack.empty()) {
      Frame& f = stack.back();
      if (f.next == f.node->edge_count) {
        finished.push_back(f.node);
        stack.pop_back();
        continue;
      }
      Node* to = f.node->edges()[f.next++].node;
      if (to) visit(to, limit, stack);
    }
  }

 private:
  void visit(Node* n, size_t limit, std::vector<Frame>& stack) {
    if (seen.count(n)) return;
    if (seen.size() >= limit) {
      complete = false;
      return;
    }
    seen.emplace(n, true);
    stack.push_back({n, 0});
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

GraphPicture collect_graph(ArrayRef<Tensor> roots,
                           const std::vector<std::pair<std::string, Tensor>>& names,
                           size_t max_vertices) {
  std::unordered_map<const Node*, std::string> labels;
  for (const auto& [name, tensor] : names) {
    if (!tensor.defined() || !tensor.requires_grad() || !tensor.is_leaf()) continue;
    std::string& label = labels[grad_accumulator(tensor.impl())];
    // A tied parameter has several names and one node.
    label = label.empty()
                ? name + " " + short_name_of(tensor.scalar_type()) + detail::join(tensor.sizes())
                : name + " = " + label;
  }
  Walk walk;
  std::vector<Node*> starts;
  for (const Tensor& t : roots) {
    RAMET_CHECK(t.defined(), "collect_graph", "root: got an undefined tensor");
    if (const RawEdge e = edge_of(t.impl()); e.node) {
      starts.push_back(e.node);
      release(e.node);  // the tensor holds it
    }
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Node* a, const Node* b) { return a->counter < b->counter; });
  for (Node* n : starts) walk.from(n, max_vertices);

  GraphPicture picture;
  picture.complete = walk.complete;
  std::reverse(walk.finished.begin(), walk.finished.end());
  std::unordered_map<const Node*, size_t> index;
  for (Node* n : walk.finished) {
    GraphPicture::Vertex v{n->name(), {}, Device::from_ordinal(n->device), false, false, false};
    v.leaf = (n->flags & Node::kSink) != 0;
    v.reduces = (n->flags & Node::kReduce) != 0;
    if (const auto it = labels.find(n); it != labels.end()) v.label = it->second;
    index.emplace(n, picture.vertices.size());
    picture.vertices.push_back(std::move(v));
  }
  for (Node* n : walk.finished) {
    const size_t from = index.at(n);
    bool changes_device = picture.vertices[from].reduces;
    for (int i = 0; i < n->edge_count; ++i) {
      const RawEdge e = n->edges()[i];
      const auto to = index.find(e.node);
      if (!e.node || to == index.end()) continue;
      picture.edges.push_back({from, to->second, e.slot});
      changes_device = changes_device || e.node->device != n->device;
    }
    picture.vertices[from].moves = changes_device;
  }
  return picture;
}

std::string GraphPicture::text() const {
  auto out = ramet::detail::classic<std::ostringstream>();
  size_t next = 0;
  for (size_t i = 0; i < vertices.size(); ++i) {
    const Vertex& v = vertices[i];
    out << '#' << i << ' ' << v.name;
    if (!v.label.empty()) out << ' ' << v.label;
    out << ' ' << v.device;
    for (bool first = true; next < edges.size() && edges[next].from == i; ++next, first = false) {
      out << (first ? " -> #" : ", #") << edges[next].to;
      if (edges[next].slot != 0) out << '[' << edges[next].slot << ']';
    }
    out << '\n';
  }
  if (!complete) out << "... (the graph goes on)\n";
  return out.str();
}

std::string GraphPicture::dot() const {
  auto out = ramet::detail::classic<std::ostringstream>();
  out << "digraph autograd {\n  rankdir=TB;\n  node [shape=box, style=filled, fillcolor=white, "
         "fontname=\"sans-serif\"];\n";
  for (size_t i = 0; i < vertices.size(); ++i) {
    const Vertex& v = vertices[i];
    out << "  n" << i << " [label=\"" << escaped(v.name);
    if (!v.label.empty()) out << "\\n" << escaped(v.label);
    out << "\\n" << v.device << '"';
    if (v.leaf) out << ", style=\"filled,rounded\", fillcolor=lightgray";
    if (v.reduces) out << ", fillcolor=orange";
    out << "];\n";
  }
  for (const Edge& e : edges) out << "  n" << e.from << " -> n" << e.to << ";\n";
  out << "}\n";
  return out.str();
}

}  // namespace autograd
}  // namespace ramet
