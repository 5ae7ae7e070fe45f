// Both bodies of attention against the whole matrix of scores in float64.
#include "autograd/ops/layers/attention.h"

#include "autograd/autograd.h"
#include "autograd/ops/layers/packed_attention.h"
#include "autograd/ops/shape/view.h"
#include "tests/autograd/gpu/attention_check.h"
#include "tests/share.h"

namespace ramet::kernels {
namespace {

TEST(AttentionOnGpu, Plain) {
  for (bool causal : {false, true}) {
    check({1, 1, 1, 1, 1, kFloat, causal});
    check({2, 2, 35, 70, 24, kFloat, causal});
    check({1, 1, 70, 33, 64, kFloat, causal});
    check({1, 1, 33, 40, 128, kFloat, causal});
    check({1, 1, 20, 33, 127, kDouble, causal});
    check({1, 2, 20, 33, 17, kBFloat16, causal});  // columns that tensor cores do not take
    check({1, 1, 20, 33, 16, kHalf, causal, AttentionBody::kPlain});
  }
  check({1, 2, 5, 0, 8, kFloat});
}

TEST(AttentionOnGpu, TensorCores) {
  for (ScalarType t : {kHalf, kBFloat16})
    for (bool causal : {false, true}) {
      check({1, 1, 1, 1, 8, t, causal, AttentionBody::kTensorCores});
      check({2, 2, 70, 130, 24, t, causal, AttentionBody::kTensorCores});
      check({1, 1, 130, 70, 64, t, causal, AttentionBody::kTensorCores});
      check({1, 1, 66, 35, 128, t, causal, AttentionBody::kTensorCores});
    }
  check({1, 2, 5, 0, 8, kBFloat16, false, AttentionBody::kTensorCores});
}

// Which body ran is seen by the bits: tensor cores round probabilities to 16 bits.
TEST(AttentionOnGpu, ChoosesTheBody) {
  const auto by = [](Case c, AttentionBody body) {
    c.body = body;
    return check(c);
  };
  for (ScalarType t : {kHalf, kBFloat16}) {
    const Case c{1, 2, 70, 70, 16, t, true};
    const auto chosen = by(c, AttentionBody::kAuto);
    EXPECT_EQ(chosen, by(c, AttentionBody::kTensorCores));
    const auto plain = by(c, AttentionBody::kPlain);
    for (size_t i = 0; i < chosen.size(); ++i) EXPECT_NE(chosen[i], plain[i]) << i;
  }
  const Case small{1, 1, 20, 33, 16, kHalf, false, AttentionBody::kAuto, 1e-42};
  EXPECT_EQ(by(small, AttentionBody::kAuto), by(small, AttentionBody::kPlain));
}

// Tiles that all rows use whole, the two stages in turn, whole warps that use nothing of a tile.
TEST(AttentionOnGpu, ManyTilesOnTensorCores) {
  for (bool causal : {false, true})
    check({1, 1, 200, 330, 64, kBFloat16, causal, AttentionBody::kTensorCores});
  check({1, 1, 330, 200, 32, kHalf, true, AttentionBody::kTensorCores});
  check({1, 1, 130, 130, 128, kHalf, true, AttentionBody::kTensorCores});
}

TEST(AttentionOnGpu, AnyScale) {
  for (bool causal : {false, true}) {
    check({1, 1, 70, 70, 16, kHalf, causal, AttentionBody::kTensorCores, -0.7});
    check({1, 1, 20, 33, 16, kHalf, causal, AttentionBody::kAuto, 0.0});
    check({1, 1, 20, 33, 16, kHalf, causal, AttentionBody::kAuto, 1e-42});
  }
}

// Scores far from each other. The remaining weight of a row's other keys must not depend on the
// tile that they are in. A key with scores of -inf counts for nothing.
TEST(AttentionOnGpu, LargeScores) {
  constexpr int64_t kKeys = 150, kRows = 3, kColumns = 8;
  const auto rows = [](int64_t n) { return zeros({1, 1, n, kColumns}, TensorOptions(kDouble)); };
  Tensor q = rows(kRows), k = rows(kKeys), v = rows(kKeys);
  double* keys = k.data_ptr<double>();
  for (int64_t i = 0; i < kRows; ++i) q.data_ptr<double>()[i * kColumns] = i == 0 ? 8 : -8;
  q.data_ptr<double>()[2 * kColumns + 1] = INFINITY;
  for (int64_t j = 0; j < kKeys; ++j) {
    keys[j * kColumns] = static_cast<double>(j);  // scores to 1192
    keys[j * kColumns + 1] = -1;
    v.data_ptr<double>()[j * kColumns] = static_cast<double>(j % 7);
  }
  for (ScalarType t : {kHalf, kBFloat16}) {
    const Tensor o = Tensor(TensorBase::empty({1, 1, kRows, kColumns}, t, kGpu)),
                 log_sum(TensorBase::empty(kRows, kFloat, kGpu));
    const Tensor gq = q.to(t).to(kGpu), gk = k.to(t).to(kGpu), gv = v.to(t).to(kGpu);
    attention_forward(gq.stream(),
                      {dense(gq), dense(gk), dense(gv), dense(o), log_sum.data_ptr(), nullptr, 1, 1,
                       kRows, kKeys, kColumns, 1.0, t, false, AttentionBody::kTensorCores});
    const std::vector<double> got = numbers(o), sums = numbers(log_sum);
    EXPECT_NEAR(got[0], (kKeys - 1) % 7, 0.01);  // the last key alone: the next one has e^-8
    EXPECT_NEAR(sums[0], 8 * (kKeys - 1), 0.001 * 8 * kKeys);
    EXPECT_NEAR(got[kColumns], 0, 0.01);  // the first
    EXPECT_NEAR(sums[1], 0, 0.001);
    EXPECT_EQ(got[2 * kColumns], 0);  // none
    EXPECT_EQ(sums[2], -INFINITY);
  }
}

// All of a row's scores are far below 0, so that what a tile has beyond the last key, of zeros,
// would have an infinite probability.
TEST(AttentionOnGpu, NothingBeyondTheLastKey) {
  constexpr int64_t kKeys = 150, kRows = 3, kColumns = 8;
  Tensor q = zeros({1, 1, kRows, kColumns}, TensorOptions(kDouble)),
         k = zeros({1, 1, kKeys, kColumns}, TensorOptions(kDouble));
  for (int64_t i = 0; i < kRows; ++i) q.data_ptr<double>()[i * kColumns] = 8;
  for (int64_t j = 0; j < kKeys; ++j)
    k.data_ptr<double>()[j * kColumns] = -20 - static_cast<double>(j);
  for (ScalarType t : {kHalf, kBFloat16}) {
    const Tensor gq = q.to(t).to(kGpu), gk = k.to(t).to(kGpu),
                 ones = gk.to(kHost).mul(0).add(1).to(kGpu),
                 grad = gq.to(kHost).mul(0).add(1).to(kGpu);
    const auto like = [&](const Tensor& x) {
      return Tensor(TensorBase::empty(x.sizes(), t, kGpu));
    };
    const Tensor o = like(gq), dq = like(gq), dk = like(gk), dv = like(gk),
                 log_sum(TensorBase::empty(kRows, kFloat, kGpu)),
                 workspace(TensorBase::empty(
                     attention_workspace(t, kRows, kColumns, true, false, 1), kByte, kGpu));
    attention_forward(gq.stream(), {dense(gq), dense(gk), dense(ones), dense(o), log_sum.data_ptr(),
                                    workspace.data_ptr(), 1, 1, kRows, kKeys, kColumns, 1.0, t,
                                    false, AttentionBody::kTensorCores});
    attention_backward(gq.stream(),
                       {dense(gq), dense(gk), dense(ones), dense(o), dense(grad), dense(dq),
                        dense(dk), dense(dv), log_sum.data_ptr(), workspace.data_ptr(), 1, 1, kRows,
                        kKeys, kColumns, 1.0, t, false, AttentionBody::kTensorCores});
    EXPECT_NEAR(numbers(log_sum)[0], -160, 0.01);
    for (double x : numbers(o)) EXPECT_NEAR(x, 1, 0.01);
    for (double x : numbers(dq)) EXPECT_NEAR(x, 0, 0.01);
    for (double x : numbers(dk)) EXPECT_NEAR(x, 0, 0.01);
    const std::vector<double> of_v = numbers(dv);
    for (size_t i = 0; i < of_v.size(); ++i)  // the first key has everything
      EXPECT_NEAR(of_v[i], i < kColumns ? kRows : 0, 0.02) << i;
  }
}

TEST(AttentionOnGpu, AsPublicFunction) {  // gradients as on the CPU, for any strides
  const Tensor packed = drawn({2, 20, 3, 2, 16}, kFloat, 7);
  const auto step = [](const Tensor& leaf) {
    const auto part = [&](int64_t i) { return leaf.select(2, i).transpose(1, 2); };
    const Tensor y = scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, true);
    y.square().sum().backward();
    return std::vector<Tensor>{y, leaf.grad()};
  };
  const std::vector<Tensor> host = step(packed.clone().requires_grad_()),
                            gpu = step(packed.to(kGpu).requires_grad_());
  for (size_t i = 0; i < 2; ++i) expect_near(gpu[i], numbers(host[i]), 1e-5, "step");
}

// The public function of one packed tensor: the bits of the one with three, whose results and
// gradients lie elsewhere. Columns for tensor cores and not.
TEST(AttentionOnGpu, Packed) {
  const bool few = testing::one_repeat_in() > 1;
  for (ScalarType t : {kFloat, kDouble, kHalf, kBFloat16}) {
    // Their kernels are those of kFloat and kBFloat16.
    if (few && (t == kDouble || t == kHalf)) continue;
    for (int64_t columns : {16, 17})
      for (bool causal : {false, true}) {
        const Tensor qkv = drawn({2, 70, 3, 2, columns}, t, 1),
                     g = drawn({2, 70, 2, columns}, t, 2).to(kGpu);
        const auto run = [&](bool packed) {
          const Tensor leaf = qkv.to(kGpu).detach().requires_grad_();
          const auto part = [&](int64_t i) { return leaf.select(2, i).transpose(1, 2); };
          const Tensor y =
              packed ? packed_scaled_dot_product_attention(leaf, causal)
                     : scaled_dot_product_attention(part(0), part(1), part(2), {}, 0, causal)
                           .transpose(1, 2);
          y.backward(g);
          return std::pair(numbers(y.detach()), numbers(leaf.grad()));
        };
        EXPECT_EQ(run(true), run(false)) << name_of(t) << " " << columns << " " << causal;
        if (!few) { EXPECT_EQ(run(true), run(true)) << "not the same again"; }
      }
  }
}

}  // namespace
}  // namespace ramet::kernels
