#include <cstdio>
#include <limits>
#include <sstream>
#include <type_traits>

#include "autograd/grad_mode.h"
#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/module/flat_store.h"
#include "nn/module/sequential.h"
#include "nn/serialize/save.h"
#include "nn/utils/clip_grad.h"
#include "nn/utils/convert_parameters.h"
#include "nn/utils/weight_norm.h"
#include "runtime/observe/observer.h"
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

// ---- weight_norm, spectral_norm -----------------------------------------------------------------

double weighed(const Tensor& t) {
  return (t * sines(t.numel(), .7, std::acos(0.)).view(t.sizes())).sum().item<double>();
}
template <class M> M filled(M module) {
  module->to(kDouble);
  const NoGradGuard off;
  double start = .2;
  for (const Tensor& p : {module->weight, module->bias})
    p.copy_(sines(p.numel(), 1.1, start++).view(p.sizes()));
  return module;
}
std::string keys(const Module& module) {
  std::string all;
  for (const auto& item : module.named_parameters()) all += item.key() + " ";
  for (const auto& item : module.named_buffers()) all += item.key() + " ";
  return all;
}
Tensor part(const Module& module, const char* name) {
  const Tensor* parameter = module.own_parameters().find(name);
  return parameter ? *parameter : module.own_buffers()[name];
}
void expect_weighed(const std::vector<Tensor>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(weighed(got[i]), want[i], 1e-12) << "at " << i;
}
Tensor rows() { return sines(8).view({2, 4}); }
Tensor images() { return sines(12).view({2, 2, 3}); }

TEST(WeightNorm, ComputesWhatPyTorchDoes) {
  const auto expect = [](auto m, const Tensor& x, IntArrayRef sizes,
                         const std::vector<double>& want) {
    EXPECT_EQ(keys(*m), "bias weight_g weight_v ");
    EXPECT_EQ(part(*m, "weight_g").sizes(), sizes);
    {
      const NoGradGuard off;
      part(*m, "weight_g").mul_(1.5);
    }
    const Tensor y = m(x);
    (y * sines(y.numel(), .7, std::acos(0.)).view(y.sizes())).sum().backward();
    expect_weighed(
        {y.detach(), part(*m, "weight_g").grad(), part(*m, "weight_v").grad(), m->bias.grad()},
        want);
  };
  expect(weight_norm(filled(Linear(4, 3))), rows(), {3, 1},
         {3.58549442023641, 0.707399727578676, -2.19774363153372, 0.229208032981966});
  expect(weight_norm(filled(Linear(4, 3)), "weight", 1), rows(), {1, 4},
         {3.58549442023641, 0.866883235009427, -2.50428016110008, 0.229208032981966});
  for (const std::optional<int64_t> dim : {std::optional<int64_t>(), std::optional<int64_t>(-1)})
    expect(weight_norm(filled(Linear(4, 3)), "weight", dim), rows(), {},
           {3.58549442023641, 0.856939257981217, -2.6982328221039, 0.229208032981966});
  expect(weight_norm(filled(Conv1d(2, 3, 2)), "weight", 1), images(), {1, 2, 1},
         {5.04846046380154, 0.793218951841702, -4.94978844659614, 2.39777716966831});
}

// Two calls in training and one in evaluation, then their gradient.
TEST(SpectralNorm, ComputesWhatPyTorchDoes) {
  const auto expect = [](auto m, const Tensor& x, const std::vector<double>& want) {
    EXPECT_EQ(keys(*m), "bias weight_orig weight_u weight_v ");
    double start = .3;
    for (const char* name : {"weight_u", "weight_v"}) {
      const Tensor t = part(*m, name);
      EXPECT_NEAR(t.norm().template item<double>(), 1, 1e-6);
      const Tensor values = sines(t.numel(), .5, start);
      t.copy_(values / values.norm());
      start = .9;
    }
    const Tensor y = m(x), z = m(x);
    m->eval();
    const Tensor e = m(x);
    ((y + z + e) * sines(y.numel(), .7, std::acos(0.)).view(y.sizes())).sum().backward();
    expect_weighed({y.detach(), z.detach(), e.detach(), part(*m, "weight_orig").grad(),
                    m->bias.grad(), part(*m, "weight_u"), part(*m, "weight_v")},
                   want);
  };
  expect(spectral_norm(filled(Linear(4, 3))), rows(),
         {1.76209123217736, 1.75845644863301, 1.75845644863301, -4.68030791115468,
          0.687624098945899, -0.224778821157697, -1.16733309806903});
  expect(spectral_norm(filled(Linear(4, 3)), "weight", 2, 1e-12, 1), rows(),
         {1.749297433045, 1.73925303497586, 1.73925303497586, -0.717026572043821, 0.687624098945899,
          -0.229597361584954, 0.693864726322252});
  expect(spectral_norm(filled(Conv1d(2, 3, 2))), images(),
         {3.63984999357088, 3.6370420604757, 3.6370420604757, -7.46934678153228, 7.19333150900492,
          -0.224778821157697, -1.16733309806903});
}

