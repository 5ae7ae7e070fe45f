#include "nn/module/module.h"

#include "autograd/grad_mode.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/matrix/matmul.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

using Names = std::vector<std::string>;

struct LeafModule : Module {
  LeafModule() {
    b = register_parameter("b", ones({2}));
    a = register_parameter("a", ones({3}), /*requires_grad=*/false);
    none = register_parameter("none", Tensor());
    state = register_buffer("state", zeros({1}));
  }
  Tensor a, b, none, state;
};
struct Tree : Module {
  Tree() {
    first = register_module("first", std::make_shared<LeafModule>());
    own = register_parameter("own", ones({1}));
    second = register_module("second", std::make_shared<LeafModule>());
  }
  Tensor own;
  std::shared_ptr<LeafModule> first, second;
};

struct WithView : Cloneable<WithView> {
  WithView() { reset(); }
  void reset() override {
    w = register_parameter("w", ones({2}));
    const NoGradGuard off;
    v = register_buffer("v", w.view({2, 1}));
  }
  Tensor w, v;
};

TEST(Module, ABufferThatShowsAParameterIsClonedAsABuffer) {
  const WithView m;
  const auto copy = std::static_pointer_cast<WithView>(m.clone());
  EXPECT_TRUE(copy->w.requires_grad());
  EXPECT_FALSE(copy->v.requires_grad() || copy->v.is_view());
  copy->v.add_(1);
  EXPECT_EQ(copy->v.sum().item<double>(), 4);
  EXPECT_EQ(copy->w.sum().item<double>(), 2);
}

TEST(Module, ListsOwnParametersFirstThenThoseOfTheChildren) {
  Tree tree;
  EXPECT_EQ(tree.named_parameters().keys(),
            (Names{"own", "first.b", "first.a", "second.b", "second.a"}));
  EXPECT_EQ(tree.named_parameters(/*recurse=*/false).keys(), Names{"own"});
  EXPECT_EQ(tree.named_buffers().keys(), (Names{"first.state", "second.state"}));
  EXPECT_EQ(tree.parameters().size(), 5u);
  EXPECT_EQ(tree.buffers().size(), 2u);
  EXPECT_TRUE(tree.named_parameters()["first.b"].is_same(tree.first->b));
  EXPECT_EQ(tree.first->own_parameters().keys(), (Names{"b", "a", "none"}));
  EXPECT_TRUE(tree.first->b.requires_grad());
  EXPECT_FALSE(tree.first->a.requires_grad());
}

TEST(Module, ATiedParameterIsListedOnceByParametersAndUnderEachOfItsNames) {
  Module m;
  Tensor w = m.register_parameter("w", ones({2}));
  m.register_parameter("v", w);
  EXPECT_EQ(m.parameters().size(), 1u);
  EXPECT_EQ(m.named_parameters().keys(), (Names{"w", "v"}));
}

TEST(Module, RegistrationChecksNames) {
  Module m;
  m.register_parameter("p", ones({1}));
  EXPECT_ERROR_TEXT(m.register_parameter("p", ones({1})), "Parameter 'p' already defined");
  EXPECT_ERROR_TEXT(m.register_parameter("a.b", ones({1})),
                    "Parameter name must not contain a dot (got 'a.b')");
  EXPECT_ERROR_TEXT(m.register_buffer("", ones({1})), "Buffer name must not be empty");
  m.register_module("linear", Linear(2, 3));
  EXPECT_ERROR_TEXT(m.register_module("linear", Linear(2, 3)),
                    "Submodule 'linear' already defined");
  EXPECT_ERROR_TEXT(m.register_module("x.y", Linear(2, 3)),
                    "Submodule name must not contain a dot (got 'x.y')");
  EXPECT_ERROR_TEXT(m.unregister_module("no"), "No Module with name `no` is registered");
  m.unregister_module("linear");
  EXPECT_TRUE(m.children().empty());
}

TEST(Module, ReplaceModuleKeepsThePlace) {
  Tree tree;
  auto other = std::make_shared<LeafModule>();
  tree.first = tree.replace_module("first", other);
  EXPECT_EQ(tree.named_children().keys(), (Names{"first", "second"}));
  EXPECT_EQ(tree.named_children()["first"], other);
  EXPECT_ERROR_TEXT(tree.replace_module("third", other), "'third' is not defined");
}

