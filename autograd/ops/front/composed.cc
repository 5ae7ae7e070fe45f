#include "autograd/ops/front/composed.h"

#include "autograd/autograd.h"
#include "autograd/ops/view.h"

namespace ramet {
namespace autograd {

std::vector<Tensor> composed_gradients(const Node& self,
                                       const std::function<Tensor(const std::vector<Tensor>&)>& f,
                                       std::vector<Tensor> inputs, const Tensor& v) {
  const bool again = GradMode::is_enabled();
  const InferenceMode on(false);  // grad mode alone stays off inside of it
  std::vector<Tensor> wanted;
  std::vector<size_t> at;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& x = inputs[i];
    if (!x.defined()) continue;
    const bool needed = self.needs(static_cast<int>(i));
    // A view of its own, so that two inputs that are one tensor are told apart.
    x = again ? x.reshape(x.sizes()) : x.detach();
    if (!needed || !is_floating(x.scalar_type())) continue;
    if (!wants_grad(x)) x = x.detach().requires_grad_();
    wanted.push_back(x);
    at.push_back(i);
  }
  std::vector<Tensor> grads(inputs.size());
  if (wanted.empty()) return grads;
  const Tensor y = f(inputs);
  if (!wants_grad(y)) return grads;
  std::vector<Tensor> found = grad({y}, wanted, {v}, /*retain_graph=*/std::nullopt,
                                   /*create_graph=*/again, /*allow_unused=*/true);
  for (size_t i = 0; i < at.size(); ++i) grads[at[i]] = std::move(found[i]);
  return grads;
}

}  // namespace autograd
}  // namespace ramet
