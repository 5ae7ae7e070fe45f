// Operators of ATen's core against PyTorch's results and gradients (goldens/make_core.py).
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/operators_internal.h"
#include "nn/formats/pytorch/pt.h"
#include "tests/error_text.h"

namespace ramet::script {
namespace {

// A list of numbers from a pickle as an operator takes it.
IValue typed_list(const IValue& value, const TypePtr& type) {
  const TypePtr plain = type->kind() == Type::Kind::kOptional ? type->element() : type;
  if (!value.isList() || plain->kind() != Type::Kind::kList) return value;
  return make_list(plain->element(), value.toList().vec());
}

// The overload with that many parameters that takes the values.
IValue core_call(const std::string& name, std::vector<IValue> values) {
  for (const Operator* op : operators_named("aten::" + name)) {
    if (op->parameters.size() < values.size()) continue;
    const bool number = values.size() > 1 && values[1].isInt();
    const Type::Kind second =
        op->parameters.size() > 1 ? op->parameters[1].type->kind() : Type::Kind::kNone;
    if (number && second != Type::Kind::kNumber && second != Type::Kind::kInt) continue;
    if (!number && second == Type::Kind::kNumber) continue;
    for (size_t i = 0; i < op->parameters.size(); ++i) {
      if (i < values.size()) values[i] = typed_list(values[i], op->parameters[i].type);
      else values.push_back(op->parameters[i].value.value());
    }
    std::vector<const IValue*> pointers;
    for (const IValue& v : values) pointers.push_back(&v);
    return op->function(pointers);
  }
  ADD_FAILURE() << name << ": no such operator";
  return {};
}

std::vector<Tensor> defined_results(const IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  std::vector<Tensor> list;
  for (const IValue& v : value.toTupleRef().elements())
    if (v.isTensor() && v.toTensor().defined()) list.push_back(v.toTensor());
  return list;
}

void expect_core_near(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got.sizes(), want.sizes()) << what;
  EXPECT_EQ(got.scalar_type(), want.scalar_type()) << what;
  if (!want.is_floating_point()) EXPECT_TRUE(got.equal(want)) << what << got << want;
  else EXPECT_TRUE(allclose(got, want, 1e-10, 1e-11, true)) << what << got << want;
}

TEST(CoreOperators, ComputeWhatPyTorchDoes) {
  const IValue rows = formats::load_pt("tests/nn/script/goldens/core.pt");
  const auto list = rows.toList();
  size_t number = 0;
  for (const IValue& row : list.vec()) {
    const std::vector<IValue> parts = row.toTupleRef().elements();
    const std::string name = parts[0].toStringRef();
    const std::string what = name + ", call " + std::to_string(number++);
    std::vector<IValue> values = parts[2].toList().vec();
    const std::vector<IValue> needs = parts[3].toList().vec();
    std::vector<Tensor> leaves;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!needs[i].toBool()) continue;
      leaves.push_back(values[i].toTensor().detach().requires_grad_(true));
      values[i] = leaves.back();
    }
    const std::vector<Tensor> got = defined_results(core_call(name, values));
    const std::vector<IValue> want = parts[4].toList().vec();
    ASSERT_EQ(got.size(), want.size()) << what;
    // Of an embedding bag, what follows the bags is of use to PyTorch's backward pass alone.
    const size_t compared = name.rfind("_embedding_bag", 0) == 0 ? 1 : got.size();
    for (size_t i = 0; i < compared; ++i) expect_core_near(got[i], want[i].toTensor(), what);
    if (leaves.empty()) continue;
    const Tensor weights = cos(arange(got[0].numel(), kDouble)).view(got[0].sizes());
    const std::vector<Tensor> found = autograd::grad({(got[0] * weights).sum()}, leaves);
    const std::vector<IValue> grads = parts[5].toList().vec();
    for (size_t i = 0; i < found.size(); ++i)
      expect_core_near(found[i], grads[i].toTensor(), what + ", gradient " + std::to_string(i));
  }
  EXPECT_EQ(number, 65u);
}

TEST(CoreOperators, RreluWithNoise) {
  const Tensor x = randn({100}, kDouble), noise = zeros({100}, kDouble);
  const Tensor y = core_call("rrelu_with_noise", {x, noise, 0.25, 0.5, true, IValue()}).toTensor();
  EXPECT_TRUE(y.equal(x * noise));
  EXPECT_TRUE(noise.masked_select(x > 0).eq(1).all().item<bool>());
  const Tensor drawn = noise.masked_select(x <= 0);
  EXPECT_TRUE(((drawn >= 0.25) & (drawn < 0.5)).all().item<bool>());
  EXPECT_GT(drawn.std().item<double>(), 0.01);
  const std::vector<IValue> pair =
      core_call("rrelu_with_noise_functional", {x, noise, 0.25, 0.5, true, IValue()})
          .toTupleRef()
          .elements();
  EXPECT_TRUE(pair[0].toTensor().equal(x * pair[1].toTensor()));
  EXPECT_FALSE(pair[1].toTensor().equal(noise));
}

TEST(CoreOperators, GridsAreChecked) {
  const auto error = [](const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                        const char* name = "grid_sampler") {
    return error_of([&] { core_call(name, {input, grid, mode, padding, false}); });
  };
  const Tensor image = zeros({1, 2, 3, 3}), grid = zeros({1, 2, 2, 2});
  EXPECT_EQ(error(image, grid, 0, 0), "no error");
  expect_part(error(image, zeros({1, 2, 2, 3}), 0, 0), "grid: got the size [1, 2, 2, 3]");
  expect_part(error(image, zeros({2, 2, 2, 2}), 0, 0), "the first of 1");
  expect_part(error(zeros({1, 2, 3}), grid, 0, 0), "input: got the size [1, 2, 3]");
  expect_part(error(image, grid, 0, 0, "grid_sampler_3d"), "expected 5 dimensions");
  expect_part(error(image, grid, 3, 0), "interpolation_mode: got 3");
  expect_part(error(image, grid, 0, -1), "padding_mode: got -1");
  expect_part(error(image, grid.to(kDouble), 0, 0), "expected one floating-point dtype");
  expect_part(error(zeros({1, 2, 0, 3}), grid, 0, 0), "expected elements in dimension 2");
  EXPECT_EQ(core_call("grid_sampler", {zeros({0, 2, 3, 3}), zeros({0, 2, 2, 2}), 0, 0, false})
                .toTensor()
                .sizes(),
            IntArrayRef({0, 2, 2, 2}));
}

}  // namespace
}  // namespace ramet::script
