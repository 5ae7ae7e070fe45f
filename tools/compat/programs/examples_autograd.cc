// pytorch's C++ example "autograd", told again: what a gradient is here, gradients of gradients,
// and functions with a backward of one's own.
#include <torch/torch.h>

#include <iostream>

using namespace torch::autograd;

namespace {

torch::Tensor counted(at::IntArrayRef shape, double step) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return torch::arange(count, torch::kFloat).mul(step).sub(1).reshape(shape);
}

void basics() {
  std::cout << "== basic operations\n";
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  std::cout << x << "\n" << y << "\n" << y.grad_fn()->name() << "\n";

  auto z = y * y * 3;
  auto out = z.mean();
  std::cout << z << "\n" << z.grad_fn()->name() << "\n";
  std::cout << out << "\n" << out.grad_fn()->name() << "\n";

  auto a = counted({2, 2}, 0.5);
  a = (a * 3) / (a - 2);
  std::cout << a.requires_grad() << " " << (a.grad_fn() == nullptr) << "\n";
  a.requires_grad_(true);
  const auto b = (a * a).sum();
  std::cout << a.requires_grad() << " " << b.grad_fn()->name() << "\n";

  out.backward();
  std::cout << x.grad() << "\n";

  // A vector times the Jacobian.
  x = torch::tensor({0.25, -1.5, 0.75}, torch::dtype(torch::kFloat).requires_grad(true));
  y = x * 2;
  while (y.norm().item<double>() < 1000) y = y * 2;
  std::cout << y << "\n" << y.grad_fn()->name() << "\n";
  const auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  y.backward(v);
  std::cout << x.grad() << "\n";

  // No history.
  std::cout << x.requires_grad() << " " << x.pow(2).requires_grad();
  {
    torch::NoGradGuard no_grad;
    std::cout << " " << x.pow(2).requires_grad();
  }
  y = x.detach();
  std::cout << " " << y.requires_grad() << " " << x.eq(y).all().item<bool>() << "\n";
}

void gradient_penalty() {
  std::cout << "== a penalty on the gradient's norm\n";
  auto model = torch::nn::Linear(4, 3);
  {
    torch::NoGradGuard no_grad;
    model->weight.copy_(counted({3, 4}, 0.125));
    model->bias.copy_(counted({3}, 0.5));
  }
  const auto input = counted({3, 4}, 0.25).requires_grad_(true);
  const auto output = model(input);
  const auto loss = torch::nn::MSELoss()(output, counted({3, 3}, 0.25));
  const auto ones = torch::ones_like(output);
  const auto gradient =
      torch::autograd::grad({output}, {input}, /*grad_outputs=*/{ones}, /*retain_graph=*/true,
                            /*create_graph=*/true)[0];
  const auto penalty = torch::pow(gradient.norm(2, /*dim=*/1) - 1, 2).mean();
  (loss + penalty).backward();
  std::cout << input.grad() << "\n" << model->weight.grad() << "\n";
}

class AffineFunction : public Function<AffineFunction> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor()) {
    ctx->save_for_backward({input, weight, bias});
    auto output = input.mm(weight.t());
    if (bias.defined()) output += bias.unsqueeze(0).expand_as(output);
    return output;
  }

  static tensor_list backward(AutogradContext* ctx, tensor_list gradients) {
    const auto saved = ctx->get_saved_variables();
    const auto& g = gradients[0];
    torch::Tensor of_bias;
    if (saved[2].defined()) of_bias = g.sum(0);
    return {g.mm(saved[1]), g.t().mm(saved[0]), of_bias};
  }
};

class Times : public Function<Times> {
 public:
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, double factor) {
    ctx->saved_data["factor"] = factor;
    return x * factor;
  }
  static tensor_list backward(AutogradContext* ctx, tensor_list gradients) {
    return {gradients[0] * ctx->saved_data["factor"].toDouble(), torch::Tensor()};
  }
};

void own_functions() {
  std::cout << "== functions of one's own\n";
  auto x = counted({2, 3}, 0.5).requires_grad_();
  auto weight = counted({4, 3}, 0.25).requires_grad_();
  auto bias = torch::zeros({4}, torch::requires_grad());
  AffineFunction::apply(x, weight).sum().backward();
  std::cout << x.grad() << "\n" << weight.grad() << "\n";
  AffineFunction::apply(x, weight, bias).sum().backward();
  std::cout << bias.grad() << "\n";

  auto t = torch::ones({2}).requires_grad_();
  Times::apply(t, 5.5).sum().backward();
  std::cout << t.grad() << "\n";
}

}  // namespace

int main() {
  std::cout << std::boolalpha;
  basics();
  gradient_penalty();
  own_functions();
}
