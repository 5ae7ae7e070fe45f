#include "nn/module/flat_store.h"

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops/make/factory.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/sequential.h"
#include "nn/optim/adam.h"
#include "nn/optim/sgd.h"
#include "runtime/devices/generator.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

Sequential net() { return Sequential(Linear(3, 5), Linear(5, 2)); }
char* address(const Tensor& t) { return static_cast<char*>(t.data_ptr()); }

TEST(FlatStore, NeighboursLieAtPaddedDistancesAndKeepIdentityValuesAndVersions) {
  Sequential model = net();
  const std::vector<Tensor> p = model->parameters();
  std::vector<std::vector<double>> before;
  std::vector<uint32_t> versions;
  for (const Tensor& t : p) before.push_back(values(t)), versions.push_back(t.version());
  const FlatParameters flat = flatten_parameters(p);
  ASSERT_EQ(flat.stores.size(), 1u);
  EXPECT_TRUE(flat.loose.empty());
  const FlatStore& store = flat.stores[0];
  int64_t offset = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    EXPECT_EQ(store.segments[i].offset, offset);
    EXPECT_EQ(address(p[i]), address(store.parameters) + 4 * offset);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address(p[i])) % 64, 0u);
    EXPECT_EQ(values(p[i]), before[i]);
    EXPECT_EQ(p[i].version(), versions[i]);
    EXPECT_TRUE(p[i].is_leaf() && p[i].requires_grad() && !p[i].is_view());
    offset += flat_padded(4 * p[i].numel()) / 4;
  }
  EXPECT_EQ(store.parameters.numel(), offset);
  EXPECT_TRUE(model->at<LinearImpl>(0).weight.is_same(p[0]));
  p[1].detach().add_(1);
  EXPECT_EQ(p[0].version(), versions[0]) << "a version counter each";
  EXPECT_EQ(p[1].version(), versions[1] + 1);
}

TEST(FlatStore, TheSecondCallFindsEverythingInPlace) {
  Sequential model = net();
  const std::vector<Tensor> p = model->parameters();
  const FlatStore first = flatten_parameters(p).stores.at(0);
  const FlatStore again = flatten_parameters(p).stores.at(0);
  EXPECT_EQ(address(again.parameters), address(first.parameters));
  EXPECT_EQ(address(again.gradients), address(first.gradients));
  EXPECT_EQ(again.parameters.numel(), first.parameters.numel());
  // A part of it, in order, is in place too.
  const FlatStore part = flatten_parameters({p[1], p[2]}).stores.at(0);
  EXPECT_EQ(address(part.parameters), address(p[1]));
  EXPECT_EQ(address(part.gradients), address(first.gradients) + (address(p[1]) - address(p[0])));
  // Another order is another store.
  const std::vector<double> kept = values(p[0]);
  const FlatStore other = flatten_parameters({p[1], p[0], p[2], p[3]}).stores.at(0);
  EXPECT_EQ(address(other.parameters), address(p[1]));
  EXPECT_EQ(values(p[0]), kept);
}

TEST(FlatStore, GradientsAreBornInPlaceWithoutACopy) {
  Sequential model = net();
  const std::vector<Tensor> p = model->parameters();
  const FlatStore store = flatten_parameters(p).stores.at(0);
  const auto copies = [&] {
    uint64_t sum = 0;
    for (const Tensor& t : p) sum += autograd::grad_accumulator(t.impl())->copies;
    return sum;
  };
  for (int step = 0; step < 3; ++step) {
    model->zero_grad();
    model(ones({4, 3})).sum().backward();
    for (size_t i = 0; i < p.size(); ++i)
      EXPECT_EQ(address(p[i].grad()), address(store.gradients) + 4 * store.segments[i].offset)
          << "step " << step << " parameter " << i;
  }
  RecordProperty("copies", std::to_string(copies()));
  const Tensor held = p[0].grad();
  const std::vector<double> kept = values(held);
  model->zero_grad();
  (model(ones({4, 3})).sum() * 2).backward();
  EXPECT_EQ(values(held), kept) << "a gradient that somebody holds is not written over";
  EXPECT_NE(address(p[0].grad()), address(held));
}

