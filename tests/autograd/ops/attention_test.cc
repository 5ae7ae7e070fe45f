// Attention as a public function. Values of many shapes: tests/kernels; on a GPU:
// tests/autograd/gpu.
#include "autograd/ops/layers/attention.h"

#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

using In = std::vector<Tensor>;

// ((i * step + 3) % 11 - 5) / 4
Tensor filled(IntArrayRef sizes, int64_t step) {
  Tensor t = zeros(sizes, kDouble);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data_ptr<double>()[i] = static_cast<double>((i * step + 3) % 11 - 5) / 4;
  return t;
}
struct Operands {
  Tensor q = filled({1, 2, 3, 4}, 3), k = filled({1, 2, 4, 4}, 5), v = filled({1, 2, 4, 4}, 7);
};
Tensor mask_of(std::initializer_list<double> bits) { return constant(bits).view({3, 4}).to(kBool); }

// A mask of numbers together with a scale: the scale is the query's.
TEST(Attention, MaskAndScale) {
  const Operands o;
  const Tensor mask = filled({3, 4}, 2);
  expect_values(scaled_dot_product_attention(o.q, o.k, o.v, mask, 0, false, 0.2),
                values(scaled_dot_product_attention(o.q.mul(0.4), o.k, o.v, mask)), 1e-13);
}

TEST(Attention, RowsThatSeeNothing) {
  const Operands o;
  const Tensor q = o.q.requires_grad_(),
               y = scaled_dot_product_attention(q, o.k, o.v,
                                                mask_of({0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1}));
  expect_values(y[0][0][0], {0, 0, 0, 0}, 0);
  expect_values(y[0][0][1], {0.179892772, 0.68342269, -0.31657731, -0.070107228}, 1e-8);
  y.sum().backward();
  expect_values(q.grad()[0][0][0], {0, 0, 0, 0}, 0);
}

TEST(Attention, FewerHeadsOfKeys) {
  const Operands o;
  const Tensor k = o.k.slice(1, 0, 1), v = o.v.slice(1, 0, 1);
  expect_values(scaled_dot_product_attention(o.q, k, v, {}, 0, false, {}, true),
                values(scaled_dot_product_attention(o.q, cat({k, k}, 1), cat({v, v}, 1))), 0);
  EXPECT_ERROR_TEXT(scaled_dot_product_attention(o.q, filled({1, 3, 4, 4}, 1),
                                                 filled({1, 3, 4, 4}, 1), {}, 0, false, {}, true),
                    "[scaled_dot_product_attention] enable_gqa: got key");
}

// Without the matrix of scores and with it: the same function.
TEST(Attention, BothWays) {
  for (bool causal : {false, true}) {
    const In in = {varied_leaf({2, 2, 70, 8}, 1), varied_leaf({2, 2, 66, 8}, 2),
                   varied_leaf({2, 2, 66, 8}, 3)};
    const Tensor seen =
        causal ? arange(66, kLong).le(arange(70, kLong).unsqueeze(1)) : ones({70, 66}, kBool);
    const Tensor fused = scaled_dot_product_attention(in[0], in[1], in[2], {}, 0, causal),
                 composed = scaled_dot_product_attention(in[0], in[1], in[2], seen),
                 g = varied(fused.sizes(), 4);
    expect_values(fused, values(composed), 1e-13);
    const In a = autograd::grad({fused}, in, {g}), b = autograd::grad({composed}, in, {g});
    for (size_t i = 0; i < 3; ++i) expect_values(a[i], values(b[i]), 1e-12);
  }
}

// The backward's memory has a place for each row of each head of each sample (under ASan: a place
// too few is a fault).
TEST(Attention, ManyHeads) {
  const Tensor q = filled({1, 1, 8, 4}, 3), k = filled({1, 1, 4, 4}, 5);
  const auto gradients = [](const Tensor& q, const Tensor& k) {
    const In in = {q.clone().requires_grad_(), k.clone().requires_grad_()};
    scaled_dot_product_attention(in[0], in[1], in[1]).sum().backward();
    return In{in[0].grad(), in[1].grad()};
  };
  const In one = gradients(q, k),
           all = gradients(q.repeat({512, 64, 1, 1}), k.repeat({512, 64, 1, 1}));
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(all[i].equal(one[i].expand_as(all[i]))) << i;
}

TEST(Attention, Strides) {  // [batch, rows, heads, columns], as a projection leaves them
  const Tensor packed = varied_leaf({2, 5, 3, 2, 4});
  const auto part = [&](int64_t i) { return packed.select(2, i).transpose(1, 2); };
  const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true),
               want = scaled_dot_product_attention(part(0).contiguous(), part(1).contiguous(),
                                                   part(2).contiguous(), {}, 0, true);
  expect_values(y, values(want), 0);
  const Tensor columns = varied({4, 6}).t(), rows = columns.contiguous();
  expect_values(scaled_dot_product_attention(columns, columns, columns),
                values(scaled_dot_product_attention(rows, rows, rows)), 0);
}

TEST(Attention, OnlyWhatIsAskedFor) {
  const Tensor q = varied({3, 4}), v = varied_leaf({5, 4}, 2), k = varied({5, 4}, 3);
  scaled_dot_product_attention(q, k, v).sum().backward();
  EXPECT_FALSE(q.grad().defined() || k.grad().defined());
  EXPECT_EQ(scaled_dot_product_attention(q, k, v).grad_fn()->name(),
            "ScaledDotProductAttentionBackward0");
  // d/dv of the sum: each key's probabilities.
  expect_values(v.grad().select(1, 0), values(softmax(q.matmul(k.t()).mul(0.5), 1).sum(0)), 1e-13);
}

TEST(Attention, Dropout) {
  const Tensor q = varied({64, 8}), k = varied({64, 8}, 2), v = ones({64, 8}, kDouble);
  manual_seed(3);
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.25);
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.1);
  EXPECT_GT(y.std().item<double>(), 0.01);
  expect_values(scaled_dot_product_attention(q, k, v, {}, 1), std::vector<double>(512, 0), 0);
}

TEST(Attention, Errors) {
  const Operands o;
  const Tensor bits = mask_of({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  const auto expect = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = error_of(f);
    expect_part(text, "[scaled_dot_product_attention] " + part);
  };
  const auto f = [](const Tensor& q, const Tensor& k, const Tensor& v,
                    const std::optional<Tensor>& mask = {}, double p = 0, bool causal = false) {
    return [=] { scaled_dot_product_attention(q, k, v, mask, p, causal); };
  };
  expect(f(o.q.to(kFloat), o.k, o.v),
         "Expected query, key, and value to have the same dtype, but got query.dtype: ");
  expect(f(o.q[0][0][0], o.k, o.v),
         "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: 1 "
         "key.dim: 4 and value.dim: 4 instead.");
  expect(f(o.q, o.k, o.v, bits, 0, true),
         "Explicit attn_mask should not be set when is_causal=True");
  expect(f(o.q, o.k, o.v, bits.to(kLong)),
         "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
         "attn_mask.dtype: ");
  expect(f(o.q, o.k, o.v, {}, 1.5), "dropout probability has to be between 0 and 1, but got 1.5");
  expect(f(o.q, o.k.slice(-1, 0, 3), o.v), "key: got ");
  expect(f(o.q, o.k, o.v.slice(-2, 0, 3)), "value: got ");
  expect(f(o.q.to(kLong), o.k.to(kLong), o.v.to(kLong)), "not implemented for ");
  expect(f(Tensor(), o.k, o.v), "undefined tensor");
}

}  // namespace
}  // namespace ramet
