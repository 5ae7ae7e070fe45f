// Attention of query, key and value in one tensor, against the function of three.
#include "autograd/ops/layers/packed_attention.h"

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "kernels/matrix/attention.h"
#include "runtime/base/thread_pool.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/derivatives.h"

namespace ramet {
namespace {

Tensor attention_of_parts(const Tensor& qkv, bool causal = false, double dropout_p = 0,
                          std::optional<double> scale = {}) {
  const auto part = [&](int64_t i) { return qkv.select(2, i).transpose(1, 2); };
  return scaled_dot_product_attention(part(0), part(1), part(2), {}, dropout_p, causal, scale)
      .transpose(1, 2);
}
// The values, and the gradient of qkv's memory from a fixed one.
template <class F>
std::pair<std::vector<double>, std::vector<double>> with_gradient(const Tensor& qkv, const F& f) {
  const Tensor leaf = qkv.detach().requires_grad_(), y = f(leaf);
  y.backward(varied(y.sizes(), 9).to(y.scalar_type()));
  return {values(y.detach()), values(leaf.grad())};
}

TEST(PackedAttention, HasTheBitsOfThreeTensors) {
  for (ScalarType t : {kDouble, kFloat, kHalf, kBFloat16})
    for (bool causal : {false, true})
      for (int64_t columns : {1, 8, 130}) {
        const Tensor qkv = varied({2, 70, 3, 2, columns}).to(t);
        EXPECT_EQ(with_gradient(qkv,
                                [&](const Tensor& x) {
                                  return packed_scaled_dot_product_attention(x, causal, 0, 0.3);
                                }),
                  with_gradient(
                      qkv, [&](const Tensor& x) { return attention_of_parts(x, causal, 0, 0.3); }))
            << name_of(t) << " " << columns << " " << causal;
      }
}

TEST(PackedAttention, Derivatives) {
  for (bool causal : {false, true})
    expect_derivatives(OF_X(packed_scaled_dot_product_attention(x[0], causal)),
                       {varied_leaf({2, 3, 3, 2, 4})});
}

// A result whose columns lie together, whatever the strides of qkv and of its gradient.
TEST(PackedAttention, Strides) {
  const Tensor parts = varied({3, 2, 5, 6, 4});  // part, head, batch, row, column
  for (bool adjacent : {true, false}) {
    const Tensor qkv = (adjacent ? parts : parts.transpose(3, 4).contiguous().transpose(3, 4))
                           .permute({2, 3, 0, 1, 4}),
                 y = packed_scaled_dot_product_attention(qkv);
    EXPECT_TRUE(y.is_contiguous());
    expect_values(y, values(attention_of_parts(qkv.contiguous())), 0);
  }
  const Tensor a = varied_leaf({2, 5, 3, 2, 4}), b = a.detach().requires_grad_();
  packed_scaled_dot_product_attention(a).transpose(1, 2).square().sum().backward();
  attention_of_parts(b).transpose(1, 2).square().sum().backward();
  expect_values(a.grad(), values(b.grad()), 1e-14);
  packed_scaled_dot_product_attention(a).sum().backward();  // an expanded gradient
  attention_of_parts(b).sum().backward();
  expect_values(a.grad(), values(b.grad()), 1e-14);
}

TEST(PackedAttention, ViewsTheNextProjectionsInput) {
  const Tensor y = packed_scaled_dot_product_attention(varied({2, 5, 3, 2, 4})),
               flat = y.flatten(2);
  EXPECT_EQ(flat.sizes().vec(), (std::vector<int64_t>{2, 5, 8}));
  EXPECT_EQ(flat.data_ptr(), y.data_ptr());
}

// Slices would add two tensors of zeros of qkv's size, and copies.
TEST(PackedAttention, HasOneGradient) {
  const Tensor qkv = varied({8, 256, 3, 8, 32}).to(kFloat).requires_grad_(),
               g = ones({8, 256, 8, 32});
  const int64_t packed = static_cast<int64_t>(qkv.nbytes()),
                work = kernels::attention_workspace(kFloat, 8 * 8 * 256, 32, true, true,
                                                    max_parallel_slots());
  reset_peak_memory_stats(kCPU);
  const int64_t before = memory_stats(kCPU).current;
  packed_scaled_dot_product_attention(qkv, true).backward(g);
  EXPECT_LT(memory_stats(kCPU).peak - before, packed + packed / 3 + work + (int64_t{1} << 18));
}

TEST(PackedAttention, Dropout) {
  const Tensor qkv = varied({2, 6, 3, 2, 4});
  const auto run = [&](const auto& f) {
    manual_seed(3);
    return with_gradient(qkv, f);
  };
  EXPECT_EQ(run([](const Tensor& x) { return packed_scaled_dot_product_attention(x, true, 0.5); }),
            run([](const Tensor& x) { return attention_of_parts(x, true, 0.5); }));
  expect_values(packed_scaled_dot_product_attention(qkv, false, 1), std::vector<double>(96, 0), 0);
}

TEST(PackedAttention, OfNothing) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {0, 3, 3, 2, 4}, {2, 0, 3, 2, 4}, {2, 3, 3, 0, 4}, {2, 3, 3, 2, 0}}) {
    const Tensor qkv = zeros(sizes).requires_grad_(), y = packed_scaled_dot_product_attention(qkv);
    EXPECT_EQ(y.sizes().vec(), (std::vector<int64_t>{sizes[0], sizes[1], sizes[3], sizes[4]}));
    y.sum().backward();
    EXPECT_EQ(qkv.grad().sizes().vec(), sizes);
  }
}

TEST(PackedAttention, Autocast) {
  const Tensor qkv = varied({2, 5, 3, 2, 4}).to(kFloat).requires_grad_();
  Tensor y;
  {
    const AutocastGuard on(kCPU, kBFloat16);
    y = packed_scaled_dot_product_attention(qkv);
  }
  EXPECT_EQ(y.scalar_type(), kBFloat16);
  expect_values(y.detach(), values(packed_scaled_dot_product_attention(qkv.detach().to(kBFloat16))),
                0);
  y.sum().backward();
  EXPECT_EQ(qkv.grad().scalar_type(), kFloat);
}

TEST(PackedAttention, Errors) {
  const auto expect = [](const std::function<void()>& f, const std::string& part) {
    expect_part(error_of(f), "[packed_scaled_dot_product_attention] " + part);
  };
  const auto call = [](const Tensor& qkv, double p = 0) {
    return [=] { packed_scaled_dot_product_attention(qkv, false, p); };
  };
  expect(call(zeros({2, 5, 2, 2, 4})), "qkv: got ");
  expect(call(zeros({2, 5, 3, 4})), "qkv: got ");
  expect(call(zeros({2, 5, 3, 2, 4}, kLong)), "not implemented for 'Long'");
  expect(call(zeros({2, 5, 3, 2, 4}), 1.5), "dropout probability has to be between 0 and 1");
  expect(call(Tensor()), "undefined tensor: got ");
}

}  // namespace
}  // namespace ramet
