// A program compiled as C++17 against the C++20 library, umbrella header and nothing else: the
// source-compatibility traps of LibTorch programs, in small.
#include <gtest/gtest.h>

#include "ramet.h"

static_assert(__cplusplus < 202002L, "this file is compiled as C++17");

namespace torch = ramet;

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(2, 8));
    fc2 = register_module("fc2", torch::nn::Linear(8, 1));
  }
  torch::Tensor forward(torch::Tensor x) { return fc2->forward(torch::tanh(fc1->forward(x))); }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};
RAMET_MODULE(Net);

TEST(Consumer, TrainsAHolder) {
  torch::manual_seed(3);
  Net net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto x = torch::randn({64, 2});
  const auto y = x.slice(1, 0, 1) * x.slice(1, 1, 2);
  double first = 0, last = 0;
  for (int step = 0; step < 300; ++step) {
    sgd.zero_grad();
    auto loss = torch::mse_loss(net->forward(x), y);
    loss.backward();
    sgd.step();
    (step == 0 ? first : last) = loss.item<double>();
  }
  EXPECT_LT(last, first / 10);
}

TEST(Consumer, ModuleByValue) {
  NetImpl net;
  net.to(torch::kCPU);
  net.eval();
  EXPECT_FALSE(net.is_training());
  EXPECT_EQ(net.forward(torch::zeros({3, 2})).sizes(), torch::IntArrayRef({3, 1}));
}

template <class T> float value_of(const T& t) { return t.template item<float>(); }

TEST(Consumer, Traps) {
  EXPECT_EQ(value_of(torch::tensor(2.5f)), 2.5f);
  const auto w = torch::ones({2, 2}), x = torch::ones({2, 2});
  const auto b = torch::tensor(1.0f);
  EXPECT_EQ((x.mm(w) + b.item()).sum().item<float>(), 12.f);  // a Scalar in arithmetic
  EXPECT_EQ(torch::randn(3, torch::requires_grad()).numel(), 3);
  EXPECT_EQ(torch::zeros({4, 5}, torch::Device(torch::kCPU)).view({-1}).size(0), 20);
  auto v = torch::zeros({2, 2});
  v[0][1] = 3;  // assignment to a temporary
  EXPECT_EQ(v.sum().item<float>(), 3.f);
  const auto p = torch::ones({2}).requires_grad_();
  const auto g = torch::autograd::grad({(p * p).sum()}, {p}, {}, /*retain_graph=*/torch::nullopt,
                                       /*create_graph=*/true)[0];
  EXPECT_TRUE(g.requires_grad());
  auto [values, indices] = torch::tensor({1.f, 5.f, 3.f}).max(0);
  EXPECT_EQ(indices.item<int64_t>(), 1);
  EXPECT_EQ(values.item<float>(), 5.f);
}

TEST(Consumer, ErrorsAreCaughtByType) {
  try {
    torch::ones({2, 3}).mm(torch::ones({2, 3}));
    FAIL() << "expected an error";
  } catch (const torch::Error& e) {
    EXPECT_NE(std::string(e.what()).find("mm"), std::string::npos) << e.what();
  }
}

}  // namespace