TEST(Module, VisitsDepthFirstInOrderOfRegistration) {
  auto tree = std::make_shared<Tree>();
  tree->first->register_module("deep", std::make_shared<Module>("Deep"));
  Names seen;
  tree->apply([&](const std::string& name, Module&) { seen.push_back(name); });
  EXPECT_EQ(seen, (Names{"", "first", "first.deep", "second"}));
  EXPECT_EQ(tree->named_modules("root").keys(),
            (Names{"root", "root.first", "root.first.deep", "root.second"}));
  EXPECT_EQ(tree->modules().size(), 4u);
  EXPECT_EQ(tree->modules(/*include_self=*/false).size(), 3u);
  EXPECT_EQ(tree->modules()[0], tree);
  int count = 0;
  const Tree& constant = *tree;
  constant.apply([&](const Module&) { ++count; });
  tree->apply([&](Module&) { ++count; });
  tree->apply([&](const std::shared_ptr<Module>& m) { count += m != nullptr; });
  EXPECT_EQ(count, 12);

  Tree on_stack;
  EXPECT_ERROR_TEXT(on_stack.modules(), "it is not stored in a shared_ptr. Use std::make_shared<");
  EXPECT_EQ(on_stack.modules(false).size(), 2u);
}

TEST(Module, TrainAndEvalReachEveryModule) {
  Tree tree;
  EXPECT_TRUE(tree.is_training());
  tree.eval();
  EXPECT_FALSE(tree.is_training() || tree.first->is_training() || tree.second->is_training());
  tree.train();
  EXPECT_TRUE(tree.is_training() && tree.first->is_training() && tree.second->is_training());
}

TEST(Module, ToConvertsInPlaceAndKeepsIdentityAndGradientRole) {
  BatchNorm1d norm(3);
  const TensorImpl* weight = norm->weight.impl();
  norm->to(kDouble);
  EXPECT_EQ(norm->weight.impl(), weight);
  EXPECT_EQ(norm->weight.scalar_type(), kDouble);
  EXPECT_EQ(norm->named_parameters()["weight"].scalar_type(), kDouble);
  EXPECT_TRUE(norm->weight.requires_grad());
  EXPECT_TRUE(norm->weight.is_leaf());
  EXPECT_EQ(norm->running_mean.scalar_type(), kDouble);
  EXPECT_EQ(norm->num_batches_tracked.scalar_type(), kLong)
      << "a counter is no number to be rounded";
  norm->to(Device("cpu:1"));
  EXPECT_EQ(norm->weight.device(), Device("cpu:1"));
  EXPECT_EQ(norm->num_batches_tracked.device(), Device("cpu:1"));
  norm->to(Device("cpu:0"), kFloat);
  EXPECT_EQ(norm->running_var.device(), Device("cpu:0"));
  EXPECT_EQ(norm->running_var.scalar_type(), kFloat);
  expect_values(norm->weight, {1, 1, 1});
}

TEST(Module, ZeroGradDropsOrZeroesGradients) {
  Linear linear(2, 1);
  linear->weight.sum().backward();
  const Tensor kept = linear->weight.grad();
  linear->zero_grad(/*set_to_none=*/false);
  expect_values(linear->weight.grad(), {0, 0});
  EXPECT_FALSE(linear->bias.grad().defined());
  linear->zero_grad();
  EXPECT_FALSE(linear->weight.grad().defined());
  EXPECT_TRUE(kept.defined());
}

TEST(Module, NamesItself) {
  EXPECT_EQ(LinearImpl(1, 1).name(), "ramet::nn::LinearImpl");
  EXPECT_EQ(Module("Custom").name(), "Custom");
}

TEST(Module, PrintsTheTree) {
  struct NetImpl : Module {
    NetImpl() : Module("Net") {
      register_module("body", Sequential(Linear(1, 2), Sequential(Linear(2, 2))));
      register_module("nothing", std::shared_ptr<Module>());
    }
  };
  EXPECT_EQ(text_of(NetImpl()),
            "Net(\n"
            "  (body): ramet::nn::Sequential(\n"
            "    (0): ramet::nn::Linear(in_features=1, out_features=2, bias=true)\n"
            "    (1): ramet::nn::Sequential(\n"
            "      (0): ramet::nn::Linear(in_features=2, out_features=2, bias=true)\n"
            "    )\n"
            "  )\n"
            "  (nothing): None\n"
            ")");
}

