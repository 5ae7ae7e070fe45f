// What LibTorch programs write that a reimplementation easily breaks, compiled as C++17: one test a
// trap, in the words of such programs.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "ramet.h"

namespace torch = ramet;

// Both together, as many programs have them. Nothing below says std:: or torch:: where it can do
// without.
using namespace std;
using namespace torch;

namespace {

TEST(Traps, FreeFunctionsAreFunctions) {
  auto net =
      torch::nn::Sequential(torch::nn::Functional(torch::relu), torch::nn::Functional(torch::tanh),
                            torch::nn::Functional(torch::max_pool2d, 2, 2, 0, 1, false),
                            torch::nn::Functional(torch::reshape, vector<int64_t>{2, 4}),
                            torch::nn::Functional(torch::log_softmax, 1, torch::nullopt));
  EXPECT_EQ(net->forward(torch::randn({2, 1, 4, 4})).sizes(), (vector<int64_t>{2, 4}));
  Tensor (*const sum)(const Tensor&, optional<ScalarType>) = torch::sum;
  EXPECT_EQ(sum(torch::ones({3}), nullopt).item<float>(), 3);
}

template <class T> T number(const torch::Tensor& t) { return t.template item<T>(); }
TEST(Traps, ItemIsATemplateAndAScalar) {
  const auto b = torch::full({}, 2.5), W = torch::ones({2, 1});
  EXPECT_EQ(number<float>(b), 2.5f);
  EXPECT_EQ((torch::ones({1, 2}).mm(W) + b.item()).item<double>(), 4.5);
}

TEST(Traps, ImplicitShapesAndOptions) {
  const int n = 3;
  const torch::Device device(torch::kCPU);
  EXPECT_EQ(torch::zeros(n, device).dim(), 1);
  EXPECT_TRUE(torch::randn(3, torch::requires_grad()).requires_grad());
  EXPECT_EQ(torch::ones({2, 320}).view({-1, 320}).size(0), 2);
  EXPECT_EQ(torch::ones({2, 3}).view({-1}).size(0), 6);
  EXPECT_EQ(torch::ones({2, 3}).view(-1).size(0), 6);
  EXPECT_EQ(torch::zeros({2}, torch::kLong).dtype(), torch::kInt64);
  EXPECT_EQ(torch::zeros({2}, torch::dtype(torch::kDouble).device(device)).dtype(), torch::kDouble);
  EXPECT_EQ(torch::zeros({2}, torch::kStrided).numel(), 2);
  EXPECT_EQ(torch::ones({2}).to(torch::kCPU).to(device, torch::kHalf).to(torch::kFloat).numel(), 2);
}

TEST(Traps, AssignmentToTemporaries) {
  auto x = torch::zeros({2, 3});
  x[0][1] = 3;
  x.index_put_({torch::indexing::Slice(), 0}, 7);
  x[1] = torch::ones({3});
  EXPECT_EQ(x[0][1].item<float>(), 3);
  EXPECT_EQ(x[0][0].item<float>(), 7);
  EXPECT_EQ(x[1].sum().item<float>(), 3);
  torch::nn::Linear layer(2, 1);
  layer(torch::ones({1, 2})).sum().backward();
  for (auto& p : layer->named_parameters()) p.value().grad().data() = torch::zeros_like(p.value());
}

TEST(Traps, GradKeepsLibTorchsOrder) {
  const auto x = torch::full({1}, 3., torch::requires_grad()), y = x * x * x;
  const auto g =
      torch::autograd::grad({y}, {x}, {torch::ones({1})}, /*retain_graph=*/torch::nullopt,
                            /*create_graph=*/true)[0];
  EXPECT_EQ(torch::autograd::grad({g}, {x})[0].item<float>(), 18);
}

struct Scale : torch::autograd::Function<Scale> {
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor x, double by) {
    ctx->saved_data["by"] = by;
    ctx->saved_data["mask"] = torch::ones_like(x);
    return x * by;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx,
                                               torch::autograd::tensor_list g) {
    return {g[0] * ctx->saved_data["by"].toDouble() * ctx->saved_data["mask"].toTensor(),
            torch::Tensor()};
  }
};
TEST(Traps, SavedData) {
  const auto x = torch::ones({2}, torch::requires_grad());
  Scale::apply(x, 5.5).sum().backward();
  EXPECT_EQ(x.grad()[1].item<float>(), 5.5f);
}

struct Net : torch::nn::Module {
  Net() {
    fc = register_module("fc", torch::nn::Linear(10, 5));
    scale = register_parameter("scale", torch::ones({1}));
  }
  torch::Tensor forward(torch::Tensor x) { return fc->forward(x) * scale; }
  torch::nn::Linear fc{nullptr};
  torch::Tensor scale;
};
struct HeldImpl : Net {};
RAMET_MODULE(Held);
TEST(Traps, ModulesByValueSharedAndHeld) {
  Net value;
  value.to(torch::kCPU);
  const auto shared = make_shared<Net>();
  Held held;
  for (const auto& y : {value.forward(torch::ones({2, 10})), shared->forward(torch::ones({2, 10})),
                        held->forward(torch::ones({2, 10}))})
    EXPECT_EQ(y.size(1), 5);
  EXPECT_EQ(shared->parameters().size(), 3u);
}

