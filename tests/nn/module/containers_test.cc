#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/unary.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/functional_module.h"
#include "nn/layers/basic/linear.h"
#include "nn/module/any_module.h"
#include "nn/module/module_list.h"
#include "nn/module/parameter_list.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

struct Scale : Module {
  explicit Scale(double f) : factor(f) {}
  Tensor forward(Tensor x) { return x * factor; }
  double factor;
};
struct Parts : Module {
  std::tuple<Tensor, Tensor> forward(Tensor x) { return {x, x + 1}; }
};
struct Join : Module {
  Tensor forward(const std::tuple<Tensor, Tensor>& parts) {
    return std::get<0>(parts) + std::get<1>(parts);
  }
};
struct Many : Module {
  double forward(int a, double b, const std::string& c) {
    return a + b + static_cast<double>(c.size());
  }
};
struct WithDefaults : Module {
  Tensor forward(Tensor x, int64_t times, const Tensor& plus) {
    return plus.defined() ? x * times + plus : x * times;
  }

 protected:
  RAMET_FORWARD_HAS_DEFAULT_ARGS({1, AnyValue(int64_t(3))}, {2, AnyValue(Tensor())})
};

TEST(AnyValue, HoldsOneTypeExactly) {
  AnyValue v(5), text("abc"), copy(v);
  EXPECT_EQ(v.get<int>(), 5);
  EXPECT_EQ(copy.get<int>(), 5);
  EXPECT_EQ(v.try_get<int64_t>(), nullptr);
  EXPECT_STREQ(text.get<const char*>(), "abc");
  EXPECT_ERROR_TEXT(v.get<double>(),
                    "Attempted to cast AnyValue to double, but its actual type is int");
  // Moved away: of no type, and still a value that may be copied.
  const AnyValue taken(std::move(v));
  AnyValue nothing(v);
  nothing = v;
  EXPECT_TRUE(nothing.type_info() == typeid(void));
  EXPECT_EQ(nothing.try_get<int>(), nullptr);
  EXPECT_ERROR_TEXT(nothing.get<int>(), "but its actual type is void");
}

TEST(Containers, RefuseWhatTheyDoNotHold) {
  EXPECT_ERROR_TEXT(ModuleList()[0], "[ModuleList] Index out of range: got 0");
  EXPECT_ERROR_TEXT(ModuleList()->ptr(SIZE_MAX), "[ModuleList] Index out of range");
  EXPECT_ERROR_TEXT(ModuleList()->insert(1, std::make_shared<LinearImpl>(1, 1)), "at most 0");
  EXPECT_ERROR_TEXT(Sequential()[0], "[Sequential] Index out of range: got 0");
  EXPECT_ERROR_TEXT(Sequential()->at<LinearImpl>(SIZE_MAX), "[Sequential] Index out of range");
  EXPECT_ERROR_TEXT(ModuleDict()["a"], "'a' is not defined");
  EXPECT_ERROR_TEXT(ModuleDict()->pop("a"), "'a' is not defined");
  EXPECT_ERROR_TEXT(ModuleDict()->at<LinearImpl>("a"), "'a' is not defined");
  EXPECT_ERROR_TEXT(AnyModule().ptr(), "Cannot call ptr() on an empty AnyModule");
  EXPECT_ERROR_TEXT(AnyModule().get<LinearImpl>(), "on an empty AnyModule");
  EXPECT_ERROR_TEXT(AnyModule().type_info(), "on an empty AnyModule");
  EXPECT_ERROR_TEXT(AnyModule().map_tensor(ones({1})), "on an empty AnyModule");
}

TEST(AnyModule, CallsAnyForward) {
  AnyModule scale(Scale(2)), many((Many()));
  expect_values(scale.forward(ones({2})), {2, 2});
  EXPECT_EQ(many.forward<double>(1, 2.5, std::string("abc")), 6.5);
  EXPECT_ERROR_TEXT(many.forward<double>(1, 2.5), "expects 3 argument(s), but received 2");
  EXPECT_ERROR_TEXT(many.forward<double>(1, 2, std::string()),
                    "Expected argument #1 to be of type double, but received value of type int");
  EXPECT_ERROR_TEXT(scale.forward<double>(ones({1})), "but its actual type is ramet::Tensor");
  EXPECT_ERROR_TEXT(AnyModule().forward(ones({1})), "Cannot call forward() on an empty AnyModule");
}

