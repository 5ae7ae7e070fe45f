// Operators on tensors that are lines of their own: what they return, and what they refuse.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "runtime/base/error.h"
#include "tests/autograd/schema/called.h"

namespace ramet::script {
namespace {

IValue list_of(std::vector<int64_t> list) { return list; }
bool same_tensor(const IValue& a, const Tensor& b) {
  return a.toTensor().scalar_type() == b.scalar_type() && equal(a.toTensor(), b);
}

TEST(OperatorTensors, ReadsPyTorchsNumbers) {
  const Tensor x = rand({2, 3});
  EXPECT_EQ(called("aten::to", {x, 7}).toTensor().scalar_type(), kDouble);
  EXPECT_EQ(called("aten::to", {x, Passing(15, "dtype")}).toTensor().scalar_type(), kBFloat16);
  EXPECT_EQ(
      called("aten::to", {x, Device(kCPU, 0), 4, false, false, IValue()}).toTensor().scalar_type(),
      kLong);
  EXPECT_EQ(called("aten::to", {x, "cpu"}).toTensor().device(), Device(kCPU, 0));
  EXPECT_EQ(called("aten::to", {x, ones({1}, TensorOptions(kInt))}).toTensor().scalar_type(), kInt);
  EXPECT_EQ(called("prim::dtype", {x}).toInt(), 6);
  EXPECT_EQ(called("prim::dtype", {x > 0}).toInt(), 11);
  EXPECT_THROW(called("aten::to", {x, 9}), Error);  // complex64
  const Tensor image = rand({1, 2, 3, 3});
  EXPECT_TRUE(called("aten::contiguous", {image, Passing(2, "memory_format")})
                  .toTensor()
                  .is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(called("aten::zeros", {list_of({2}), Passing(4, "dtype"), Passing("cpu", "device"),
                                   Passing(false, "pin_memory")})
                .toTensor()
                .scalar_type(),
            kLong);
  EXPECT_THROW(called("aten::zeros", {list_of({2}), Passing(1, "layout")}), Error);  // sparse
  EXPECT_EQ(called("aten::randint", {5, list_of({2})}).toTensor().scalar_type(), kLong);
}

TEST(OperatorTensors, MakesTensorsOfLists) {
  const auto made = [](const IValue& data) { return called("aten::tensor", {data}).toTensor(); };
  EXPECT_TRUE(same_tensor(made(list_of({1, 2})), tensor({1, 2})));
  EXPECT_TRUE(same_tensor(made(std::vector<double>{1.5}), tensor({1.5f})));
  EXPECT_TRUE(same_tensor(made(IValue(List<bool>{true, false})), tensor({true, false})));
  EXPECT_TRUE(same_tensor(made(2), tensor(2)));
  const IValue nested = IValue::GenericList{list_of({1, 2}), list_of({3, 4})};
  EXPECT_TRUE(same_tensor(made(nested), tensor({{1, 2}, {3, 4}})));
  EXPECT_EQ(made(List<int64_t>()).scalar_type(), kLong);
  EXPECT_EQ(made(List<bool>()).scalar_type(), kBool);
  EXPECT_EQ(made(List<double>()).scalar_type(), kFloat);
  EXPECT_EQ(called("aten::as_tensor", {List<int64_t>()}).toTensor().scalar_type(), kLong);
  const Tensor none = made(IValue::GenericList{IValue(List<bool>()), IValue(List<bool>())});
  EXPECT_EQ(none.scalar_type(), kBool);
  EXPECT_EQ(none.sizes(), IntArrayRef({2, 0}));
  EXPECT_EQ(called("aten::tensor", {nested, Passing(6, "dtype"), Passing(true, "requires_grad")})
                .toTensor()
                .requires_grad(),
            true);
  EXPECT_THROW(made(IValue(IValue::GenericList{list_of({1}), list_of({3, 4})})), Error);
  EXPECT_EQ(made(list_of({})).sizes(), IntArrayRef({0}));
  EXPECT_EQ(called("prim::NumToTensor", {3}).toTensor().scalar_type(), kLong);
  const Tensor x = rand({2});
  EXPECT_EQ(called("aten::as_tensor", {x}).toTensor().data_ptr(), x.data_ptr());
}

TEST(OperatorTensors, WritesInPlace) {
  Tensor x = ones({2, 2});
  EXPECT_EQ(called("aten::add_", {x, x, Passing(2, "alpha")}).toTensor().data_ptr(), x.data_ptr());
  EXPECT_TRUE(same_tensor(x, full({2, 2}, 3.0)));
  called("aten::copy_", {x, tensor({1.0f, 2.0f})});
  called("aten::relu_", {x});
  called("aten::index_put_",
         {x, IValue(IValue::GenericList{IValue(), tensor({0})}), full({}, 9.0)});
  EXPECT_TRUE(same_tensor(x, tensor({{9.0f, 2.0f}, {9.0f, 2.0f}})));
  EXPECT_TRUE(
      same_tensor(called("aten::index", {x, IValue(IValue::GenericList{IValue(), tensor({1})})}),
                  tensor({{2.0f}, {2.0f}})));
  const Tensor leaf = ones({1});
  EXPECT_TRUE(called("aten::requires_grad_", {leaf}).toTensor().requires_grad());
}

TEST(OperatorTensors, DividesAndRounds) {
  const Tensor x = tensor({-7, 7});
  EXPECT_TRUE(
      same_tensor(called("aten::div", {x, 2, Passing("floor", "rounding_mode")}), tensor({-4, 3})));
  EXPECT_TRUE(same_tensor(called("aten::floor_divide", {x, 2}), tensor({-4, 3})));
  EXPECT_TRUE(same_tensor(called("aten::rsub", {x, 1}), tensor({8, -6})));
  EXPECT_TRUE(same_tensor(called("aten::round", {tensor({1.26}), Passing(1, "decimals")}),
                          round(tensor({1.26}), 1)));
}

TEST(OperatorTensors, ReducesBySchemas) {
  const Tensor x = rand({3, 4}, TensorOptions(kDouble));
  const Tensor centred = x - x.mean(1, true);
  const Tensor expected = centred.square().sum(1) / 3;
  EXPECT_TRUE(allclose(called("aten::var", {x, list_of({1})}).toTensor(), expected));
  EXPECT_TRUE(allclose(called("aten::var", {x, 1, false}).toTensor(), expected * 0.75));
  EXPECT_TRUE(allclose(called("aten::std", {x, 1, Passing(0, "correction")}).toTensor(),
                       (expected * 0.75).sqrt()));
  const IValue both = called("aten::var_mean", {x, 1});
  EXPECT_TRUE(allclose(both.toTupleRef().elements()[1].toTensor(), x.mean(1)));
  const IValue best = called("aten::max", {x, 1});
  EXPECT_TRUE(same_tensor(best.toTupleRef().elements()[1], x.argmax(1)));
  EXPECT_TRUE(same_tensor(called("aten::max", {x, x + 1}), x + 1));
}

// Sequences of lengths 3, 2 and 1; 1.0 is the first sequence at time 0, 1.1 at time 1.
TEST(OperatorTensors, PacksSequences) {
  const Tensor x =
      tensor({{1.0f, 1.1f, 1.2f}, {2.0f, 2.1f, 0.0f}, {3.0f, 0.0f, 0.0f}}).unsqueeze(2);
  const Tensor expected = tensor({1.0f, 2.0f, 3.0f, 1.1f, 2.1f, 1.2f}).unsqueeze(1);
  for (const bool first : {true, false}) {
    const Tensor padded = first ? x : x.transpose(0, 1);
    const IValue packed = called("aten::_pack_padded_sequence", {padded, tensor({3, 2, 1}), first});
    const std::vector<IValue>& parts = packed.toTupleRef().elements();
    EXPECT_TRUE(same_tensor(parts[0], expected));
    EXPECT_TRUE(same_tensor(parts[1], tensor({3, 2, 1})));
    const IValue again = called("aten::_pad_packed_sequence",
                                {parts[0].toTensor(), parts[1].toTensor(), first, -1.0, 4});
    const Tensor back = again.toTupleRef().elements()[0].toTensor();
    const Tensor by_batch = first ? back : back.transpose(0, 1);
    EXPECT_EQ(by_batch.sizes(), IntArrayRef({3, 4, 1}));
    EXPECT_TRUE(equal(by_batch.narrow(1, 0, 3).squeeze(2).masked_fill(
                          by_batch.narrow(1, 0, 3).squeeze(2) < 0, 0.0),
                      x.squeeze(2)));
    EXPECT_EQ(by_batch[2][3][0].item<float>(), -1.0f);
    EXPECT_TRUE(same_tensor(again.toTupleRef().elements()[1], tensor({3, 2, 1})));
  }
  for (const Tensor& lengths :
       {tensor({2, 3, 1}), tensor({3, 2, 0}), tensor({4, 2, 1}), tensor({3, 2})})
    EXPECT_THROW(called("aten::_pack_padded_sequence", {x, lengths, true}), Error);
  EXPECT_THROW(called("aten::_pad_packed_sequence", {expected, tensor({3, 2}), true, 0.0, 0}),
               Error);
  for (const int64_t total : {int64_t{1} << 61, int64_t{1} << 62})
    EXPECT_THROW(
        called("aten::_pad_packed_sequence", {ones({4, 2}), tensor({4}), false, 0.0, total}),
        Error);
  EXPECT_THROW(called("aten::_pad_packed_sequence", {expected, tensor({3, 2, 1}), true, 0.0, 2}),
               Error);
}

// The fast path against attention written down, with and without weights and masks.
TEST(OperatorTensors, AttendsAsComposed) {
  manual_seed(3);
  const TensorOptions real(kDouble);
  const Tensor x = randn({2, 3, 4}, real), qkv = randn({12, 4}, real), qkv_bias = randn({12}, real);
  const Tensor weight = randn({4, 4}, real), bias = randn({4}, real);
  const auto heads = [](const Tensor& t) { return t.view({2, 3, 2, 2}).transpose(1, 2); };
  const std::vector<Tensor> parts = linear(x, qkv, qkv_bias).chunk(3, -1);
  const Tensor scores = matmul(heads(parts[0]), heads(parts[1]).transpose(2, 3)) / std::sqrt(2.0);
  const Tensor causal = triu(ones({3, 3}), 1).to(kBool);
  const Tensor padding = tensor({{false, false, true}, {false, false, false}});
  const struct {
    IValue mask, kind;
    Tensor hidden;
  } kMasks[] = {
      {IValue(), IValue(), zeros({1}, TensorOptions(kBool))},
      {IValue(causal), IValue(0), causal},
      {IValue(padding), IValue(1), padding.view({2, 1, 1, 3})},
      {IValue(full({3, 3}, -HUGE_VAL).masked_fill(logical_not(causal), 0.0)), IValue(0), causal}};
  for (const auto& m : kMasks) {
    const Tensor weights = softmax(scores.masked_fill(m.hidden, -HUGE_VAL), -1);
    const Tensor mixed = matmul(weights, heads(parts[2])).transpose(1, 2).reshape({2, 3, 4});
    const Tensor expected = linear(mixed, weight, bias);
    for (const bool need : {true, false}) {
      const IValue got = called("aten::_native_multi_head_attention",
                                {x, x, x, 4, 2, qkv, qkv_bias, weight, bias, Passing(m.mask), need,
                                 true, Passing(m.kind)});
      const std::vector<IValue>& made = got.toTupleRef().elements();
      EXPECT_TRUE(allclose(made[0].toTensor(), expected));
      EXPECT_EQ(made[1].toTensor().defined(), need);
      if (need) { EXPECT_TRUE(allclose(made[1].toTensor(), weights.mean(1))); }
    }
  }
  EXPECT_THROW(
      called("aten::_native_multi_head_attention", {x, x, x, 4, 3, qkv, qkv_bias, weight, bias}),
      Error);
}

TEST(OperatorTensors, EncodesAsComposed) {
  manual_seed(4);
  const TensorOptions real(kDouble);
  const Tensor x = randn({2, 3, 4}, real), qkv = randn({12, 4}, real), b12 = randn({12}, real);
  const Tensor w = randn({4, 4}, real), b = randn({4}, real), w1 = randn({8, 4}, real);
  const Tensor b8 = randn({8}, real), w2 = randn({4, 8}, real), scale = randn({4}, real);
  const auto attend = [&](const Tensor& t) {
    return called("aten::_native_multi_head_attention", {t, t, t, 4, 2, qkv, b12, w, b})
        .toTupleRef()
        .elements()[0]
        .toTensor();
  };
  const auto norm = [&](const Tensor& t) { return layer_norm(t, 4, scale, b, 1e-5); };
  const auto feed = [&](const Tensor& t) { return linear(relu(linear(t, w1, b8)), w2, b); };
  const auto layer = [&](bool norm_first) {
    return called("aten::_transformer_encoder_layer_fwd",
                  {x, 4, 2, qkv, b12, w, b, false, norm_first, 1e-5, scale, b, scale, b, w1, b8, w2,
                   b})
        .toTensor();
  };
  const Tensor after = norm(x + attend(x)), before = x + attend(norm(x));
  EXPECT_TRUE(allclose(layer(false), norm(after + feed(after))));
  EXPECT_TRUE(allclose(layer(true), before + feed(norm(before))));
}

TEST(OperatorTensors, RecordsHistory) {
  const Tensor x = tensor({2.0}).requires_grad_();
  const IValue y = called("aten::mul", {called("aten::mul", {x, x}).toTensor(), x});
  const IValue grads =
      called("aten::grad", {IValue(std::vector<Tensor>{y.toTensor()}),
                            IValue(std::vector<Tensor>{x}), IValue(), IValue(), true});
  EXPECT_EQ(grads.toListRef()[0].toTensor().item<double>(), 12.0);
  EXPECT_TRUE(called("aten::is_grad_enabled", {}).toBool());
  {
    const AutoGradMode keep(true);
    called("aten::set_grad_enabled", {false});
    EXPECT_FALSE(called("aten::mul", {x, x}).toTensor().requires_grad());
  }
  EXPECT_TRUE(called("aten::is_grad_enabled", {}).toBool());
}

TEST(OperatorTensors, DropsAndNormalises) {
  const Tensor x = rand({2, 4, 3});
  EXPECT_TRUE(same_tensor(called("aten::dropout", {x, 0.5, false}), x));
  EXPECT_EQ(called("aten::dropout", {x, 1.0, true}).toTensor().sum().item<float>(), 0.0f);
  const IValue normed = called("aten::batch_norm",
                               {x, IValue(), IValue(), IValue(), IValue(), true, 0.1, 1e-5, false});
  EXPECT_TRUE(allclose(normed.toTensor(), batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, true)));
  EXPECT_TRUE(allclose(
      called("aten::_weight_norm", {x, rand({2, 1, 1}).fill_(2.0), 0}).toTensor().norm(2, {1, 2}),
      full({2}, 2.0)));
}

}  // namespace
}  // namespace ramet::script
