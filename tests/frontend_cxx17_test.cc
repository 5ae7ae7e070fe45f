// Programs as LibTorch's users write them: only the include and the namespace are ours. Compiled as
// C++17.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

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
  // With parentheses alone clang takes this for the declaration of a function.
  torch::nn::MSELoss mse{torch::nn::MSELossOptions(torch::kMean)}, direct(torch::kNone);
  EXPECT_EQ(mse(torch::ones({2}), torch::zeros({2})).item<float>(), 1);
  EXPECT_EQ(direct(torch::ones({2}), torch::zeros({2})).size(0), 2);
  criterion->to(torch::kCPU);
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  const auto moved = torch::ones({2}).to(torch::kCPU).to(device).to("cpu").to(torch::kCPU, true);
  EXPECT_EQ(moved.to(torch::kCPU, torch::kDouble).to(torch::kHalf).scalar_type(), torch::kHalf);
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

// Out and in-place forms as LibTorch's programs write them.
TEST(Frontend, Forms) {
  torch::Tensor x = torch::rand({3, 3}) + 0.5, y, m = torch::ones({3, 3}, torch::kBool),
                i = torch::tensor({0, 2});
  const auto fresh = [](torch::ScalarType t = torch::kFloat) { return torch::empty({0}, t); };
  torch::exp_out(y = fresh(), x), torch::neg_out(y, x), torch::abs_out(y, x);
  torch::sign_out(y, x), torch::log_out(y, x), torch::sqrt_out(y, x), torch::rsqrt_out(y, x);
  torch::sin_out(y, x), torch::cos_out(y, x), torch::tanh_out(y, x), torch::sigmoid_out(y, x);
  torch::erf_out(y, x), torch::relu_out(y, x), torch::gelu_out(y, x);
  torch::gelu_out(y, x, "tanh"), torch::silu_out(y, x), torch::where_out(y, m, x, x);
  torch::pow_out(y, x, 2), torch::pow_out(y, 2, x), torch::pow_out(y, x, x);
  torch::add_out(y, x, 1), torch::sub_out(y, x, 1), torch::mul_out(y, x, 2);
  torch::div_out(y, x, 2), torch::div_out(y, x, x, "floor"), torch::clamp_out(y, x, 0, 1);
  torch::eq_out(y, x, x), torch::eq_out(y, x, 1), torch::lt_out(y, x, x), torch::ge_out(y, x, 2.5);
  torch::logical_and_out(y, x, x), torch::logical_or_out(y, x, x), torch::logical_not_out(y, x);
  EXPECT_EQ(torch::logical_xor_out(y, x, x).sum().item<float>(), 0);
  EXPECT_EQ(torch::sum_out(y = fresh(), x, {0}).sizes(), torch::IntArrayRef({3}));
  torch::sum_out(y, x, 1, true), torch::mean_out(y, x, {0, 1}), torch::prod_out(y, x, 0);
  torch::var_out(y, x, {0}), torch::std_out(y, x, {0}, false), torch::norm_out(y, x, 2);
  torch::max_out(y, i = fresh(torch::kLong), x, 0), torch::argmax_out(i, x, 0);
  torch::any_out(m, x), torch::all_out(m, x, 0), torch::any_out(m, x, {0, 1}, true);
  torch::softmax_out(y, x, 0), torch::cat_out(y, {x, x}, 0), torch::stack_out(y, {x, x});
  torch::index_select_out(y, x, 0, i = torch::tensor({0, 2}));
  torch::gather_out(y, x, 0, i.view({1, 2})), torch::embedding_out(y, x, i);
  torch::mm_out(y, x, x), torch::matmul_out(y, x, x), torch::linear_out(y = fresh(), x, x);
  EXPECT_EQ(y.sizes(), x.sizes());
  y.eq_(x), y.ne_(1), y.lt_(x), y.le_(0.5), y.gt_(x), y.ge_(0), y.logical_and_(x);
  y.logical_or_(x), y.logical_xor_(x), y.logical_not_(), y.clamp_(0, 1), y.clamp_(x, {});
  y.clamp_(torch::Tensor(x), {}), torch::gelu_(y), torch::relu_(y), torch::exp_(y);
  EXPECT_EQ(torch::any(x, {0, 1}).dim() + torch::all(x, {0, 1}, true).dim(), 2);
  EXPECT_EQ(x.any(torch::IntArrayRef{0, 1}).item<bool>(), true);
  EXPECT_EQ(x.norm(2, torch::kDouble).scalar_type(), torch::kDouble);
  EXPECT_EQ(x.norm(2, {0}, true, torch::kDouble).size(0), 1);
  EXPECT_EQ(x.view(torch::kInt).dtype(), torch::kInt);
  EXPECT_EQ(x.get_device(), 0);
  EXPECT_EQ(x.output_nr(), 0);
  EXPECT_EQ(torch::result_type(x, 1), torch::kFloat);
  EXPECT_FALSE(torch::can_cast(torch::kFloat, torch::kInt));
  EXPECT_EQ(torch::promote_types(torch::kInt, torch::kFloat), torch::kFloat);
  x.reset();
  EXPECT_FALSE(x.defined());
}

TEST(Frontend, TypesAsProgramsAskForThem) {
  const torch::Tensor x = torch::ones({2, 2}), i = torch::ones({2, 2}, torch::kInt64);
  std::ostringstream text;
  text << x.dtype() << ' ' << i.dtype().name() << ' ' << x.type() << ' ' << x.scalar_type();
  EXPECT_EQ(text.str(), "float long int CPUFloatType Float");
  EXPECT_TRUE(x.dtype() == torch::kFloat32 && torch::kLong == i.dtype() && x.dtype() != i.dtype());
  EXPECT_EQ(torch::typeMetaToScalarType(i.dtype()), torch::kLong);
  EXPECT_EQ(torch::elementSize(torch::typeMetaToScalarType(x.dtype())), 4u);
  EXPECT_TRUE(torch::isFloatingType(x.scalar_type()));
  EXPECT_EQ(torch::zeros({2}, torch::TensorOptions().dtype(i.dtype())).dtype(), i.dtype());
  EXPECT_EQ(torch::zeros_like(x, i.dtype()).to(x.dtype()).type(), x.type());
  float numbers[] = {1, 2, 3};
  EXPECT_EQ((torch::tensor(numbers) % 2).sum().item<float>(), 2);
  EXPECT_EQ((x.packed_accessor32<float, 2>()[1][1]), x.data<float>()[3]);
  std::shared_ptr<torch::autograd::Node> node = x.grad_fn();
  EXPECT_EQ(node, nullptr);
  for (const auto& edge : (x.clone().requires_grad_() * 2).grad_fn()->next_edges())
    EXPECT_EQ(edge.function->name(), "AccumulateGrad");
}

}  // namespace
