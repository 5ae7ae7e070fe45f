// Additions to the library's own namespaces: functions in torch, a module and a loss with options
// in torch::nn. An optimizer in torch::optim, a transform in torch::data::transforms. Then `using
// namespace torch;` to use them.
#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

namespace torch {

inline Tensor swish(const Tensor& x, double beta = 1) { return x * sigmoid(x * beta); }

// Rows of length one.
inline Tensor unit_rows(Tensor x) { return x / x.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-6); }

namespace nn {

struct TORCH_API SwishOptions {
  SwishOptions(double beta = 1.0) : beta_(beta) {}
  TORCH_ARG(double, beta);
  TORCH_ARG(bool, trainable) = false;
};

class TORCH_API SwishImpl : public Cloneable<SwishImpl> {
 public:
  explicit SwishImpl(const SwishOptions& options_ = {}) : options(options_) { reset(); }
  void reset() override {
    beta = register_parameter("beta", full({}, options.beta()), options.trainable());
  }
  Tensor forward(const Tensor& x) { return x * sigmoid(x * beta); }
  void pretty_print(std::ostream& stream) const override {
    stream << "torch::nn::Swish(beta=" << options.beta() << ")";
  }

  SwishOptions options;
  Tensor beta;
};
TORCH_MODULE(Swish);

// log(cosh(x - y)), written with what there is.
struct LogCoshLossImpl : Module {
  explicit LogCoshLossImpl(double scale = 1) : scale(scale) {}
  Tensor forward(const Tensor& x, const Tensor& y) {
    const auto d = (x - y) / scale;
    return (d.abs() + log1p(exp(-2 * d.abs())) - std::log(2.0)).mean();
  }
  double scale;
};
TORCH_MODULE(LogCoshLoss);

namespace functional {
inline Tensor log_cosh(const Tensor& x, const Tensor& y) { return LogCoshLossImpl().forward(x, y); }
}  // namespace functional
}  // namespace nn

namespace optim {

struct SignSGDOptions : public OptimizerCloneableOptions<SignSGDOptions> {
  SignSGDOptions(double lr) : lr_(lr) {}
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.9;

 public:
  double get_lr() const override { return lr(); }
  void set_lr(const double rate) override { lr(rate); }
};

struct SignSGDParamState : public OptimizerCloneableParamState<SignSGDParamState> {
  TORCH_ARG(Tensor, average);
  TORCH_ARG(int64_t, step) = 0;
};

// Steps of one size, in the direction of an average.
class SignSGD : public Optimizer {
 public:
  explicit SignSGD(std::vector<Tensor> params, SignSGDOptions defaults)
      : Optimizer({OptimizerParamGroup(std::move(params))},
                  std::make_unique<SignSGDOptions>(defaults)) {}

  Tensor step(LossClosure closure = nullptr) override {
    NoGradGuard no_grad;
    Tensor loss = {};
    if (closure != nullptr) {
      AutoGradMode enable_grad(true);
      loss = closure();
    }
    for (auto& group : param_groups_) {
      auto& options = static_cast<SignSGDOptions&>(group.options());
      for (auto& p : group.params()) {
        if (!p.grad().defined()) continue;
        auto found = state_.find(p.unsafeGetTensorImpl());
        if (found == state_.end()) {
          auto fresh = std::make_unique<SignSGDParamState>();
          fresh->average(torch::zeros_like(p));
          found = state_.insert({p.unsafeGetTensorImpl(), std::move(fresh)}).first;
        }
        auto& state = static_cast<SignSGDParamState&>(*found->second);
        state.step(state.step() + 1);
        state.average().mul_(options.momentum()).add_(p.grad(), 1 - options.momentum());
        p.add_(state.average().sign(), -options.lr());
      }
    }
    return loss;
  }
};
}  // namespace optim

namespace data {
namespace transforms {
struct Half : TensorTransform<Tensor> {
  Tensor operator()(Tensor input) override { return input / 2; }
};
}  // namespace transforms
}  // namespace data
}  // namespace torch

using namespace torch;

int main() {
  std::cout << swish(torch::tensor({-1.0, 0.0, 2.0})) << "\n"
            << unit_rows(torch::tensor({{3.0, 4.0}, {0.0, 2.0}})) << "\n";

  nn::Sequential net(nn::Linear(2, 4), nn::Swish(nn::SwishOptions(0.5).trainable(true)),
                     nn::Linear(4, 1));
  {
    NoGradGuard guard;
    for (auto& p : net->parameters())
      if (p.dim() > 0) p.copy_(torch::linspace(-0.8, 0.9, p.numel()).reshape(p.sizes()));
  }
  std::cout << net << std::endl;

  const Tensor x = torch::tensor({{0.0, 0.5}, {1.0, -1.0}, {-0.5, 0.25}}, kFloat),
               y = x.sum(1, true) * 0.3;
  nn::LogCoshLoss criterion(0.5);
  optim::SignSGD optimizer(net->parameters(), optim::SignSGDOptions(0.02).momentum(0.5));
  for (int i = 0; i < 5; i++) {
    const Tensor loss = optimizer.step([&]() -> Tensor {
      optimizer.zero_grad();
      Tensor value = criterion(net->forward(x), y);
      value.backward();
      return value;
    });
    std::cout << "loss " << std::lround(loss.item<double>() * 1e4) << "e-4, beta "
              << std::lround(net[1]->as<nn::Swish>()->beta.item<float>() * 1000) << "e-3\n";
    for (auto& group : optimizer.param_groups())
      group.options().set_lr(group.options().get_lr() * 0.9);
  }
  std::cout << "rate "
            << static_cast<optim::SignSGDOptions&>(optimizer.param_groups()[0].options()).lr()
            << ", states " << optimizer.state().size() << "\n";
  std::cout << nn::functional::log_cosh(x, y).view({1}) << "\n";

  auto copy = net->clone();
  std::cout << (copy->named_parameters().size() == net->named_parameters().size() ? "cloned"
                                                                                  : "not cloned")
            << "\n";
  auto dataset = data::datasets::TensorDataset(std::vector<Tensor>{torch::ones(2), torch::zeros(2)})
                     .map(data::transforms::Lambda<data::TensorExample>(
                         [](data::TensorExample e) { return e; }));
  std::cout << dataset.size().value() << " " << data::transforms::Half()(torch::ones(1)) << "\n";
  return 0;
}
