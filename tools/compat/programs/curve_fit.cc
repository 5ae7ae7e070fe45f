// Three ways to own a net, fitted to one curve. Styles: std::make_shared<Net>(), a net as a local
// value, LinearImpl as a base, shared_ptr members, reset(), `using namespace` inside functions, the
// nn::functional alias, init by apply().
#include <torch/torch.h>

#include <iostream>
#include <memory>

namespace F = torch::nn::functional;

// A linear layer that keeps its weights between -1 and 1.
struct ClampedLinearImpl : public torch::nn::LinearImpl {
  ClampedLinearImpl(int64_t in, int64_t out)
      : torch::nn::LinearImpl(torch::nn::LinearOptions(in, out)) {}
  torch::Tensor forward(const torch::Tensor& x) { return F::linear(x, weight.clamp(-1, 1), bias); }
};
TORCH_MODULE(ClampedLinear);

struct Net : torch::nn::Module {
  Net(int64_t in, int64_t hidden, int64_t out) {
    first = register_module("first", torch::nn::Linear(in, hidden));
    second = register_module("second", ClampedLinear(hidden, out));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::tanh(first->forward(x));
    return second->forward(x);
  }
  torch::nn::Linear first{nullptr};
  ClampedLinear second{nullptr};
};

// Everything behind pointers, as one writes it who does not like holders.
class PointerNet : public torch::nn::Module {
 public:
  PointerNet()
      : body_(register_module("body", std::make_shared<torch::nn::LinearImpl>(1, 6))),
        head_(register_module("head", std::make_shared<ClampedLinearImpl>(6, 1))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return head_->forward(body_->forward(x).sigmoid());
  }

 private:
  std::shared_ptr<torch::nn::LinearImpl> body_;
  std::shared_ptr<ClampedLinearImpl> head_;
};

// Coefficients of a polynomial as parameters: reset() makes them, clone() works.
struct PolynomialImpl : torch::nn::Cloneable<PolynomialImpl> {
  explicit PolynomialImpl(int64_t degree) : degree_(degree) { reset(); }
  void reset() override {
    coefficients = register_parameter("coefficients", torch::zeros({degree_ + 1}));
    powers = register_buffer("powers", torch::arange(degree_ + 1).to(torch::kFloat));
  }
  void pretty_print(std::ostream& stream) const override {
    stream << "Polynomial(degree=" << degree_ << ")";
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::pow(x, powers).matmul(coefficients).unsqueeze(1);
  }
  torch::Tensor coefficients, powers;
  int64_t degree_;
};
TORCH_MODULE(Polynomial);

void initialise(torch::nn::Module& module) {
  using namespace torch;
  NoGradGuard no_grad;
  if (auto* linear = module.as<nn::LinearImpl>()) {
    nn::init::zeros_(linear->bias);
    linear->weight.copy_(torch::linspace(-1, 1, linear->weight.numel()).view_as(linear->weight));
  }
  if (typeid(module) == typeid(PolynomialImpl)) {
    nn::init::constant_(module.as<PolynomialImpl>()->coefficients, 0.1);
  }
}

template <typename Model>
double fit(Model& model, const torch::Tensor& x, const torch::Tensor& y, int steps, double rate) {
  using namespace torch::nn;
  using torch::optim::SGD;
  model->apply(initialise);
  SGD sgd(model->parameters(), rate);
  auto criterion = MSELoss(MSELossOptions().reduction(torch::kMean));
  float last = 0;
  for (int step = 0; step < steps; step++) {
    auto loss = criterion(model->forward(x), y);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    last = loss.template item<float>();
  }
  return last;
}

int main() {
  std::cout.precision(4);
  std::cout << std::fixed;
  const auto x = torch::linspace(-1, 1, 20).unsqueeze(1);
  const auto y = 0.5 * x + 0.25 * torch::sin(3 * x);

  auto net = std::make_shared<Net>(1, 5, 1);
  std::cout << "net: " << fit(net, x, y, 40, 0.1) << "\n" << *net << "\n";

  auto pointers = std::make_shared<PointerNet>();
  std::cout << "pointers: " << fit(pointers, x, y, 40, 0.1) << "\n" << *pointers << std::endl;

  Polynomial polynomial(3);
  std::cout << "polynomial: " << fit(polynomial, x, y, 60, 0.2) << "\n" << polynomial << "\n";
  std::cout << polynomial->coefficients << "\n";

  // A copy that is trained alone, and a net on the stack.
  auto copy = std::dynamic_pointer_cast<PolynomialImpl>(polynomial->clone());
  copy->coefficients.data().zero_();
  std::cout << "sum of the original: " << polynomial->coefficients.sum().item<double>()
            << ", of the copy: " << copy->coefficients.sum().item<double>() << "\n";

  Net local(2, 3, 2);
  local.apply(initialise);
  local.eval();
  local.to(torch::kFloat64);
  std::cout << local.forward(torch::eye(2, torch::kDouble)) << "\n";
  for (auto& parameter : local.parameters())
    std::cout << parameter.sizes() << " " << parameter.dtype() << "; ";
  std::cout << "training: " << local.is_training() << ", children: " << local.children().size()
            << "\n";
  net->second = ClampedLinear(5, 2);
  net->replace_module("second", net->second);
  net->second->apply(initialise);
  std::cout << net->forward(torch::zeros({1, 1})).size(1)
            << " outputs after a layer was replaced\n";
  return 0;
}