// Columns count as outputs of a transposed convolution, also in a class of another name.
struct GrowingImpl : ConvTranspose2dImpl {
  using ConvTranspose2dImpl::ConvTranspose2dImpl;
};
RAMET_MODULE(Growing);
TEST(SpectralNorm, TransposedConvolutionsByTheirSecondDimension) {
  const ConvTranspose2d m = spectral_norm(ConvTranspose2d(2, 5, 3));
  EXPECT_EQ(m->named_buffers()["weight_u"].sizes(), IntArrayRef({5}));
  const Growing own = spectral_norm(Growing(2, 5, 3));
  EXPECT_EQ(own->named_buffers()["weight_u"].sizes(), IntArrayRef({5}));
  EXPECT_EQ(spectral_norm(Conv2d(2, 5, 3))->named_buffers()["weight_u"].sizes(), IntArrayRef({5}));
}

TEST(WeightNorm, ClonesFilesAndSequentials) {
  const Linear m = spectral_norm(weight_norm(filled(Linear(4, 3)), "weight", 1), "bias");
  Sequential net(m);
  const auto copy = std::dynamic_pointer_cast<SequentialImpl>(net->clone());
  EXPECT_EQ(keys(*copy), keys(*net));
  net->eval();
  copy->eval();
  const Tensor before = net->forward(rows());
  EXPECT_TRUE(same_bits(copy->forward(rows()), before));
  std::stringstream file;
  save(net, file);
  Sequential other(spectral_norm(weight_norm(filled(Linear(4, 3)), "weight", 1), "bias"));
  load(other, file);
  other->eval();
  EXPECT_TRUE(same_bits(other->forward(rows()), before));
  {
    const NoGradGuard off;
    for (const Tensor& p : copy->parameters()) p.zero_();
  }
  EXPECT_TRUE(same_bits(net->forward(rows()), before));
}

TEST(WeightNorm, GoesAndComesBack) {
  Linear m = filled(Linear(4, 3));
  m->weight.set_requires_grad(false);
  const Tensor before = m(rows());
  weight_norm(m);
  EXPECT_FALSE(part(*m, "weight_g").requires_grad());
  expect_values(m(rows()), values(before));
  // No old weight is used by what runs no hooks.
  EXPECT_FALSE(m->weight.defined());
  EXPECT_THROW(m->forward(rows()), Error);
  remove_weight_norm(m);
  EXPECT_EQ(keys(*m), "bias weight ");
  EXPECT_FALSE(m->weight.requires_grad());
  EXPECT_TRUE(m->weight.is_same(part(*m, "weight")));
  expect_values(m->forward(rows()), values(before));
  EXPECT_FALSE(m->forward_hooks());

  spectral_norm(m);
  const Tensor after = m(rows());
  remove_spectral_norm(m);
  expect_values(m->forward(rows()), values(after));
}

TEST(SpectralNorm, IsCaptured) {
  Linear m = spectral_norm(filled(Linear(4, 3))), twin(nullptr);
  twin = Linear(std::dynamic_pointer_cast<LinearImpl>(m->clone()));
  Captured step([&](const Tensor& x) { return m(x); });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = sines(8, .37, .1 * i).view({2, 4});
    EXPECT_TRUE(same_bits(step(x), twin(x))) << i;
  }
  EXPECT_TRUE(same_bits(part(*m, "weight_u"), part(*twin, "weight_u")));
  EXPECT_GE(step.counters().replays, 2u);
}

TEST(WeightNorm, RefusesWhatItCannotCompute) {
  Linear m(4, 3);
  EXPECT_ERROR_TEXT(weight_norm(m, "wieght"), "has no parameter 'wieght'");
  EXPECT_ERROR_TEXT(weight_norm(m, "weight", 2), "[weight_norm]");
  EXPECT_ERROR_TEXT(weight_norm(m, "weight", INT64_MIN), "[weight_norm]");
  EXPECT_ERROR_TEXT(spectral_norm(m, "weight", 1, 1e-12, INT64_MAX), "[spectral_norm]");
  EXPECT_ERROR_TEXT(spectral_norm(m, "weight", 0), "n_power_iterations=0");
  EXPECT_ERROR_TEXT(remove_weight_norm(m), "weight_norm of 'weight' not found");
  EXPECT_ERROR_TEXT(weight_norm(LSTM(2, 3), "weight_hh_l0"), "in a member of its own");
  struct Plain : Module {
    Plain() { w = register_parameter("w", ones({2})); }
    Tensor w;
  };
  EXPECT_ERROR_TEXT(weight_norm(std::make_shared<Plain>(), "w"), "in a member of its own");
  EXPECT_EQ(keys(*m), "weight bias ") << "nothing has changed";
  weight_norm(m);
  EXPECT_ERROR_TEXT(weight_norm(m), "Cannot register two weight_norm hooks");
  EXPECT_ERROR_TEXT(remove_spectral_norm(m), "spectral_norm of 'weight' not found");
  m->register_buffer("bias_v", ones({1}));
  EXPECT_ERROR_TEXT(weight_norm(m, "bias"), "already has a parameter or buffer 'bias_v'");
  EXPECT_EQ(keys(*m), "bias weight_g weight_v bias_v ");
  m->set_holds_shards(true);
  EXPECT_ERROR_TEXT(m(ones({1, 4})), "expected whole tensors");
}

}  // namespace
}  // namespace ramet::nn::utils
