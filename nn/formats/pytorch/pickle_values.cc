// The values of a pickle's nodes, as a tree that ends.
#include <set>

#include "nn/formats/pytorch/pickle_internal.h"

namespace ramet::formats::detail {
namespace {

constexpr int kMaxDepth = 256;

class Values {
 public:
  Values(const Place& place, uint64_t bytes,
         const std::function<Tensor(const TensorNote&, uint64_t)>& tensor)
      : place_(place),
        most_text_(bytes + (1 << 24)),
        most_values_(bytes + (1 << 22)),
        tensor_(tensor) {}

  IValue of(Node* n, int depth) {
    if (depth > kMaxDepth)
      place_.bad(n->at, "got values nested deeper than ", kMaxDepth, ", expected fewer");
    if (n->as<std::monostate>()) return {};
    if (const auto* v = n->as<bool>()) return *v;
    if (const auto* v = n->as<int64_t>()) return *v;
    if (const auto* v = n->as<double>()) return *v;
    if (const auto* v = n->as<std::string>()) return text(n, *v);
    if (const auto* v = n->as<NodeGlobal>()) {
      if (Pickle::names_dtype(v->name)) return text(n, v->name);
      return opaque(n, v->name);
    }
    if (const auto* v = n->as<NodeOpaque>()) return opaque(n, v->name);
    if (const auto* v = n->as<NodeDevice>()) return text(n, v->name);
    if (n->as<NodeLong>() || n->as<NodeStorage>()) return opaque(n, n->kind());
    const auto made = made_.find(n);
    if (made != made_.end()) {
      count(n, made->second.second);
      return made->second.first;
    }
    if (!under_way_.insert(n).second)
      place_.bad(n->at, "got ", n->kind(), " that holds itself, expected a tree");
    const uint64_t before = values_;
    count(n, 1);
    IValue v = container(n, depth);
    under_way_.erase(n);
    made_.emplace(n, std::make_pair(v, values_ - before));
    return v;
  }

 private:
  // A traversal of the tree visits a shared value once for each use. A list of lists of lists that
  // are all the same list would make it almost endless.
  void count(Node* n, uint64_t more) {
    values_ += more;
    if (values_ > most_values_) place_.bad(n->at, "got the same values very many times");
  }
  // Each use of a text is a copy, though the pickle names it once.
  const std::string& text(Node* n, const std::string& s) {
    if (s.size() > most_text_) place_.bad(n->at, "got the same long texts many times");
    most_text_ -= s.size();
    return s;
  }
  IValue opaque(Node* n, const std::string& name) { return IValue::Opaque{text(n, name)}; }
  std::vector<IValue> items(const std::vector<Node*>& nodes, int depth) {
    std::vector<IValue> list;
    list.reserve(nodes.size());
    for (Node* i : nodes) list.push_back(of(i, depth + 1));
    return list;
  }
  IValue container(Node* n, int depth) {
    if (const auto* t = n->as<std::unique_ptr<NodeTensor>>()) return tensor_((*t)->note, n->at);
    if (const auto* l = n->as<NodeList>()) return IValue::GenericList(items(l->items, depth));
    if (const auto* t = n->as<NodeTuple>())
      return IValue::TuplePtr(std::make_shared<IValue::Tuple>(items(t->items, depth)));
    if (const auto* d = n->as<NodeDict>()) {
      IValue::GenericDict dict;
      for (const auto& [k, v] : d->items) {
        const IValue key = of(k, depth + 1);
        // A dictionary without this entry would pass for the whole one.
        if (!key.isNone() && !key.isScalar() && !key.isString())
          return opaque(n, "dictionary with " + k->kind() + " as a key");
        dict.insert_or_assign(key, of(v, depth + 1));
      }
      return dict;
    }
    if (const auto* o = n->as<std::unique_ptr<NodeObject>>())
      return (*o)->enumerator ? of((*o)->enumerator, depth + 1)
             : (*o)->state ? of((*o)->state, depth + 1) : IValue::GenericDict();
    place_.bad(n->at, "got ", n->kind(), " as a value, expected data");
  }

  const Place& place_;
  uint64_t most_text_, most_values_, values_ = 0;
  const std::function<Tensor(const TensorNote&, uint64_t)>& tensor_;
  std::unordered_map<Node*, std::pair<IValue, uint64_t>> made_;
  std::set<Node*> under_way_;
};

}  // namespace

IValue Pickle::value(Node* node, const std::function<Tensor(const TensorNote&, uint64_t)>& tensor) {
  return Values(place_, in_.size(), tensor).of(node, 0);
}

}  // namespace ramet::formats::detail
