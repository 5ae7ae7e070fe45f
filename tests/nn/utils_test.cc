#include <cstdio>
#include <limits>
#include <type_traits>

#include "autograd/ops/factory.h"
#include "nn/layers/linear.h"
#include "nn/module/flat_store.h"
#include "nn/utils/clip_grad.h"
#include "nn/utils/convert_parameters.h"
#include "runtime/observer.h"
#include "tests/nn/support.h"

namespace ramet::nn::utils {
namespace {

std::vector<Tensor> with_gradients() {
  std::vector<Tensor> p{zeros({3}).requires_grad_(), zeros({4}).requires_grad_(),
                        zeros({2}).requires_grad_()};
  p[0].mutable_grad() = sines(3).to(kFloat);
  p[1].mutable_grad() = sines(4, 0.2, 0.7).to(kFloat);
  return p;
}

TEST(ClipGrad, NormAsInPyTorch) {
  std::vector<Tensor> p = with_gradients();
  EXPECT_NEAR(clip_grad_norm_(p, 0.5), 1.8817614316940308, 1e-6);
  expect_values(p[0].grad(), {0.02916901186108589, 0.1226985901594162, 0.19962148368358612}, 1e-6);
  expect_values(p[1].grad(),
                {0.17117401957511902, 0.20813651382923126, 0.23680123686790466, 0.2560254633426666},
                1e-6);
  EXPECT_FALSE(p[2].grad().defined());
  EXPECT_NEAR(clip_grad_norm_(p, 10), 0.5, 1e-6) << "a small norm is left alone";
  EXPECT_NEAR(clip_grad_norm_(with_gradients(), 1, 1.0), 4.605147838592529, 1e-6);
  EXPECT_NEAR(clip_grad_norm_(with_gradients(), 1, 3.0), 1.4218173027038574, 1e-6);
  EXPECT_NEAR(clip_grad_norm_(with_gradients(), 1, std::numeric_limits<double>::infinity()),
              0.9635581970214844, 1e-6);
  EXPECT_EQ(clip_grad_norm_(zeros({3}).requires_grad_(), 1.0), 0);
}

// Programs print it as they print any number.
TEST(ClipGrad, TheNormIsANumber) {
  static_assert(std::is_same_v<decltype(clip_grad_norm_(Tensor(), 1)), double>);
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", clip_grad_norm_(with_gradients(), 0.5));
  EXPECT_STREQ(text, "1.881761");
}

// All gradients of a dtype are scaled by one kernel call, wherever they lie, with the same result.
TEST(ClipGrad, GradientsAreScaledAtOnce) {
  const auto clipped = [](bool flat, int& calls) {
    std::vector<Tensor> p;
    for (int64_t n : {3, 70, 5}) p.push_back(zeros({n}).requires_grad_());
    p.push_back(zeros({4}, kBFloat16).requires_grad_());
    if (flat) flatten_parameters(p);
    Tensor loss = zeros({});
    for (const Tensor& t : p) loss = loss + (t.to(kFloat) * sines(t.numel()).to(kFloat)).sum();
    loss.backward();
    Observer count;
    count.kernel_begin = [&calls](const KernelCall& c) {
      calls += std::string(c.name) == "limit_norm";
    };
    const uint64_t number = add_observer(count);
    clip_grad_norm_(p, 0.25);
    remove_observer(number);
    std::vector<Tensor> grads;
    for (const Tensor& t : p) grads.push_back(t.grad());
    return grads;
  };
  int flat_calls = 0, calls = 0;
  const std::vector<Tensor> flat = clipped(true, flat_calls), loose = clipped(false, calls);
  EXPECT_EQ(flat_calls, 2) << "the float ones, the 16-bit one";
  EXPECT_EQ(calls, 2);
  for (size_t i = 0; i < flat.size(); ++i) EXPECT_TRUE(flat[i].equal(loose[i])) << i;
}

TEST(ClipGrad, UndefinedTensorsAreRefused) {
  EXPECT_THROW(parameters_to_vector({ones({2}), Tensor()}), Error);
  EXPECT_THROW(vector_to_parameters(Tensor(), {ones({2})}), Error);
  EXPECT_THROW(get_total_norm({Tensor()}), Error);
}

TEST(ClipGrad, NonFinite) {
  std::vector<Tensor> p = with_gradients();
  p[0].grad().select(0, 1).fill_(std::numeric_limits<double>::infinity());
  EXPECT_ERROR_TEXT(clip_grad_norm_(p, 1, 2, true),
                    "for gradients from `parameters` is non-finite");
  EXPECT_TRUE(std::isinf(clip_grad_norm_(p, 1)));
  EXPECT_TRUE(std::isnan(values(p[0].grad())[1]));
  EXPECT_EQ(values(p[1].grad())[0], 0);
}

TEST(ClipGrad, Values) {
  std::vector<Tensor> p = with_gradients();
  clip_grad_value_(p, 0.5);
  expect_values(p[0].grad(), {std::sin(0.11), std::sin(0.48), 0.5}, 1e-6);
}

TEST(ConvertParameters, ThereAndBack) {
  Linear a(2, 3), b(2, 3);
  const Tensor vector = parameters_to_vector(a->parameters());
  EXPECT_EQ(vector.sizes(), IntArrayRef({9}));
  EXPECT_TRUE(vector.requires_grad());
  vector_to_parameters(vector.detach(), b->parameters());
  EXPECT_TRUE(same_bits(a->weight, b->weight) && same_bits(a->bias, b->bias));
  EXPECT_TRUE(b->weight.requires_grad());
  EXPECT_ERROR_TEXT(vector_to_parameters(ones({8}), b->parameters()), "expected 9 elements");
}

}  // namespace
}  // namespace ramet::nn::utils
