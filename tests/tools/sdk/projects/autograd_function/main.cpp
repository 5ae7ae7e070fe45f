// Functions with gradients of their own: one with saved tensors and attributes, one that rounds,
// one of two results.
#include <torch/torch.h>

#include <iostream>
#include <tuple>

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

class ScaledLinear : public Function<ScaledLinear> {
 public:
  static Tensor forward(AutogradContext* ctx, Tensor input, Tensor weight, double scale,
                        torch::optional<Tensor> bias) {
    ctx->save_for_backward({input, weight});
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["has_bias"] = bias.has_value();
    auto output = input.mm(weight.t()) * scale;
    return bias ? output + bias->unsqueeze(0).expand_as(output) : output;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grad_outputs) {
    auto saved = ctx->get_saved_variables();
    const double scale = ctx->saved_data["scale"].toDouble();
    auto grad = grad_outputs[0];
    Tensor bias;
    if (ctx->saved_data["has_bias"].toBool()) bias = grad.sum(0);
    return {grad.mm(saved[1]) * scale, grad.t().mm(saved[0]) * scale, Tensor(), bias};
  }
};

struct Round : Function<Round> {
  static Tensor forward(AutogradContext* ctx, const Tensor& x) {
    ctx->set_materialize_grads(false);
    return x.round();
  }
  static variable_list backward(AutogradContext*, variable_list grads) { return grads; }
};

struct Polar : Function<Polar> {
  static variable_list forward(AutogradContext* ctx, Tensor r, Tensor phi) {
    ctx->save_for_backward({r, phi});
    return {r * phi.cos(), r * phi.sin()};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    const auto saved = ctx->get_saved_variables();
    const auto &r = saved[0], &phi = saved[1];
    return {g[0] * phi.cos() + g[1] * phi.sin(), g[1] * r * phi.cos() - g[0] * r * phi.sin()};
  }
};

// Central differences of the sum of f at x, element by element.
template <class F> Tensor numeric(const F& f, Tensor x) {
  torch::NoGradGuard guard;
  Tensor g = torch::zeros_like(x);
  auto at = x.view(-1), to = g.view(-1);
  for (int64_t i = 0; i < at.numel(); ++i) {
    const double before = at[i].item<double>(), h = 1e-5;
    at[i] = before + h;
    const double above = f().template item<double>();
    at[i] = before - h;
    const double below = f().template item<double>();
    at[i] = before;
    to[i] = (above - below) / (2 * h);
  }
  return g;
}

int main() {
  torch::manual_seed(2);
  const auto options = torch::TensorOptions().dtype(torch::kFloat64).requires_grad(true);
  auto x = torch::randn({3, 4}, options), w = torch::randn({2, 4}, options),
       b = torch::randn({2}, options);
  const auto linear = [&] {
    return ScaledLinear::apply(x, w, 0.5, torch::optional<Tensor>(b)).pow(2).sum();
  };
  linear().backward();
  for (const auto& leaf : {x, w, b})
    if (!torch::allclose(leaf.grad(), numeric(linear, leaf.detach()), 1e-6, 1e-8))
      return std::cerr << "linear\n", 1;

  auto r = torch::rand({5}, options), phi = torch::rand({5}, options);
  const auto polar = [&] {
    auto xy = Polar::apply(r, phi);
    return (xy[0] * xy[1] + xy[1].exp()).sum();
  };
  const auto grads =
      torch::autograd::grad({polar()}, {r, phi}, {}, torch::nullopt, /*create_graph=*/true);
  // And once more: the gradient has one.
  grads[0].sum().backward();
  if (!phi.grad().defined()) return std::cerr << "second derivative\n", 1;
  for (int i = 0; i < 2; ++i)
    if (!torch::allclose(grads[i], numeric(polar, (i ? phi : r).detach()), 1e-6, 1e-8))
      return std::cerr << "polar\n", 1;

  auto z = torch::linspace(0, 2, 5).set_requires_grad(true);
  Round::apply(z * 2).sum().backward();
  if (!torch::equal(z.grad(), torch::full({5}, 2.f))) return std::cerr << "straight through\n", 1;
  std::cout << "all gradients are right\n" << x.grad() << std::endl;
  return 0;
}
