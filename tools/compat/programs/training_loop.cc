// Optimizers. Styles: groups of parameters with their own options, casts to AdamOptions, closures.
// Learning rates by hand and by schedulers (StepLR, ReduceLROnPlateau, the program's own).
// clip_grad_norm_ and clip_grad_value_, frozen layers, early stopping, a best model that is kept.
// Losses as functions and as modules, with their options.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <vector>

struct Net : torch::nn::Module {
  Net() {
    features = register_module("features",
                               torch::nn::Sequential(torch::nn::Linear(3, 6), torch::nn::Tanh()));
    head = register_module("head", torch::nn::Linear(6, 1));
    int64_t phase = 0;
    torch::NoGradGuard no_grad;
    for (auto& p : parameters())
      p.copy_((torch::arange(p.numel(), torch::kDouble) + phase++).sin().mul(0.5).view_as(p));
  }
  torch::Tensor forward(torch::Tensor x) { return head(features->forward(x)).squeeze(1); }
  torch::nn::Sequential features{nullptr};
  torch::nn::Linear head{nullptr};
};

struct Data {
  torch::Tensor x =
      torch::arange(48, torch::kDouble).mul(0.7).cos().to(torch::kFloat).view({16, 3});
  torch::Tensor y = (x.select(1, 0) * 2 - x.select(1, 1)).tanh();
};

double train_epoch(Net& net, torch::optim::Optimizer& optimizer, const Data& data,
                   double max_norm) {
  net.train();
  double norm = 0;
  for (int64_t i = 0; i < data.x.size(0); i += 8) {
    optimizer.zero_grad(/*set_to_none=*/true);
    const auto loss =
        torch::mse_loss(net.forward(data.x.slice(0, i, i + 8)), data.y.slice(0, i, i + 8));
    loss.backward();
    norm = torch::nn::utils::clip_grad_norm_(net.parameters(), max_norm);
    optimizer.step();
  }
  return norm;
}

double evaluate(Net& net, const Data& data) {
  torch::NoGradGuard no_grad;
  net.eval();
  return torch::l1_loss(net.forward(data.x), data.y).item<double>();
}

// Warms up, then follows a cosine.
class Cosine : public torch::optim::LRScheduler {
 public:
  Cosine(torch::optim::Optimizer& optimizer, unsigned warm, unsigned total)
      : LRScheduler(optimizer), warm_(warm), total_(total), base_(get_current_lrs()) {}

 private:
  std::vector<double> get_lrs() override {
    auto lrs = base_;
    for (auto& lr : lrs) {
      if (step_count_ < warm_) lr *= (step_count_ + 1.0) / warm_;
      else lr *= 0.5 * (1 + std::cos(M_PI * (step_count_ - warm_) / (total_ - warm_)));
    }
    return lrs;
  }
  unsigned warm_, total_;
  std::vector<double> base_;
};

template <typename Optimizer, typename Options> void run(const char* name, Options options) {
  const Data data;
  auto net = std::make_shared<Net>();
  Optimizer optimizer(net->parameters(), options);
  double norm = 0;
  for (int i = 0; i < 4; ++i) norm = train_epoch(*net, optimizer, data, 1.0);
  std::printf("%s: error %.4f, norm %.3f\n", name, evaluate(*net, data), norm);
}

// Their values by hand: the probabilities are 1/2 and 1/4, and -log of them 1 and 2 times log(2).
void losses() {
  namespace nn = torch::nn;
  namespace F = torch::nn::functional;
  const auto y = torch::tensor({0.5, 0.25}), x = torch::tensor({1.0, 0.0});
  std::printf(
      "%.3f %.3f %.3f %.3f %.3f %.3f\n",
      nn::BCELoss(nn::BCELossOptions().reduction(torch::kMean))(y, x).item<double>(),
      F::binary_cross_entropy(y, x, F::BinaryCrossEntropyFuncOptions().reduction(torch::kSum))
          .item<double>(),
      F::mse_loss(y, x, torch::kMean).item<double>(),
      F::l1_loss(y, x, F::L1LossFuncOptions(torch::kSum)).item<double>(),
      F::smooth_l1_loss(y, x, F::SmoothL1LossFuncOptions().beta(0.5)).item<double>(),
      torch::smooth_l1_loss(y, x).item<double>());

  const auto scores = torch::log(torch::tensor({{1.0, 2.0, 1.0}, {4.0, 2.0, 2.0}}));
  const auto classes = torch::tensor({1, 2}, torch::kLong);
  nn::CrossEntropyLoss criterion(
      nn::CrossEntropyLossOptions().weight(torch::tensor({1.0, 1.0, 2.0})).label_smoothing(0.3));
  std::printf("%.3f %.3f\n", criterion(scores, classes).item<double>(),
              F::cross_entropy(scores, classes, F::CrossEntropyFuncOptions().reduction(torch::kSum))
                  .item<double>());
  std::fflush(stdout);
  std::cout << torch::softmax(scores, 1) << "\n"
            << F::relu(x - y, F::ReLUFuncOptions().inplace(false)).exp_() << "\n"
            << scores.mm(torch::ones_like(scores).t()) + torch::full({1}, 0.5).item() << "\n"
            << y.std(/*unbiased=*/false).item<double>() << " "
            << torch::sum(scores.exp().log().gt(0.5)).item<int64_t>() << "\n";
}