TEST(Module, CastsToItsClass) {
  std::shared_ptr<Module> m = std::make_shared<LinearImpl>(1, 2);
  EXPECT_EQ(m->as<LinearImpl>(), m.get());
  EXPECT_EQ(m->as<Linear>(), m.get());
  EXPECT_EQ(m->as<BatchNorm1d>(), nullptr);
  const Module& c = *m;
  EXPECT_NE(c.as<Linear>(), nullptr);
}

TEST(Module, BufferPolicies) {
  Module m;
  m.register_buffer("plain", zeros({1}));
  m.register_buffer("largest", zeros({1}), BufferPolicy::max);
  EXPECT_EQ(m.buffer_policy("plain"), BufferPolicy::first);
  EXPECT_EQ(m.buffer_policy("largest"), BufferPolicy::max);
  m.set_buffer_policy("plain", BufferPolicy::sum);
  EXPECT_EQ(m.buffer_policy("plain"), BufferPolicy::sum);
  EXPECT_ERROR_TEXT(m.set_buffer_policy("no", BufferPolicy::sum), "Buffer 'no' is not defined");
  EXPECT_EQ(BatchNorm2d(3)->buffer_policy("running_var"), BufferPolicy::merge_stats);
}

// ---- the three styles of writing a module -------------------------------------------------------

struct NetImpl : Module {
  NetImpl(int64_t in, int64_t out) : fc(nullptr) { fc = register_module("fc", Linear(in, out)); }
  Tensor forward(Tensor x) { return fc->forward(x); }
  Linear fc{nullptr};
};
RAMET_MODULE(Net);

TEST(ModuleHolder, ByValueBySharedPointerAndByHolder) {
  const Tensor x = ones({1, 2});
  NetImpl value(2, 3);
  value.to(kCPU);
  EXPECT_EQ(value.forward(x).size(1), 3);
  auto shared = std::make_shared<NetImpl>(2, 3);
  EXPECT_EQ(shared->forward(x).size(1), 3);
  Net net(2, 3);
  EXPECT_EQ(net(x).size(1), 3);
  EXPECT_EQ(net->forward(x).size(1), 3);
  Net same = net, from_pointer(shared), empty{nullptr}, also_empty = nullptr;
  EXPECT_EQ(same.ptr(), net.ptr());
  EXPECT_EQ(from_pointer.ptr(), shared);
  EXPECT_TRUE(net);
  EXPECT_FALSE(empty);
  EXPECT_TRUE(also_empty.is_empty());
  EXPECT_ERROR_TEXT(empty->forward(x), "Accessing empty ModuleHolder");
  EXPECT_ERROR_TEXT(empty(x), "Accessing empty ModuleHolder");
  empty = net;
  EXPECT_EQ((*empty).parameters().size(), 2u);
  Sequential made_by_default;
  EXPECT_TRUE(made_by_default);
  auto& pointer = net.ptr();  // LibTorch's is a reference
  const Net moved = std::move(net);
  EXPECT_TRUE(net.is_empty());
  EXPECT_EQ(pointer, moved.ptr());
}

// As std::variant's, which LibTorch's options are.
TEST(Options, ValuesAreAskedForAsOfVariants) {
  Conv2dOptions options(1, 1, 3);
  EXPECT_NE(std::get_if<enumtype::kZeros>(&options.padding_mode()), nullptr);
  options.padding_mode(kReflect);
  EXPECT_EQ(std::get_if<enumtype::kZeros>(&options.padding_mode()), nullptr);
  EXPECT_TRUE(std::holds_alternative<enumtype::kReflect>(options.padding_mode()));
  EXPECT_TRUE(ramet::holds_alternative<enumtype::kReflect>(options.padding_mode()));
}

// ---- clone --------------------------------------------------------------------------------------

struct CloneableNetImpl : Cloneable<CloneableNetImpl> {
  CloneableNetImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", Linear(2, 2));
    scale = register_parameter("scale", ones({2}));
    seen = register_buffer("seen", zeros({2}));
  }
  Linear fc{nullptr};
  Tensor scale, seen;
  int plain = 1;
};

