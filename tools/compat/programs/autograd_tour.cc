// Gradients. Styles: a Function with saved tensors and saved_data, hooks, a loop over grad_fn.
// autograd::grad and backward with create_graph, retain_graph and inputs. detach, guards, a
// gradient penalty, a check by differences.
#include <torch/torch.h>

#include <iostream>
#include <set>
#include <string>
#include <vector>

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// x^n for x > floor, else 0.
class PowerAbove : public torch::autograd::Function<PowerAbove> {
 public:
  static Variable forward(AutogradContext* ctx, Variable x, int64_t n, double floor) {
    ctx->saved_data["n"] = n;
    ctx->saved_data["floor"] = floor;
    ctx->save_for_backward({x});
    return torch::where(x > floor, x.pow(n), torch::zeros_like(x));
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto saved = ctx->get_saved_variables();
    const auto x = saved[0];
    const auto n = ctx->saved_data["n"].toInt();
    const auto mask = (x > ctx->saved_data["floor"].toDouble()).to(x.dtype());
    return {grads[0] * n * x.pow(n - 1) * mask, Variable(), Variable()};
  }
};

// Two outputs; one of them has no gradient.
struct SignAndSize : torch::autograd::Function<SignAndSize> {
  static variable_list forward(AutogradContext* ctx, const Variable& x) {
    const auto sign = x.sign();
    ctx->save_for_backward({sign});
    ctx->mark_non_differentiable({sign});
    return {x.abs(), sign};
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    return {grads[0] * ctx->get_saved_variables()[0]};
  }
};

// Passes through, and turns the gradient around.
struct Reverse : torch::autograd::Function<Reverse> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x) { return x.view_as(x); }
  static torch::autograd::tensor_list backward(AutogradContext*,
                                               torch::autograd::tensor_list grads) {
    return {grads[0].neg()};
  }
};

// A linear layer. Its bias may be left out.
class Affine : public torch::autograd::Function<Affine> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }
  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto& g = gradients[0];
    torch::Tensor of_bias;
    if (saved[2].defined()) of_bias = g.sum(0);
    return {g.mm(saved[1]), g.t().mm(saved[0]), of_bias};
  }
};

torch::Tensor counted(at::IntArrayRef shape, double step) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return torch::arange(count, torch::kFloat).mul(step).sub(1).reshape(shape);
}

// What LibTorch's tutorial of autograd shows.
void basics() {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  auto z = y * y * 3;
  auto out = z.mean();
  std::cout << y.grad_fn()->name() << " " << z.grad_fn()->name() << " " << out.grad_fn()->name()
            << "\n";
  out.backward();
  std::cout << x.grad() << "\n";

  // A vector times the Jacobian.
  x = torch::tensor({0.25, -1.5, 0.75}, torch::dtype(torch::kFloat).requires_grad(true));
  y = x * 2;
  while (y.norm().item<double>() < 1000) y = y * 2;
  y.backward(torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat));
  std::cout << x.grad() << "\n" << x.detach().eq(x).all().item<bool>() << "\n";

  x = counted({2, 3}, 0.5).requires_grad_();
  auto weight = counted({4, 3}, 0.25).requires_grad_();
  auto bias = torch::zeros({4}, torch::requires_grad());
  Affine::apply(x, weight).sum().backward();
  std::cout << x.grad() << "\n" << weight.grad() << "\n";
  Affine::apply(x, weight, bias).sum().backward();
  std::cout << bias.grad() << "\n";
}

void walk(torch::autograd::Node* node, int depth, std::set<torch::autograd::Node*>& seen) {
  if (node == nullptr) return;
  const auto name = node->name();  // without its namespace
  std::cout << std::string(2 * depth, ' ') << name.substr(name.rfind(':') + 1) << " with "
            << node->num_inputs() << " in, " << node->num_outputs() << " out\n";
  if (!seen.insert(node).second) return;
  for (const auto& edge : node->next_edges()) {
    if (edge.is_valid()) walk(edge.function.get(), depth + 1, seen);
  }
}