int main() {
  losses();
  std::printf("before: %.4f\n", evaluate(*std::make_shared<Net>(), Data()));
  run<torch::optim::SGD>("SGD", torch::optim::SGDOptions(0.1));
  run<torch::optim::SGD>(
      "momentum", torch::optim::SGDOptions(0.05).momentum(0.9).nesterov(true).weight_decay(1e-3));
  run<torch::optim::Adam>(
      "Adam", torch::optim::AdamOptions(1e-2).betas(std::make_tuple(0.8, 0.95)).eps(1e-7));
  run<torch::optim::Adam>("AMSGrad",
                          torch::optim::AdamOptions(1e-2).amsgrad(true).weight_decay(0.01));
  run<torch::optim::AdamW>("AdamW", torch::optim::AdamWOptions(1e-2).weight_decay(0.1));
  std::fflush(stdout);

  // Two groups, one with a rate of its own; rates changed through casts.
  const Data data;
  Net net;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(net.features->parameters(),
                      std::make_unique<torch::optim::AdamOptions>(1e-3));
  groups.emplace_back(net.head->parameters());
  torch::optim::Adam adam(groups, torch::optim::AdamOptions(5e-3));
  for (auto& group : adam.param_groups()) {
    auto& options = static_cast<torch::optim::AdamOptions&>(group.options());
    std::cout << group.params().size() << " parameters, rate " << options.lr() << ", betas "
              << std::get<0>(options.betas()) << " " << std::get<1>(options.betas()) << ", decay "
              << options.weight_decay() << "\n";
    options.lr(options.lr() * 2).weight_decay(1e-4);
  }
  train_epoch(net, adam, data, 0.5);
  std::cout << "rates " << adam.param_groups()[0].options().get_lr() << " "
            << adam.param_groups().back().options().get_lr() << ", " << adam.state().size()
            << " states, has options " << adam.param_groups()[1].has_options() << "\n";
  const auto found = adam.state().find(net.head->bias.unsafeGetTensorImpl());
  const auto& state = static_cast<const torch::optim::AdamParamState&>(*found->second);
  std::cout << "steps of the bias " << state.step() << ", " << state.exp_avg().sizes() << "\n";

  // Schedulers.
  torch::optim::SGD sgd(net.parameters(), torch::optim::SGDOptions(0.4));
  torch::optim::StepLR by_steps(sgd, /*step_size=*/2, /*gamma=*/0.5);
  for (int i = 0; i < 5; ++i) {
    std::cout << sgd.param_groups()[0].options().get_lr() << " ";
    by_steps.step();
  }
  torch::optim::SGD other(net.parameters(), 0.1);
  Cosine cosine(other, 2, 6);
  for (int i = 0; i < 6; ++i) {
    cosine.step();
    std::printf("%.4f ", other.param_groups()[0].options().get_lr());
  }
  std::fflush(stdout);
  torch::optim::ReduceLROnPlateauScheduler plateau(
      other, torch::optim::ReduceLROnPlateauScheduler::min, /*factor=*/0.1f, /*patience=*/1);
  other.param_groups()[0].options().set_lr(1.0);
  for (const float metric : {3.f, 2.f, 2.f, 2.f, 2.f}) plateau.step(metric);
  std::printf("%.2f\n", other.param_groups()[0].options().get_lr());
  std::fflush(stdout);

  // Only the head learns; the loop stops when nothing gets better.
  for (auto& p : net.features->parameters()) p.set_requires_grad(false);
  std::vector<torch::Tensor> trainable;
  for (const auto& p : net.parameters())
    if (p.requires_grad()) trainable.push_back(p);
  torch::optim::SGD head_only(trainable, torch::optim::SGDOptions(0.4));
  double best = std::numeric_limits<double>::max();
  std::vector<torch::Tensor> kept;
  int epoch = 0, worse = 0;
  for (; epoch < 12 && worse < 2; ++epoch) {
    head_only.step([&] {
      head_only.zero_grad();
      auto loss = torch::mse_loss(net.forward(data.x), data.y);
      loss.backward();
      torch::nn::utils::clip_grad_value_(trainable, 0.5);
      return loss;
    });
    const double error = evaluate(net, data);
    if (error < best - 1e-3) {
      best = error, worse = 0, kept.clear();
      for (const auto& p : trainable) kept.push_back(p.detach().clone());
    } else {
      ++worse;
    }
  }
  std::printf("%zu trainable, stopped after %d, best %.3f\n", trainable.size(), epoch, best);
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < kept.size(); ++i) trainable[i].copy_(kept[i]);
  std::printf("restored: %.3f\n", evaluate(net, data));
  const auto flat = torch::nn::utils::parameters_to_vector(net.parameters());
  torch::nn::utils::vector_to_parameters(flat * 0, net.parameters());
  std::printf("%ld numbers, sum now %.1f\n", static_cast<long>(flat.numel()),
              net.head->weight.sum().item<double>());
  return 0;
}