TEST(AnyModule, DefaultArguments) {
  AnyModule m((WithDefaults()));
  expect_values(m.forward(ones({1})), {3});
  expect_values(m.forward(ones({1}), int64_t(5)), {5});
  expect_values(m.forward(ones({1}), int64_t(5), ones({1})), {6});
  EXPECT_ERROR_TEXT(m.any_forward(),
                    "expects at least 1 argument(s) and at most 3 argument(s), but received 0");
}

TEST(AnyModule, SharesOnCopyAndGivesTheModuleBack) {
  Linear linear(2, 3);
  AnyModule any(linear), same = any;
  EXPECT_EQ(same.ptr(), linear.ptr());
  EXPECT_EQ(&any.get<LinearImpl>(), linear.get());
  EXPECT_EQ(any.get<Linear>().ptr(), linear.ptr());
  EXPECT_EQ(any.ptr<LinearImpl>(), linear.ptr());
  EXPECT_ERROR_TEXT(any.get<Scale>(),
                    "Attempted to cast module of type ramet::nn::LinearImpl to type ");
  AnyModule copy = any.clone();
  EXPECT_NE(copy.ptr(), any.ptr());
  EXPECT_TRUE(same_bits(copy.get<LinearImpl>().weight, linear->weight));
  same = std::make_shared<Scale>(4.0);
  expect_values(same.forward(ones({1})), {4});
}

TEST(Sequential, TakesModulesInEveryForm) {
  Sequential s(Scale(2), std::make_shared<Scale>(3.0), Linear(1, 1), AnyModule(Scale(5)));
  EXPECT_EQ(s->size(), 4u);
  s->push_back(Scale(7));
  s->push_back("last", Scale(11));
  EXPECT_EQ(s->named_children().keys(),
            (std::vector<std::string>{"0", "1", "2", "3", "4", "last"}));
  EXPECT_EQ(s->at<Scale>(1).factor, 3);
  EXPECT_EQ(s->ptr<Scale>(5)->factor, 11);
  EXPECT_EQ(s[0], s->ptr(0));
  EXPECT_ERROR_TEXT(s->at<Scale>(6), "Index out of range");
  EXPECT_ERROR_TEXT(s->at<Scale>(2), "Attempted to cast module of type ramet::nn::LinearImpl");

  Sequential named({{"up", Scale(2)}, {"linear", Linear(1, 1)}});
  EXPECT_EQ(named->named_parameters().keys(),
            (std::vector<std::string>{"linear.weight", "linear.bias"}));
  OrderedDict<std::string, AnyModule> dict;
  dict.insert("a", AnyModule(Scale(2)));
  Sequential from_dict(std::move(dict));
  EXPECT_EQ(from_dict->named_children().keys(), std::vector<std::string>{"a"});
  std::vector<std::shared_ptr<Scale>> more{std::make_shared<Scale>(1.0),
                                           std::make_shared<Scale>(1.0)};
  from_dict->extend(more);
  EXPECT_EQ(from_dict->size(), 3u);
}

// What is made first is drawn first. Statements and braces have an order; that of arguments in
// parentheses is the compiler's, so both are made by statements here.
TEST(Sequential, InBracesModulesAreMadeInOrder) {
  const auto weights = [](const auto& make) {
    manual_seed(3);
    std::string all;
    for (const Tensor& p : make()->parameters())
      for (const double v : values(p)) all += std::to_string(v) + " ";
    return all;
  };
  const std::string in_order = weights([] {
    Linear a(2, 3);
    Linear b(3, 4);
    return Sequential(a, Tanh(), b);
  });
  const std::string reversed = weights([] {
    Linear b(3, 4);
    Linear a(2, 3);
    return Sequential(a, Tanh(), b);
  });
  EXPECT_NE(in_order, reversed);
  EXPECT_EQ(weights([] { return Sequential{Linear(2, 3), Tanh(), Linear(3, 4)}; }), in_order);
  EXPECT_EQ(weights([] { return ModuleList{Linear(2, 3), Tanh(), Linear(3, 4)}; }), in_order);
  EXPECT_EQ(weights([] {
              return Sequential({{"a", Linear(2, 3)}, {"b", Tanh()}, {"c", Linear(3, 4)}});
            }),
            in_order);
  const std::string open = weights([] { return Sequential(Linear(2, 3), Tanh(), Linear(3, 4)); });
  EXPECT_TRUE(open == in_order || open == reversed);
}