TEST(FlatStore, LeavesAloneWhatCannotMove) {
  const Tensor shared = ones({3}).requires_grad_(), alias = shared.detach();
  float memory[3] = {1, 2, 3};
  const Tensor foreign = from_blob(memory, {3}).requires_grad_();
  const Tensor result = ones({3}).requires_grad_() * 2, integer = ones({3}, kLong),
               strided = ones({3, 3}).t().detach().requires_grad_();
  const Tensor good = ones({3}).requires_grad_(), wide = ones({3}, kDouble).requires_grad_(),
               far = ones({2}, Device("cpu:1"));
  const FlatParameters flat = flatten_parameters(
      {shared, foreign, result, integer, strided, Tensor(), good, wide, good, far});
  EXPECT_EQ(flat.loose, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  ASSERT_EQ(flat.stores.size(), 3u);
  EXPECT_EQ(flat.stores[0].segments.size(), 1u);
  EXPECT_EQ(flat.stores[1].parameters.scalar_type(), kDouble);
  EXPECT_EQ(flat.stores[2].parameters.device(), Device("cpu:1"));
  EXPECT_EQ(address(foreign), reinterpret_cast<char*>(memory));
  shared.detach().fill_(4);
  expect_values(alias, {4, 4, 4});
}

TEST(FlatStore, AGraphFromBeforeTheMoveIsStillGood) {
  Linear linear(2, 2);
  const Tensor x = ones({1, 2}).requires_grad_();
  const Tensor y = (linear(x) * linear(x)).sum();
  flatten_parameters(linear->parameters());
  y.backward();
  EXPECT_TRUE(linear->weight.grad().defined());
}

// After any change of a parameter that follows flattening, the optimizer computes what it computes
// for loose parameters.
template <class Disturb> void expect_same_as_loose(Disturb disturb) {
  manual_seed(3);
  Sequential flat = net();
  Sequential loose(std::dynamic_pointer_cast<SequentialImpl>(flat->clone()));
  std::vector<Tensor> views;  // sharing memory keeps a parameter where it is
  for (const Tensor& p : loose->parameters()) views.push_back(p.detach());
  optim::Adam a(flat->parameters(), optim::AdamOptions(0.1).weight_decay(0.1)),
      b(loose->parameters(), optim::AdamOptions(0.1).weight_decay(0.1));
  EXPECT_NE(flatten_parameters(loose->parameters()).loose.size(), 0u);
  for (int step = 0; step < 4; ++step) {
    for (auto* m : {&flat, &loose}) {
      (*m)->zero_grad();
      (*m)(sines(6, 0.4, step).view({2, 3}).to(kFloat)).square().sum().backward();
      disturb(**m, step);
    }
    a.step();
    b.step();
  }
  const std::vector<Tensor> got = flat->parameters(), expected = loose->parameters();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << i;
}

TEST(FlatStore, UndisturbedStepsEqualLooseOnes) {
  expect_same_as_loose([](SequentialImpl&, int) {});
}
TEST(FlatStore, AMissingGradientSplitsTheRun) {
  expect_same_as_loose([](SequentialImpl& m, int step) {
    if (step == 1) m.at<LinearImpl>(0).bias.mutable_grad() = Tensor();
  });
}
TEST(FlatStore, AnAssignedGradientIsUsed) {
  expect_same_as_loose([](SequentialImpl& m, int step) {
    if (step >= 1) m.at<LinearImpl>(0).bias.mutable_grad() = full({5}, 0.5);
  });
}
TEST(FlatStore, FreezingLeavesAParameterAlone) {
  expect_same_as_loose([](SequentialImpl& m, int step) {
    if (step == 1) m.at<LinearImpl>(1).weight.set_requires_grad(false);
  });
}
TEST(FlatStore, SetDataMovesAParameterOut) {
  expect_same_as_loose([](SequentialImpl& m, int step) {
    if (step == 2) m.at<LinearImpl>(0).weight.set_data(full({5, 3}, 0.25));
  });
}

TEST(FlatStore, ToAnotherTypeAfterwards) {
  Linear linear(2, 1);
  optim::SGD optimizer(linear->parameters(), optim::SGDOptions(0.5).momentum(0.5));
  linear->to(kDouble);
  linear->weight.set_data(doubles({1, 1}).view({1, 2}));
  for (int i = 0; i < 2; ++i) {
    linear->zero_grad();
    linear->weight.sum().backward();
    optimizer.step();
  }
  expect_values(linear->weight, {1 - 0.5 - 0.75, 1 - 0.5 - 0.75});
}

TEST(FlatStore, GradientsFollowAParameterThatMoves) {
  for (const bool flattened_again : {false, true}) {
    Linear linear(3, 2);
    flatten_parameters(linear->parameters());
    linear->weight.sum().backward();
    linear->to(kDouble);
    if (flattened_again) flatten_parameters(linear->parameters());
    linear->zero_grad();
    const double ninth = 1.0 / 9;
    (linear->weight * ninth).sum().backward();
    EXPECT_EQ(linear->weight.grad().scalar_type(), kDouble);
    expect_values(linear->weight.grad(), std::vector<double>(6, ninth), 0);
    linear->to(Device("cpu:1"));
    if (flattened_again) flatten_parameters(linear->parameters());
    linear->zero_grad();
    optim::SGD optimizer(linear->parameters(), 1.0);
    (linear->weight * ninth).sum().backward();
    EXPECT_EQ(linear->weight.grad().device(), Device("cpu:1"));
    const std::vector<double> before = values(linear->weight);
    optimizer.step();
    EXPECT_EQ(values(linear->weight)[5], before[5] - ninth);
  }
}

TEST(FlatStore, ParametersAddedLater) {
  Tensor a = ones({3}).requires_grad_(), b = ones({3}).requires_grad_();
  optim::Adam optimizer({a}, 0.1);
  a.mutable_grad() = ones({3});
  optimizer.step();
  optimizer.add_parameters({b});
  a.mutable_grad() = ones({3});
  b.mutable_grad() = ones({3});
  optimizer.step();
  expect_values(a, {0.8, 0.8, 0.8}, 1e-6);
  expect_values(b, {0.9, 0.9, 0.9}, 1e-6);
}

}  // namespace
}  // namespace ramet::nn
