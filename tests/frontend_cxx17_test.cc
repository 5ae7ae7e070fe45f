// Programs as LibTorch's users write them: only the include and the namespace are ours. Compiled as
// C++17.
#include <gtest/gtest.h>

#include <cmath>

#include "ramet.h"

namespace torch = ramet;

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl()
      : conv1(torch::nn::Conv2dOptions(1, 4, /*kernel_size=*/3).stride(1).padding({1, 1})),
        fc2(torch::nn::LinearOptions(16, 3).bias(true)) {
    register_module("conv1", conv1);
    register_module("conv_drop", conv_drop);
    fc1 = register_module("fc1", torch::nn::Linear(4 * 4 * 4, 16));
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv_drop->forward(conv1->forward(x)), 2));
    x = x.view({-1, 64});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.1, /*train=*/is_training());
    return torch::log_softmax(fc2->forward(x), /*dim=*/1);
  }
  torch::nn::Conv2d conv1;
  torch::nn::Dropout2d conv_drop;
  torch::nn::Linear fc1{nullptr};
  torch::nn::Linear fc2;
};
RAMET_MODULE(Net);

TEST(Frontend, TrainingLoopOfTheExamples) {
  torch::manual_seed(1);
  Net model;
  torch::Device device(torch::kCPU);
  model->to(device);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.5));
  const torch::Tensor data = torch::randn({12, 1, 8, 8}, device),
                      targets = torch::randint(3, {12}, torch::kLong);
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    model->train();
    optimizer.zero_grad();
    auto output = model->forward(data);
    auto loss = torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Mean);
    loss.backward();
    optimizer.step();
    (step ? last : first) = loss.template item<float>();
  }
  EXPECT_LT(last, 0.6 * first);
  torch::NoGradGuard no_grad;
  model->eval();
  auto pred = model->forward(data).argmax(1);
  EXPECT_GE(pred.eq(targets).sum().template item<int64_t>(), 9);
}

TEST(Frontend, Xor) {
  torch::manual_seed(2);
  torch::nn::Sequential net(torch::nn::Linear(2, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1),
                            torch::nn::Functional(torch::sigmoid));
  torch::optim::Adam optimizer(net->parameters(),
                               torch::optim::AdamOptions(0.1).betas(std::make_tuple(0.9, 0.99)));
  auto x = torch::tensor({{0., 0.}, {0., 1.}, {1., 0.}, {1., 1.}}),
       y = torch::tensor({{0.}, {1.}, {1.}, {0.}});
  torch::Tensor loss;
  for (int i = 0; i < 300; ++i) {
    optimizer.zero_grad();
    loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    optimizer.step();
  }
  EXPECT_LT(loss.item<double>(), 0.01);
}

TEST(Frontend, Dcgan) {
  using namespace torch::nn;
  Sequential discriminator(Conv2d(Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
                           LeakyReLU(LeakyReLUOptions().negative_slope(0.2)),
                           Conv2d(Conv2dOptions(8, 1, 4).stride(2).padding(1).bias(false)),
                           BatchNorm2d(1), Sigmoid());
  discriminator->to(torch::Device(torch::kCPU));
  torch::optim::Adam optimizer(discriminator->parameters(),
                               torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  discriminator->zero_grad();
  torch::Tensor images = torch::rand({2, 1, 8, 8}),
                labels = torch::empty({2, 1, 2, 2}).uniform_(0.8, 1.0);
  torch::Tensor output = discriminator->forward(images);
  torch::Tensor loss = torch::binary_cross_entropy(output, labels);
  loss.backward();
  optimizer.step();
  EXPECT_TRUE(std::isfinite(loss.item<float>()));
  for (auto& group : optimizer.param_groups()) {
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(1e-5);
    EXPECT_EQ(group.options().get_lr(), 1e-5);
  }
}

struct LinearRegressionImpl : torch::nn::LinearImpl {
  using torch::nn::LinearImpl::LinearImpl;
};

TEST(Frontend, OtherStyles) {
  auto linear = std::make_shared<LinearRegressionImpl>(2, 1);
  EXPECT_EQ(linear->named_parameters().size(), 2u);
  for (const auto& pair : linear->named_parameters()) {
    EXPECT_FALSE(pair.key().empty());
    pair.value().data().fill_(1);
  }
  for (auto& p : linear->parameters()) torch::nn::init::normal_(p, 0.0, 0.02);
  torch::nn::CrossEntropyLoss criterion(
      torch::nn::CrossEntropyLossOptions().reduction(torch::kSum));
  torch::nn::MSELoss mse(torch::nn::MSELossOptions(torch::kMean)), direct(torch::kNone);
  EXPECT_EQ(mse(torch::ones({2}), torch::zeros({2})).item<float>(), 1);
  EXPECT_EQ(direct(torch::ones({2}), torch::zeros({2})).size(0), 2);
  criterion->to(torch::kCPU);
  torch::nn::ModuleList list;
  list->push_back(torch::nn::Linear(1, 1));
  for (auto& m : *list) EXPECT_NE(m->as<torch::nn::Linear>(), nullptr);
  auto net = torch::nn::Sequential(
      torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(3).eps(1e-3)), torch::nn::GELU(),
      torch::nn::LayerNorm(torch::nn::LayerNormOptions({3})), torch::nn::Embedding(2, 2));
  net->apply([](torch::nn::Module& module) {
    if (auto* norm = module.as<torch::nn::BatchNorm1d>())
      torch::nn::init::constant_(norm->weight, 2);
  });
  EXPECT_EQ(net->at<torch::nn::BatchNorm1dImpl>(0).weight[0].item<float>(), 2);
  namespace F = torch::nn::functional;
  const auto loss = F::cross_entropy(torch::zeros({2, 2}), torch::tensor({0, 1}),
                                     F::CrossEntropyFuncOptions().ignore_index(1));
  EXPECT_NEAR(loss.item<double>(), std::log(2.0), 1e-6);
  EXPECT_EQ(F::softmax(torch::zeros({2}), /*dim=*/0)[0].item<float>(), 0.5f);
}

}  // namespace