TEST(Sequential, Nests) {
  Sequential s(Scale(2), Sequential(Scale(3), Sequential(Scale(5), ReLU())), Scale(7));
  expect_values(s(ones({1})), {210});
  EXPECT_EQ(s->modules(false).size(), 7u);
  AnyModule any(s);
  expect_values(any.forward(ones({1})), {210});
}

TEST(Sequential, PassesTuplesOnAndReturnsThem) {
  Sequential joined(Scale(2), Parts(), Join());
  expect_values(joined(ones({1})), {5});
  Sequential parts(Scale(2), Parts());
  const auto result = parts->forward<std::tuple<Tensor, Tensor>>(ones({1}));
  expect_values(std::get<1>(result), {3});
  EXPECT_ERROR_TEXT(parts->forward(ones({1})),
                    "The type of the return value is std::tuple<ramet::Tensor, ramet::Tensor>");
  Sequential nested{Sequential(std::make_shared<Parts>()), Join()};
  expect_values(nested(ones({1})), {3});
  Sequential several((Many()));
  EXPECT_EQ(several->forward<double>(1, 2.0, std::string("x")), 4);
  EXPECT_ERROR_TEXT(Sequential()->forward(ones({1})),
                    "Cannot call forward() on an empty Sequential");
}

TEST(Sequential, CloneKeepsNamesAndMode) {
  Sequential s;
  s->push_back("fc", Linear(2, 2));
  s->push_back("inner", Sequential(Dropout(0.5)));
  s->eval();
  auto copy = std::dynamic_pointer_cast<SequentialImpl>(s->clone());
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->named_parameters().keys(), s->named_parameters().keys());
  EXPECT_FALSE(copy->is_training());
  EXPECT_FALSE(copy->ptr(1)->is_training());
  EXPECT_TRUE(same_bits(copy->forward(ones({1, 2})), s->forward(ones({1, 2}))));
  EXPECT_NE(copy->at<LinearImpl>(0).weight.data_ptr(), s->at<LinearImpl>(0).weight.data_ptr());
}

TEST(Sequential, CloneOfOneThatLostAChildIsAnError) {
  Sequential s(Linear(1, 1), Linear(1, 1));
  s->unregister_module("0");
  EXPECT_ERROR_TEXT(s->clone(), "runs 2 modules, but 1 are registered");
}

TEST(Sequential, AsABase) {
  struct BlockImpl : SequentialImpl {
    BlockImpl() {
      push_back(Linear(2, 2));
      push_back(Functional(relu));
    }
    Tensor forward(Tensor x) { return SequentialImpl::forward(x) + x; }
  };
  auto block = std::make_shared<BlockImpl>();
  Sequential outer;
  outer->push_back(block);
  EXPECT_TRUE(same_bits(outer->forward(ones({1, 2})), block->forward(ones({1, 2}))));
}

TEST(ModuleList, KeepsOrderAndRenumbers) {
  ModuleList list(Linear(1, 2), std::make_shared<Scale>(2.0), Scale(3));
  EXPECT_EQ(list->size(), 3u);
  list->insert(1, Scale(9));
  EXPECT_EQ(list->at<Scale>(1).factor, 9);
  EXPECT_EQ(list->at<Scale>(2).factor, 2);
  EXPECT_EQ(list->named_children().keys(), (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(list->named_children()["3"], list[3]);
  EXPECT_EQ(list[1], list->ptr<Scale>(1));
  int count = 0;
  for (const auto& m : *list) count += m != nullptr;
  EXPECT_EQ(count, 4);
  EXPECT_ERROR_TEXT(list->at<LinearImpl>(1), "Unable to cast module[1] to ramet::nn::LinearImpl");
  EXPECT_ERROR_TEXT(list->ptr(4), "Index out of range");
  ModuleList linears(Linear(1, 2), Linear(2, 1));
  linears->extend(*ModuleList(Linear(3, 3)));
  EXPECT_EQ(linears->clone()->parameters().size(), 6u);
}

TEST(ModuleDict, AddsReplacesAndPops) {
  ModuleDict dict;
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<Module>>>{
      {"b", std::make_shared<Scale>(1.0)}, {"a", Linear(1, 1).ptr()}});
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"b", "a"}));
  dict->update(std::vector<std::pair<std::string, std::shared_ptr<Module>>>{
      {"b", std::make_shared<Scale>(4.0)}});
  EXPECT_EQ(dict->at<Scale>("b").factor, 4);
  EXPECT_EQ(dict->size(), 2u);
  EXPECT_EQ(dict->parameters().size(), 2u);
  EXPECT_ERROR_TEXT(dict["c"], "'c' is not defined");
  EXPECT_ERROR_TEXT(dict->at<LinearImpl>("b"), "Unable to cast module[b]");
  auto popped = dict->pop("b");
  EXPECT_EQ(popped->as<Scale>()->factor, 4);
  EXPECT_EQ(dict->named_children().keys(), std::vector<std::string>{"a"});
  EXPECT_EQ(dict->clone()->parameters().size(), 2u);
  dict->clear();
  EXPECT_TRUE(dict->empty() && dict->children().empty());
}

