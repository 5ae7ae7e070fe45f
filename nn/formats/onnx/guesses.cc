#include <algorithm>
#include <list>
#include <memory>
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/formats/onnx/between_internal.h"

namespace ramet::formats {
namespace {

constexpr int kDeepest = 256;  // operations behind one another

struct Unary {
  const char *node, *op;
  Tensor (*function)(const Tensor&);
};
const Unary kUnary[] = {
    {"ReluBackward0", "Relu", [](const Tensor& x) { return x.relu(); }},
    {"SigmoidBackward0", "Sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"TanhBackward0", "Tanh", [](const Tensor& x) { return x.tanh(); }},
    {"ExpBackward0", "Exp", [](const Tensor& x) { return x.exp(); }},
    {"NegBackward0", "Neg", [](const Tensor& x) { return x.neg(); }},
    {"CloneBackward0", "Identity", [](const Tensor& x) { return x.clone(); }},
    {"AbsBackward0", "Abs", [](const Tensor& x) { return x.abs(); }},
    {"SqrtBackward0", "Sqrt", [](const Tensor& x) { return x.sqrt(); }},
    {"LogBackward0", "Log", [](const Tensor& x) { return x.log(); }},
    {"SinBackward0", "Sin", [](const Tensor& x) { return x.sin(); }},
    {"CosBackward0", "Cos", [](const Tensor& x) { return x.cos(); }},
    {"ErfBackward0", "Erf", [](const Tensor& x) { return x.erf(); }},
    {"ReciprocalBackward0", "Reciprocal", [](const Tensor& x) { return x.reciprocal(); }},
    {"SoftplusBackward0", "Softplus", [](const Tensor& x) { return softplus(x); }},
    {"EluBackward0", "Elu", [](const Tensor& x) { return elu(x); }},
};
struct Binary {
  const char *node, *op;
  Tensor (*function)(const Tensor&, const Tensor&);
};
const Binary kBinary[] = {
    {"AddBackward0", "Add", [](const Tensor& a, const Tensor& b) { return a.add(b); }},
    {"SubBackward0", "Sub", [](const Tensor& a, const Tensor& b) { return a.sub(b); }},
    {"MulBackward0", "Mul", [](const Tensor& a, const Tensor& b) { return a.mul(b); }},
    {"DivBackward0", "Div", [](const Tensor& a, const Tensor& b) { return a.div(b); }},
    {"PowBackward1", "Pow", [](const Tensor& a, const Tensor& b) { return a.pow(b); }},
    {"MaximumBackward0", "Max", [](const Tensor& a, const Tensor& b) { return maximum(a, b); }},
    {"MinimumBackward0", "Min", [](const Tensor& a, const Tensor& b) { return minimum(a, b); }},
    {"MmBackward0", "MatMul", [](const Tensor& a, const Tensor& b) { return a.mm(b); }},
    {"BmmBackward0", "MatMul", [](const Tensor& a, const Tensor& b) { return a.bmm(b); }},
};
// Windows of functions of images that programs call: kernel, stride, padding.
constexpr int64_t kWindows[][3] = {{2, 2, 0}, {3, 2, 1}, {3, 3, 0},
                                   {3, 2, 0}, {2, 1, 0}, {3, 1, 1}};

}  // namespace

void OnnxTensors::put(Terms& made, const std::function<Tensor()>& compute,
                      const std::function<std::string()>& add) {
  if (made.size() >= kMost) return;
  try {
    const auto name = std::make_shared<std::string>();
    made.push_back({compute(), [name, add] {
                      if (name->empty()) *name = add();
                      return *name;
                    }});
  } catch (const Error&) {}  // of these shapes it was not
}
void OnnxTensors::put_node(Terms& made, const Term& x, const char* op,
                           const OnnxAttributes& attributes,
                           const std::function<Tensor(const Tensor&)>& f) {
  put(
      made, [&] { return f(x.value); },
      [this, add = x.add, op, attributes, prefix = prefix_] {
        return graph_.node(prefix, op, {add()}, attributes);
      });
}

const OnnxTensors::Parameter* OnnxTensors::parameter_of(const autograd::Node& node) const {
  for (const Parameter& p : parameters_)
    if (p.tensor.defined() && p.tensor->node == &node) return &p;
  return nullptr;
}

const OnnxTensors::Terms& OnnxTensors::terms(autograd::Node& node, uint32_t slot, const Hint& hint,
                                             int depth) {
  const Key key{&node, slot};
  const auto found = looked_at_.find(key);
  if (found != looked_at_.end()) return found->second;
  Terms made = guesses(node, slot, hint, depth);
  return looked_at_[key] = std::move(made);
}

OnnxTensors::Terms OnnxTensors::guesses(autograd::Node& node, uint32_t slot, const Hint& hint,
                                        int depth) {
  const NoGradGuard only_values;
  if (const auto found = by_node_.find({&node, slot}); found != by_node_.end()) {
    const Known& known = known_[found->second];
    return {{known.current() ? known.tensor.detach() : known.value,
             [name = known.name] { return name; }}};
  }
  if (const Parameter* p = parameter_of(node)) {
    if (p->layer) return blocked_ = "parameter '" + p->name + "' outside of its layer", Terms();
    return {{p->tensor.detach(), [this, p] { return graph_.tensor(p->name, p->tensor); }}};
  }
  const std::string name = node.name();
  const OnnxSeen::Made* const made = seen_.made(node);
  const Tensor result = made && slot < made->results.size() ? made->results[slot].now() : Tensor();
  blocked_ = name;
  Terms terms =
      node_guesses(node, made, !hint.tensor && result.defined() ? Hint{&result, 0} : hint, depth);
  if (!result.defined()) return terms;
  // The result itself goes on: what is computed with it has its strides, too.
  Terms right;
  for (Term& guess : terms)
    if (same_bits(guess.value, result.detach()))
      right.push_back({result.detach(), std::move(guess.add)});
  return right;
}

OnnxTensors::Terms OnnxTensors::node_guesses(autograd::Node& node, const OnnxSeen::Made* seen,
                                             const Hint& hint, int depth) {
  const std::string name = node.name();
  if (depth == kDeepest) return {};
  std::vector<const Terms*> of;
  std::list<Terms> constants;
  const auto edges = node.next_edges();
  for (const auto& edge : edges) {
    const Parameter* p = edge.is_valid() ? parameter_of(*edge.function) : nullptr;
    if (p && p->layer) return layer_guesses(node, *p, depth);
  }
  const bool inputs_known = seen && seen->inputs.size() == edges.size();
  for (size_t i = 0; i < edges.size(); ++i) {
    const auto& edge = edges[i];
    if (edge.is_valid()) {
      of.push_back(&terms(*edge.function, edge.input_nr, {}, depth + 1));
      if (of.back()->empty()) return {};
      continue;
    }
    const Tensor input = inputs_known ? seen->inputs[i].now() : Tensor();
    if (!input.defined() || input.grad_fn())
      return blocked_ = name + " with something that no input leads to", Terms();
    constants.push_back({{input.detach(), [this, input] { return plain_name(input); }}});
    of.push_back(&constants.back());
  }
  blocked_ = name;
  Terms made;
  if (name == "CatBackward0" || name == "StackBackward0")
    guess_cat(of, name == "StackBackward0", made);
  else if (name == "LinearBackward0" || name == "AddmmBackward0") guess_product(name, of, made);
  else if (of.size() == 1) guess_one(name, *of[0], hint, made);
  else if (of.size() == 2) guess_two(name, *of[0], *of[1], made);
  if (of.size() != 1) return made;
  const Tensor input = inputs_known ? seen->inputs[0].now() : Tensor();
  for (const Term& x : *of[0]) {
    if (seen) guess_number(name, x, seen->numbers, made);
    if (hint.tensor) guess_reduction(name, x, *hint.tensor, made);
    if (hint.tensor && input.defined() && made.empty())
      guess_view(name, x, input.detach(), hint.tensor->detach(), made);
  }
  return made;
}

// A layer whose forward() was called, so that nobody was told.
OnnxTensors::Terms OnnxTensors::layer_guesses(autograd::Node& node, const Parameter& p, int depth) {
  const std::string what = "what the forward() of " + named(p.path) + " did: call it as a module";
  blocked_ = what;
  if (!p.layer->forward) return {};
  autograd::Edge input;
  Hint hint;
  for (const auto& edge : node.next_edges()) {
    if (!edge.is_valid()) continue;
    const Parameter* other = parameter_of(*edge.function);
    if (other && other->owner == p.owner) {
      if (other->tensor.dim() == 2) hint.last = other->tensor.size(1);  // of a linear map
    } else {
      if (input.is_valid()) return {};
      input = edge;
    }
  }
  if (!input.is_valid()) return {};
  const Terms* const in = &terms(*input.function, input.input_nr, hint, depth + 1);
  if (in->empty()) return {};
  blocked_ = what;
  Terms made;
  for (const Term& x : *in) {
    const auto result = std::make_shared<Tensor>();
    put(
        made, [&] { return *result = p.layer->forward(*p.owner, x.value); },
        [this, &p, x, result] {
          const OnnxCall call{p.path, {x.value}, {*result}, {x.add()}};
          return p.layer->add(graph_, call, *p.owner)[0];
        });
  }
  return made;
}

void OnnxTensors::guess_one(const std::string& node, const Terms& terms, const Hint& hint,
                            Terms& made) {
  const auto is = [&node](const char* name) { return node == name; };
  for (const Term& x : terms) {
    const Tensor& v = x.value;
    for (const Unary& u : kUnary)
      if (is(u.node)) put_node(made, x, u.op, {}, u.function);
    if (is("SiluBackward0"))
      put(
          made, [&] { return silu(v); },
          [this, add = x.add, prefix = prefix_] {
            const std::string in = add();
            return graph_.node(prefix, "Mul", {in, graph_.node(prefix, "Sigmoid", {in})});
          });
    if (is("RsqrtBackward0"))
      put(
          made, [&] { return v.rsqrt(); },
          [this, add = x.add, prefix = prefix_] {
            return graph_.node(prefix, "Reciprocal", {graph_.node(prefix, "Sqrt", {add()})});
          });
    for (const bool by_tanh : {false, true}) {
      if (!is("GeluBackward0")) break;
      put(
          made, [&] { return gelu(v, by_tanh ? "tanh" : "none"); },
          [this, x, by_tanh, prefix = prefix_] {
            const OnnxCall call{prefix, {}, {x.value}, {}};
            return gelu_operators(OnnxOps{graph_, call}, x.add(), by_tanh);
          });
    }
    for (int64_t d = 0; d < v.dim(); ++d) {
      const auto axis = OnnxAttributes().integer("axis", d);
      if (is("SoftmaxBackward0"))
        put_node(made, x, "Softmax", axis, [d](const Tensor& t) { return t.softmax(d); });
      if (is("LogSoftmaxBackward0"))
        put_node(made, x, "LogSoftmax", axis, [d](const Tensor& t) { return t.log_softmax(d); });
      // From both ends: those are what is mostly selected.
      const int64_t places = is("SelectBackward0") ? v.size(d) : 0;
      for (int64_t k = 0; k < places && made.size() < kMost; ++k) {
        const int64_t index = k % 2 ? k / 2 : places - 1 - k / 2;
        put(
            made, [&] { return v.select(d, index); },
            [this, add = x.add, axis, index, prefix = prefix_] {
              const std::string from = add();
              const Tensor place = full({}, index, kLong);
              return graph_.node(prefix, "Gather",
                                 {from, graph_.tensor(onnx_name(prefix, "index"), place)}, axis);
            });
      }
      for (int64_t b = d + 1; is("TransposeBackward0") && b < v.dim(); ++b) {
        std::vector<int64_t> order;
        for (int64_t k = 0; k < v.dim(); ++k) order.push_back(k == d ? b : k == b ? d : k);
        put_node(made, x, "Transpose", OnnxAttributes().integers("perm", order),
                 [d, b](const Tensor& t) { return t.transpose(d, b); });
      }
    }
    for (const auto& [k, s, p] : kWindows) {
      OnnxAttributes a;
      a.integers("kernel_shape", {k, k}).integers("strides", {s, s}).integers("pads", {p, p, p, p});
      if (is("MaxPool2DWithIndicesBackward0"))
        put_node(made, x, "MaxPool", a, [k = k, s = s, p = p](const Tensor& t) {
          return max_pool2d(t, {k, k}, {s, s}, {p, p});
        });
      if (is("AvgPool2DBackward0"))
        put_node(made, x, "AveragePool", a.integer("count_include_pad", 1),
                 [k = k, s = s, p = p](const Tensor& t) {
                   return avg_pool2d(t, {k, k}, {s, s}, {p, p});
                 });
    }
    if (is("AdaptiveAvgPool2DBackward0") && hint.tensor) guess_adaptive(x, *hint.tensor, made);
    if (is("ViewBackward0") || is("UnsqueezeBackward0") || is("SqueezeBackward0")) {
      if (!hint.tensor && !hint.last) continue;
      const std::vector<int64_t> to =
          hint.tensor ? hint.tensor->sizes().vec() : std::vector<int64_t>{-1, hint.last};
      const auto result = std::make_shared<Tensor>();
      put(
          made, [&] { return *result = v.reshape(to); },
          [this, x, prefix = prefix_, result] {
            const OnnxCall call{prefix, {}, {}, {}};
            return OnnxOps{graph_, call}.shaped(x.add(),
                                                reshape_sizes(x.value.sizes(), result->sizes()));
          });
    }
  }
}

void OnnxTensors::guess_two(const std::string& node, const Terms& first, const Terms& second,
                            Terms& made) {
  for (const Binary& b : kBinary) {
    if (node != b.node) continue;
    for (const Term& x : first) {
      for (const Term& y : second) {
        if (x.value.scalar_type() != y.value.scalar_type()) continue;
        put(
            made, [&] { return b.function(x.value, y.value); },
            [this, op = b.op, x = x.add, y = y.add, prefix = prefix_] {
              const std::string left = x();
              return graph_.node(prefix, op, {left, y()});
            });
      }
    }
  }
}

void OnnxTensors::guess_cat(const std::vector<const Terms*>& parts, bool stacked, Terms& made) {
  std::vector<size_t> choice(parts.size());  // a guess for each part, counted up like digits
  for (bool more = !parts.empty(); more && made.size() < kMost;) {
    std::vector<Tensor> values;
    std::vector<std::function<std::string()>> adds;
    bool one_type = true;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Term& x = (*parts[i])[choice[i]];
      values.push_back(x.value), adds.push_back(x.add);
      one_type = one_type && x.value.scalar_type() == values[0].scalar_type();
    }
    for (int64_t d = 0; one_type && d < values[0].dim() + stacked; ++d) {
      put(
          made, [&] { return stacked ? stack(values, d) : cat(values, d); },
          [this, adds, d, stacked, prefix = prefix_] {
            std::vector<std::string> in;
            for (const auto& add : adds)
              in.push_back(stacked ? graph_.node(prefix, "Unsqueeze",
                                                 {add(), graph_.integers(
                                                             onnx_name(prefix, "integers"), {d})})
                                   : add());
            return graph_.node(prefix, "Concat", in, OnnxAttributes().integer("axis", d));
          });
    }
    more = false;
    for (size_t i = 0; i < parts.size() && !more; ++i) {
      more = ++choice[i] < parts[i]->size();
      if (!more) choice[i] = 0;
    }
  }
}

}  // namespace ramet::formats