int main() {
  basics();
  auto x = torch::tensor({-1.0, 0.5, 2.0}, torch::requires_grad());
  auto w = torch::tensor({3.0, -2.0, 1.0}, torch::TensorOptions(torch::kFloat).requires_grad(true));

  auto loss = (x * w).tanh().sum();
  loss.backward();
  std::cout << x.grad() << "\n" << w.grad() << "\n";
  loss = (x * w).exp().mean();
  loss.backward({}, /*retain_graph=*/true);
  loss.backward();
  std::cout << "added up: " << x.grad() << "\n";
  x.mutable_grad() = torch::Tensor();
  std::cout << "defined: " << x.grad().defined() << ", leaf: " << x.is_leaf()
            << ", of a sum: " << loss.is_leaf() << "\n";

  // Functions of one's own.
  auto y = PowerAbove::apply(x, 3, 0.0);
  std::cout << y << "\n" << torch::autograd::grad({y.sum()}, {x})[0] << "\n";
  auto parts = SignAndSize::apply(x);
  std::cout << parts[1].requires_grad() << " "
            << torch::autograd::grad({parts[0]}, {x}, {torch::full({3}, 2.0)})[0] << "\n";
  Reverse::apply(x).sum().backward();
  std::cout << x.grad() << "\n";

  // Second derivatives: a gradient penalty.
  x.mutable_grad().reset();
  const auto out = (w * x.pow(2)).sum();
  const auto first = torch::autograd::grad({out}, {x}, /*grad_outputs=*/{}, /*retain_graph=*/true,
                                           /*create_graph=*/true)[0];
  const auto penalty = torch::pow(first.norm(2, /*dim=*/0) - 1, 2);
  penalty.backward();
  std::cout << "penalty " << penalty.view({1}) << "\n" << x.grad() << "\n" << w.grad() << "\n";
  const auto unused = torch::ones(2, torch::requires_grad());
  const auto none = torch::autograd::grad({w.sum()}, {w, unused}, {}, torch::nullopt, false,
                                          /*allow_unused=*/true);
  std::cout << none[0].defined() << none[1].defined() << "\n";
  torch::autograd::backward({(w * 2).sum(), (w * w).sum()}, {}, /*retain_graph=*/false, false, {w});
  std::cout << w.grad() << "\n";

  // Hooks: the tensor's, a removed one, of a result in between.
  auto z = torch::ones({2}, torch::requires_grad());
  auto middle = z * 3;
  middle.retain_grad();
  const auto doubled = middle.register_hook([](torch::Tensor grad) { return grad * 2; });
  z.register_hook(
      [](torch::Tensor grad) { std::cout << "hook sees" << grad.sum().item<float>() << "\n"; });
  middle.sum().backward({}, true);
  std::cout << z.grad() << middle.grad() << "\n";
  middle.remove_hook(doubled);
  middle.sum().backward();
  std::cout << z.grad() << "\n";

  // The graph.
  std::set<torch::autograd::Node*> seen;
  auto graph =
      torch::relu(x.unsqueeze(0).matmul(torch::ones({3, 2}, torch::requires_grad()))) + w.sum();
  walk(graph.grad_fn().get(), 0, seen);
  std::cout << seen.size() << " nodes; of a leaf: " << (x.grad_fn() == nullptr)
            << ", the same twice: " << (graph.grad_fn() == graph.grad_fn()) << "\n";

  // Without gradients.
  {
    torch::NoGradGuard no_grad;
    std::cout << (x * 2).requires_grad() << torch::GradMode::is_enabled();
    torch::AutoGradMode enabled(true);
    std::cout << (x * 2).requires_grad() << "\n";
  }
  {
    c10::InferenceMode guard;
    std::cout << torch::ones(1).is_inference() << (x + 1).requires_grad() << "\n";
  }
  auto detached = x.detach();
  detached[0] = 10;
  std::cout << detached.requires_grad() << x[0].item<float>() << x.data()[0].item<float>() << "\n";
  x.set_requires_grad(false);
  std::cout << x.requires_grad() << x.requires_grad_().requires_grad() << "\n";

  // An error, and a derivative by differences.
  try {
    auto leaf = torch::ones(1, torch::requires_grad());
    leaf.add_(1);
    std::cout << "no error\n";
  } catch (const c10::Error&) { std::cout << "a leaf is not changed in place\n"; }
  const auto f = [](const torch::Tensor& t) { return (t.sin() * t.exp()).sum(); };
  auto t =
      torch::tensor({0.3, 0.7}, torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true));
  f(t).backward();
  const auto step = torch::tensor({1e-5, 0.0}, torch::kFloat64);
  torch::NoGradGuard no_grad;
  const auto difference = ((f(t + step) - f(t - step)) / 2e-5).item<double>();
  std::cout << (std::abs(difference - t.grad()[0].item<double>()) < 1e-8 ? "agrees" : "differs")
            << "\n";
  return 0;
}