TEST(ParameterList, KeepsOrderGradientsAndNames) {
  ParameterList list(ones({2, 3}).requires_grad_(), zeros({1}));
  EXPECT_EQ(list->size(), 2u);
  EXPECT_TRUE(list[0].requires_grad());
  EXPECT_FALSE(list[1].requires_grad());
  std::vector<std::string> keys;
  for (const auto& item : list->named_parameters()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"0", "1"}));
  list->extend(std::vector<Tensor>{ones({4})});
  ParameterList other(ones({5}));
  *list += *other;
  EXPECT_EQ(list->size(), 4u);
  EXPECT_TRUE(list->at(3).is_same(other[0]));
  int64_t numbers = 0;
  for (const auto& item : *list) numbers += item.value().numel();
  EXPECT_EQ(numbers, 16);
  EXPECT_ERROR_TEXT(list->at(4), "Index out of range");
  EXPECT_EQ(text_of(ParameterList(ones({2, 3}), ones({1}))),
            "ramet::nn::ParameterList(\n(0): Parameter containing: [Float of size [2, 3]]\n"
            "(1): Parameter containing: [Float of size [1]]\n)");
  list->eval();
  const auto copy = std::dynamic_pointer_cast<ParameterListImpl>(list->clone());
  EXPECT_EQ(copy->size(), 4u);
  EXPECT_TRUE(same_bits(copy->at(0), list[0]));
  EXPECT_FALSE(copy->at(0).is_alias_of(list[0]));
  EXPECT_TRUE(copy->at(0).requires_grad());
  EXPECT_FALSE(copy->at(1).requires_grad());
  EXPECT_FALSE(copy->is_training());
}

TEST(ParameterDict, AddsReplacesAndPops) {
  ParameterDict dict;
  EXPECT_TRUE(dict->empty());
  dict->insert("a", ones({2}).requires_grad_());
  dict->insert("b", zeros({3}));
  EXPECT_EQ(text_of(dict),
            "ramet::nn::ParameterDict(\n(a): Parameter containing: [Float of size "
            "[2]]\n(b): Parameter containing: [Float of size [3]]\n)");
  EXPECT_ERROR_TEXT(dict->insert("a", ones({1})), "a");
  OrderedDict<std::string, Tensor> more;
  more.insert("b", ones({4}));
  more.insert("c", ones({5}));
  dict->update(more);
  EXPECT_EQ(dict->keys(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(dict["b"].numel(), 4);
  EXPECT_EQ(dict->parameters().size(), 3u);
  EXPECT_TRUE(dict->get("a").requires_grad());
  EXPECT_EQ(dict->pop("b").numel(), 4);
  EXPECT_FALSE(dict->contains("b"));
  EXPECT_ERROR_TEXT(dict->pop("b"), "b");
  const auto copy = std::dynamic_pointer_cast<ParameterDictImpl>(dict->clone());
  EXPECT_EQ(copy->keys(), dict->keys());
  EXPECT_TRUE(same_bits(copy->get("c"), dict["c"]));
  EXPECT_EQ(ParameterDict(more)->size(), 2u);
  dict->clear();
  EXPECT_EQ(dict->size(), 0u);
}

TEST(Functional, BindsArguments) {
  expect_values(Functional(relu)(doubles({-1, 2})), {0, 2});
  Functional pool(max_pool2d, 2, 2, 0, 1, false);
  EXPECT_EQ(pool(ones({1, 1, 4, 4})).sizes(), IntArrayRef({1, 1, 2, 2}));
  Functional lambda([](Tensor x) { return x + 1; });
  expect_values(lambda(zeros({1})), {1});
  EXPECT_FALSE(lambda->is_serializable());
  Sequential s(Functional(relu), lambda);
  expect_values(s(doubles({-1})), {1});
}

}  // namespace
}  // namespace ramet::nn