TEST(Cloneable, CopiesValuesIntoFreshTensorsThatTheMembersShare) {
  CloneableNetImpl net;
  net.fc->weight.detach().fill_(5);
  net.scale.set_requires_grad(false);
  net.plain = 7;
  net.eval();
  auto copy = std::dynamic_pointer_cast<CloneableNetImpl>(net.clone());
  ASSERT_TRUE(copy);
  EXPECT_TRUE(same_bits(copy->fc->weight, net.fc->weight));
  EXPECT_FALSE(copy->fc->weight.is_same(net.fc->weight));
  EXPECT_TRUE(copy->named_parameters()["fc.weight"].is_same(copy->fc->weight));
  EXPECT_TRUE(copy->fc->weight.requires_grad());
  EXPECT_FALSE(copy->scale.requires_grad()) << "what is frozen stays frozen";
  EXPECT_EQ(copy->plain, 7);
  EXPECT_FALSE(copy->is_training());
  copy->fc->weight.detach().fill_(6);
  copy->seen.fill_(1);
  expect_values(net.fc->weight, {5, 5, 5, 5});
  expect_values(net.seen, {0, 0});
}

TEST(Cloneable, ToADeviceIsACopyEvenWhereItIsTheSameOne) {
  CloneableNetImpl net;
  auto same = net.clone(Device("cpu:0")), other = net.clone(Device("cpu:1"));
  const Tensor a = same->named_parameters()["fc.weight"],
               b = other->named_parameters()["fc.weight"];
  EXPECT_EQ(a.device(), Device("cpu:0"));
  EXPECT_NE(a.data_ptr(), net.fc->weight.data_ptr());
  EXPECT_EQ(b.device(), Device("cpu:1"));
  EXPECT_TRUE(same_bits(a, b));
}

TEST(Cloneable, ErrorsSayWhatResetForgot) {
  struct InConstructor : Cloneable<InConstructor> {
    InConstructor() { register_parameter("p", ones({1})); }
    void reset() override {}
  };
  EXPECT_ERROR_TEXT(InConstructor().clone(),
                    "The cloned module does not have the same number of parameters as the original "
                    "module after calling reset(): "
                    "got 0, expected 1. Are you sure you called register_parameter() inside "
                    "reset() and not the constructor?");
  struct BufferOutside : Cloneable<BufferOutside> {
    BufferOutside() { register_buffer("p", ones({1})); }
    void reset() override {}
  };
  EXPECT_ERROR_TEXT(BufferOutside().clone(), "the same number of buffers");
  struct ChildOutside : Cloneable<ChildOutside> {
    ChildOutside() { register_module("p", Linear(1, 1)); }
    void reset() override {}
  };
  EXPECT_ERROR_TEXT(ChildOutside().clone(), "the same number of child modules");
  struct Plain : Module {};
  EXPECT_ERROR_TEXT(Plain().clone(), "clone() has not been implemented for ");
  struct Fickle : Cloneable<Fickle> {
    Fickle() { reset(); }
    void reset() override {
      if (made++ == 0) register_module("child", Linear(1, 1));
      else register_module("child", BatchNorm1d(1));
    }
    int made = 0;
  };
  EXPECT_ERROR_TEXT(Fickle().clone(),
                    "it is of a different type than the submodule it was to be cloned into: got ");
  struct Sharing : Cloneable<Sharing> {
    Sharing() { reset(); }
    void reset() override { p = register_parameter("p", p.defined() ? p : ones({1})); }
    Tensor p;
  };
  EXPECT_ERROR_TEXT(Sharing().clone(), "reset() registered the original module's own tensor");
}

TEST(Cloneable, OwnBytesAreTheObjectWithoutTheModuleBase) {
  struct Small : Cloneable<Small> {
    void reset() override {}
    bool flag = false;
    double number = 0;
  };
  Small small;
  const auto [begin, size] = small.own_bytes();
  EXPECT_LE(begin, static_cast<const void*>(&small.flag));
  EXPECT_EQ(static_cast<const char*>(begin) + size, reinterpret_cast<const char*>(&small + 1));
  const std::vector<char> before(static_cast<const char*>(begin),
                                 static_cast<const char*>(begin) + size);
  const auto changed = [&] {
    return std::memcmp(before.data(), small.own_bytes().first, size) != 0;
  };
  small.eval();
  small.register_buffer("b", zeros({1}));
  EXPECT_FALSE(changed()) << "the base's state is not the object's own";
  small.flag = true;
  EXPECT_TRUE(changed());
  EXPECT_EQ(Module().own_bytes().second, 0u);
}

}  // namespace
}  // namespace ramet::nn
