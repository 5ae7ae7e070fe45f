#include "nn/module/module_hooks.h"

#include "autograd/ops/make/factory.h"
#include "nn/layers/basic/functional_module.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

struct AddImpl : Module {
  Tensor forward(const Tensor& a, int64_t factor, const Tensor& b) { return a + b * factor; }
};
RAMET_MODULE(Add);

TEST(ModuleHooks, SeeInputsAndOutputsInOrder) {
  Add add;
  std::vector<std::string> log;
  add->register_forward_pre_hook([&](Module& m, std::vector<Tensor>& inputs) {
    EXPECT_EQ(&m, add.get());
    log.push_back("pre " + std::to_string(inputs.size()));
  });
  add->register_forward_hook([&](Module&, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor>& outputs) {
    log.push_back("post " + std::to_string(inputs.size()) + " " + std::to_string(outputs.size()));
  });
  add->register_forward_pre_hook(
      [&](Module&, std::vector<Tensor>&) { log.push_back("pre again"); });
  expect_values(add(ones({2}), 3, ones({2})), {4, 4});
  EXPECT_EQ(log, (std::vector<std::string>{"pre 2", "pre again", "post 2 1"}));
}

TEST(ModuleHooks, MayReplaceWhatTheySee) {
  Add add;
  const unsigned pre = add->register_forward_pre_hook(
      [](Module&, std::vector<Tensor>& inputs) { inputs[1] = inputs[1] * 10; });
  add->register_forward_hook([](Module&, const std::vector<Tensor>&, std::vector<Tensor>& outputs) {
    outputs[0] = outputs[0] + 0.5;
  });
  const Tensor a = ones({1}), b = ones({1});
  expect_values(add(a, 2, b), {21.5});
  expect_values(b, {1});
  add->remove_forward_hook(pre);
  expect_values(add(a, 2, b), {3.5});
  EXPECT_ERROR_TEXT(add->remove_forward_hook(pre), "no hook with handle");
}

TEST(ModuleHooks, ADirectForwardBypassesThem) {
  Add add;
  int calls = 0;
  add->register_forward_pre_hook([&](Module&, std::vector<Tensor>&) { ++calls; });
  add->forward(ones({1}), 1, ones({1}));
  EXPECT_EQ(calls, 0);
  call(*add, ones({1}), 1, ones({1}));
  EXPECT_EQ(calls, 1);
}

// Tensors in tuples, given and returned: an LSTM's states.
TEST(ModuleHooks, SeeStatesAndReplaceThem) {
  LSTM lstm(2, 3);
  std::vector<size_t> given, made;
  lstm->register_forward_pre_hook([&](Module&, std::vector<Tensor>& in) {
    given.push_back(in.size());
    if (in.size() == 3) in[1] = ones({1, 1, 3});
  });
  const Tensor x = ones({4, 1, 2}), zero = zeros({1, 1, 3}), one = ones({1, 1, 3});
  const auto plain = lstm->forward(x, std::make_tuple(one, zero));
  const auto with = lstm(x, std::make_tuple(zero, zero));
  EXPECT_TRUE(std::get<0>(with).equal(std::get<0>(plain)));
  lstm->register_forward_hook([&](Module&, const std::vector<Tensor>&, std::vector<Tensor>& out) {
    made.push_back(out.size());
    out[2] = out[1] * 2;
  });
  const auto [y, states] = lstm(x);
  EXPECT_TRUE(std::get<1>(states).equal(std::get<0>(states) * 2));
  AnyModule any(lstm);
  const auto boxed = any.forward<std::tuple<Tensor, LSTMImpl::States>>(x);
  EXPECT_TRUE(std::get<1>(std::get<1>(boxed)).equal(std::get<1>(states)));
  EXPECT_EQ(given, (std::vector<size_t>{3, 1, 1}));
  EXPECT_EQ(made, (std::vector<size_t>{3, 3}));
}

TEST(ModuleHooks, RunInSequentialAndAnyModule) {
  Functional twice([](Tensor x) { return x * 2; });
  int calls = 0;
  twice->register_forward_hook(
      [&](Module&, const std::vector<Tensor>&, std::vector<Tensor>&) { ++calls; });
  Sequential inner(twice), outer(inner, twice);
  inner->register_forward_pre_hook([&](Module&, std::vector<Tensor>&) { calls += 100; });
  expect_values(outer(ones({1})), {4});
  EXPECT_EQ(calls, 102);
  AnyModule any(twice);
  any.forward(ones({1}));
  EXPECT_EQ(calls, 103);
  // A Sequential on boxed values: by itself, and after a module with another result.
  inner->register_forward_hook([](Module&, const std::vector<Tensor>& in,
                                  std::vector<Tensor>& out) { out[0] += in[0] * 10; });
  expect_values(AnyModule(inner).forward(ones({1})), {12});
  EXPECT_EQ(calls, 204);
  Sequential behind(Functional([](Tensor x) { return x * 3; }), inner);
  expect_values(AnyModule(behind).forward(ones({1})), {36});
  EXPECT_EQ(calls, 305);
}

TEST(ModuleHooks, ACallFinishesWithTheHooksItBeganWith) {
  Add add;
  int calls = 0;
  add->register_forward_pre_hook([&](Module& m, std::vector<Tensor>&) {
    ++calls;
    m.register_forward_hook(
        [&](Module&, const std::vector<Tensor>&, std::vector<Tensor>&) { calls += 10; });
  });
  add(ones({1}), 1, ones({1}));
  EXPECT_EQ(calls, 1);
  add(ones({1}), 1, ones({1}));
  EXPECT_EQ(calls, 12);
}

TEST(ModuleHooks, TupleAndVectorResults) {
  struct SplitImpl : Module {
    std::tuple<Tensor, int, Tensor> forward(const Tensor& x) { return {x, 5, x + 1}; }
  };
  SplitImpl split;
  split.register_forward_hook(
      [](Module&, const std::vector<Tensor>&, std::vector<Tensor>& outputs) {
        outputs.at(1) = outputs.at(1) * 3;
      });
  const auto [a, n, b] = call(split, ones({1}));
  expect_values(a, {1});
  EXPECT_EQ(n, 5);
  expect_values(b, {6});

  struct ListImpl : Module {
    std::vector<Tensor> forward(const std::vector<Tensor>& x) { return x; }
    void nothing() {}
  };
  ListImpl list;
  size_t seen = 0;
  list.register_forward_hook([&](Module&, const std::vector<Tensor>&,
                                 std::vector<Tensor>& outputs) { seen = outputs.size(); });
  call(list, std::vector<Tensor>{ones({1}), ones({1})});
  EXPECT_EQ(seen, 2u);
}

TEST(ModuleHooks, ChangingTheNumberOfTensorsIsAnError) {
  Add add;
  add->register_forward_pre_hook([](Module&, std::vector<Tensor>& inputs) { inputs.pop_back(); });
  EXPECT_ERROR_TEXT(add(ones({1}), 1, ones({1})), "number of inputs after a hook");
}

}  // namespace
}  // namespace ramet::nn
