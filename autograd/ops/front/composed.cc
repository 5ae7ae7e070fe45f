#include "autograd/autograd.h"
#include "autograd/ops/front/composed_internal.h"
#include "autograd/ops/shape/view.h"

namespace ramet {
namespace autograd {

std::vector<Tensor> composed_gradients(const std::vector<bool>& needed, const ListFunction& f,
                                       std::vector<Tensor> inputs, const std::vector<Tensor>& v,
                                       bool again) {
  const InferenceMode on(false);  // inside InferenceMode, grad mode cannot be on
  std::vector<Tensor> wanted;
  std::vector<size_t> at;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& x = inputs[i];
    if (!x.defined()) continue;
    // Give each input its own view, so that two inputs that are the same tensor are distinct.
    x = again ? x.reshape(x.sizes()) : x.detach();
    if (!needed[i] || !is_floating(x.scalar_type())) continue;
    if (!wants_grad(x)) x = x.detach().requires_grad_();
    wanted.push_back(x);
    at.push_back(i);
  }
  std::vector<Tensor> grads(inputs.size()), roots, seeds;
  if (wanted.empty()) return grads;
  const std::vector<Tensor> y = f(inputs);
  for (size_t i = 0; i < y.size(); ++i) {
    if (!v[i].defined() || !y[i].defined() || !wants_grad(y[i])) continue;
    roots.push_back(y[i]);
    seeds.push_back(v[i]);
  }
  if (roots.empty()) return grads;
  std::vector<Tensor> found = grad(roots, wanted, seeds, /*retain_graph=*/std::nullopt,
                                   /*create_graph=*/again, /*allow_unused=*/true);
  for (size_t i = 0; i < at.size(); ++i) grads[at[i]] = std::move(found[i]);
  return grads;
}

namespace {
std::vector<bool> needed_of(const Node& self, size_t inputs) {
  std::vector<bool> needed(inputs);
  for (size_t i = 0; i < inputs; ++i) needed[i] = self.needs(static_cast<int>(i));
  return needed;
}
}  // namespace

std::vector<Tensor> composed_gradients(const Node& self,
                                       const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                       std::vector<Tensor> inputs, const Tensor& v) {
  const std::vector<bool> needed = needed_of(self, inputs.size());
  return composed_gradients(
      needed, [&f](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in)}; },
      std::move(inputs), {v}, GradMode::is_enabled());
}

namespace {

class ResultsNode final : public Node {
 public:
  ResultsNode(const char* name, ArrayRef<Tensor> inputs, size_t results, ResultsBackward f)
      : Node(name, static_cast<int>(inputs.size()), static_cast<int>(results), sizeof(ResultsNode)),
        f_(std::move(f)) {
    edges_.reserve(inputs.size());
    for (const Tensor& t : inputs) edges_.push_back(edge_of(t.impl()));
    follow_edges();
  }
  ~ResultsNode() override {
    for (RawEdge& e : edges_) release(e.node);
  }
  RawEdge* edges() override { return edges_.data(); }
  void release_saved() override {
    flags |= kReleased;
    f_ = nullptr;
  }
  void apply(Tensor* in, Tensor* out) override {
    if (RAMET_UNLIKELY((flags & kReleased) != 0)) backward_twice(*this);
    std::vector<Tensor> v(slot_count), grads(edges_.size());
    std::move(in, in + slot_count, v.begin());
    f_(*this, v, grads);
    std::move(grads.begin(), grads.end(), out);
  }

 private:
  std::vector<RawEdge> edges_;
  ResultsBackward f_;
};

}  // namespace

void record_results(const char* name, ArrayRef<Tensor> inputs, std::vector<Tensor>& results,
                    ResultsBackward f, AddArguments arguments) {
  for (const Tensor& t : inputs)  // an Error comes before there is a node
    if (wants_grad(t)) make_history(t);
  Node* const node = new_node<ResultsNode>(name, inputs, results.size(), std::move(f));
  bool first = true;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].defined()) continue;
    if (std::exchange(first, false)) node->device = results[i]->device;
    attach(results[i], node, static_cast<uint32_t>(i));
  }
  if (RAMET_UNLIKELY(ramet::detail::tls.watching))
    tell_made(*node, std::vector<Input>(inputs.begin(), inputs.end()),
              std::vector<Input>(results.begin(), results.end()), arguments);
  release(node);
}

void record_composed_results(const char* name, std::vector<Tensor>& results, ListFunction f,
                             const std::vector<Tensor>& inputs) {
  std::vector<Saved> saved;
  for (const Tensor& t : inputs) saved.push_back(save_if(t.defined(), t));
  record_results(name, inputs, results,
                 [f = std::move(f), saved](const Node& self, const std::vector<Tensor>& v,
                                           std::vector<Tensor>& grads) {
                   std::vector<Tensor> in;
                   for (const Saved& s : saved) in.push_back(s.get(self));
                   const std::vector<bool> needed = needed_of(self, in.size());
                   grads = composed_gradients(needed, f, std::move(in), v, GradMode::is_enabled());
                 });
}

}  // namespace autograd
}  // namespace ramet