struct Stack8 : torch::nn::SequentialImpl {
  Stack8() {
    using namespace torch::nn;
    push_back(Conv2d(Conv2dOptions(1, 2, 3)));
    push_back(Functional(torch::relu));
  }
};
TEST(Traps, SubclassOfSequential) {
  EXPECT_EQ(Stack8().forward(torch::ones({1, 1, 5, 5})).size(1), 2);
}

TEST(Traps, BesideStd) {
  vector<Tensor> list{ones({2}), zeros({2})};
  const auto joined = cat(list);
  pair<int, string> data{1, "size"};
  const size_t size = list.size();
  tuple<Tensor, Tensor> top = torch::max(stack(list), 0);
  EXPECT_EQ(joined.numel(), 4);
  EXPECT_EQ(get<1>(top)[0].item<int64_t>(), 0);
  EXPECT_EQ(static_cast<size_t>(data.first) + size, 3u);
}

struct Numbers : torch::data::Dataset<Numbers> {
  torch::data::Example<> get(size_t i) override {
    return {torch::full({2}, static_cast<double>(i)), torch::full({}, static_cast<int64_t>(i))};
  }
  torch::optional<size_t> size() const override { return 10; }
};
TEST(Traps, Data) {
  auto dataset = Numbers()
                     .map(torch::data::transforms::Normalize<>(1, 2))
                     .map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), /*batch_size=*/4);
  EXPECT_EQ(dataset.size().value(), 10u);  // a moved-from one answers, as programs ask it
  int64_t seen = 0;
  for (auto& batch : *loader) seen += batch.data.size(0) + 0 * batch.target.sum().item<int64_t>();
  EXPECT_EQ(seen, 10);
  const torch::data::Example<>& one = Numbers().get(3);
  EXPECT_EQ(one.target.item<int64_t>(), 3);
}

TEST(Traps, EmptyWeightAndReduction) {
  const auto out = torch::log_softmax(torch::zeros({2, 4}), 1);
  const auto target = torch::tensor({1, 2});
  EXPECT_NEAR(torch::nll_loss(out, target, /*weight=*/{}, torch::Reduction::Sum).item<double>(),
              2 * log(4.), 1e-6);
  torch::nn::NLLLoss criterion(torch::nn::NLLLossOptions().reduction(torch::kSum));
  EXPECT_NEAR(criterion(out, target).item<double>(), 2 * log(4.), 1e-6);
}

TEST(Traps, OptimizerOptions) {
  torch::nn::Linear layer(2, 1);
  torch::optim::Adam optimizer(
      layer->parameters(),
      torch::optim::AdamOptions(2e-4).betas(make_tuple(0.5, 0.5)).weight_decay(1e-4));
  for (auto& group : optimizer.param_groups())
    static_cast<torch::optim::AdamOptions&>(group.options()).lr(1e-3);
  EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 1e-3);
}

TEST(Traps, SaveAndLoad) {
  torch::nn::Linear held(2, 1), other(2, 1);
  auto shared = make_shared<Net>();
  torch::optim::SGD optimizer(held->parameters(), 0.1);
  stringstream a, b, c, d, e;
  torch::save(held, a);
  torch::load(other, a);
  EXPECT_TRUE(other->weight.equal(held->weight));
  torch::save(shared, b);
  torch::load(shared, b);
  torch::save(optimizer, c);
  torch::load(optimizer, c);
  torch::Tensor t;
  torch::save(torch::ones({2}), d);
  torch::load(t, d);
  vector<torch::Tensor> list;
  torch::save(vector<torch::Tensor>{t, t * 2}, e);
  torch::load(list, e);
  EXPECT_EQ(list.at(1)[0].item<float>(), 2);
}

TEST(Traps, Printing) {
  ostringstream text;
  text << torch::ones({2, 2});
  EXPECT_EQ(text.str(), " 1  1\n 1  1\n[ CPUFloatType{2,2} ]");
  ostringstream tree;
  tree << torch::nn::Sequential(torch::nn::Linear(2, 1));
  EXPECT_EQ(tree.str(),
            "ramet::nn::Sequential(\n  (0): ramet::nn::Linear(in_features=2, out_features=1, "
            "bias=true)\n)");
}

TEST(Traps, Aliases) {
  torch::optional<int> none = torch::nullopt;
  EXPECT_FALSE(none.has_value());
  torch::ExpandingArray<2> kernel(3);
  EXPECT_EQ((*kernel)[1], 3);
}

}  // namespace
