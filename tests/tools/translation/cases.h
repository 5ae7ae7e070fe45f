// Compares a module that ./tools/translate wrote with the file that it was written from: results,
// gradients and buffers, bit by bit.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "nn/formats/pt.h"
#include "nn/formats/state_dict.h"
#include "nn/script/translate.h"
#include "ramet.h"

namespace ramet::translation {

inline std::string file(const std::string& name) { return "tests/nn/script/goldens/" + name; }

/// Fills a struct with the file's values.
template <class Net> std::shared_ptr<Net> filled(const jit::Module& module) {
  const auto net = std::make_shared<Net>();
  formats::load_state_dict(*net, script::translate(module, "Net").tensors);
  return net;
}

/// A result of C++ as the interpreter's.
template <class T> IValue value_of(const T& value) { return IValue(value); }
template <class T> IValue value_of(const std::optional<T>& value);
template <class T> IValue value_of(const std::vector<T>& list);
template <class... T> IValue value_of(const std::tuple<T...>& values);
template <class T> IValue value_of(const List<T>& list) { return value_of(list.vec()); }
template <class K, class V> IValue value_of(const Dict<K, V>& dict) {
  IValue::GenericDict made;
  for (const auto& entry : dict) made.insert_or_assign(entry.key(), value_of(entry.value()));
  return made;
}
template <class T> IValue value_of(const std::vector<T>& list) {
  IValue::GenericList made;
  for (const T& item : list) made.push_back(value_of(item));
  return made;
}
template <class T> IValue value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : IValue();
}
template <class... T> IValue value_of(const std::tuple<T...>& values) {
  return std::apply(
      [](const auto&... item) { return IValue(IValue::Tuple::create({value_of(item)...})); },
      values);
}

inline void expect_same(const IValue& got, const IValue& want, const std::string& what) {
  SCOPED_TRACE(what);
  if (want.isTensor()) {
    ASSERT_TRUE(got.isTensor());
    ASSERT_EQ(got.toTensor().sizes(), want.toTensor().sizes());
    EXPECT_EQ(got.toTensor().scalar_type(), want.toTensor().scalar_type());
    EXPECT_EQ(got.toTensor().requires_grad(), want.toTensor().requires_grad());
    EXPECT_TRUE(got.toTensor().equal(want.toTensor()));
  } else if (want.isList()) {
    const auto mine = got.toList(), its = want.toList();
    ASSERT_EQ(mine.size(), its.size());
    for (size_t i = 0; i < its.size(); ++i)
      expect_same(mine.get(i), its.get(i), "item " + std::to_string(i));
  } else if (want.isTuple()) {
    const auto &mine = got.toTupleRef().elements(), &its = want.toTupleRef().elements();
    ASSERT_EQ(mine.size(), its.size());
    for (size_t i = 0; i < its.size(); ++i)
      expect_same(mine[i], its[i], "value " + std::to_string(i));
  } else if (want.isGenericDict()) {  // in the same order
    const auto &mine = got.toGenericDict(), &its = want.toGenericDict();
    ASSERT_EQ(mine.size(), its.size());
    auto at = mine.begin();
    for (const auto& entry : its) {
      expect_same(at->key(), entry.key(), "key");
      expect_same(at->value(), entry.value(), "value");
      ++at;
    }
  } else {
    EXPECT_EQ(got.tagKind(), want.tagKind());
    EXPECT_TRUE(got.is(want)) << got << " instead of " << want;
  }
}

/// The sum of the squares of all that has a gradient; undefined where nothing has.
inline void add_squares(const IValue& value, Tensor& sum) {
  if (value.isTensor() && value.toTensor().requires_grad()) {
    const Tensor squares = value.toTensor().square().sum().to(kDouble);
    sum = sum.defined() ? sum + squares : squares;
  }
  if (value.isList()) {
    const IValue::GenericList list = value.toList();  // a new one, of a list of tensors
    for (const IValue& item : list.vec()) add_squares(item, sum);
  }
  if (value.isTuple())
    for (const IValue& item : value.toTupleRef().elements()) add_squares(item, sum);
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict()) add_squares(entry.value(), sum);
}

/// Calls both twice in each mode. `call(net)` and `arguments()` make new arguments each time.
template <class Net, class Call, class Arguments>
void expect_same_calls(const std::string& path, const Call& call, const Arguments& arguments) {
  const jit::Module module = jit::load(file(path));
  const auto net = filled<Net>(module);
  for (const bool training : {true, false}) {
    SCOPED_TRACE(path + (training ? ", training" : ", evaluation"));
    module.train(training);
    net->train(training);
    for (int round = 0; round < 2; ++round) {
      manual_seed(7);
      const IValue want = module(arguments());
      manual_seed(7);
      const IValue got = value_of(call(*net));
      expect_same(got, want, "result");
      Tensor mine, its;
      add_squares(got, mine);
      add_squares(want, its);
      ASSERT_EQ(mine.defined(), its.defined());
      if (its.defined()) mine.backward(), its.backward();
      const auto parameters = net->named_parameters();
      ASSERT_GE(parameters.size(), module.named_parameters().size());
      for (const auto& p : module.named_parameters()) {
        const Tensor gradient = parameters[p.name].grad();
        ASSERT_EQ(gradient.defined(), p.value.grad().defined()) << p.name;
        if (gradient.defined()) { EXPECT_TRUE(gradient.equal(p.value.grad())) << p.name; }
      }
      const auto buffers = net->named_buffers();
      for (const auto& b : module.named_buffers())
        EXPECT_TRUE(buffers[b.name].equal(b.value)) << b.name;
    }
  }
}

}  // namespace ramet::translation
