// data_parallel: options, hooks, whole models, replicas made by hand.
#include <gtest/gtest.h>

#include "autograd/autograd.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/module/sequential.h"
#include "nn/utils/weight_norm.h"
#include "parallel/move/counters.h"
#include "runtime/devices/devices.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

TEST(DataParallel, StrictSource) {
  nn::BatchNorm1d m(2);
  DataParallelOptions options({d(0), d(1)});
  options.strict_source = true;
  EXPECT_ERROR_TEXT(DataParallel<nn::BatchNorm1d>(m, options),
                    "module must have its parameters and buffers on device " + d(0).str() +
                        " (device_ids[0]) but found one of them on device: cpu");
  m->to(d(0));
  m->running_mean.set_data(m->running_mean.to(d(1)));
  EXPECT_ERROR_TEXT(DataParallel<nn::BatchNorm1d>(m, options), "('running_mean')");
}

TEST(DataParallel, Imbalance) {
  EXPECT_EQ(imbalance_warning({{0, 100, 10}, {1, 75, 10}}), std::nullopt) << "strictly less";
  const auto memory = imbalance_warning({{0, 100, 10}, {1, 74, 1}, {2, 74, 10}, {3, 100, 10}});
  ASSERT_TRUE(memory);
  EXPECT_EQ(*memory,
            "There is an imbalance between your GPUs. You may want to exclude GPU 1 which has less "
            "than 75% of the memory or cores of GPU 0. "
            "You can do so by setting the device_ids argument to DataParallel, or by setting the "
            "CUDA_VISIBLE_DEVICES environment variable.");
  expect_part(imbalance_warning({{4, 100, 8}, {5, 100, 16}}).value(),
              "exclude GPU 4 which has less than 75% of the memory or cores of GPU 5");
  EXPECT_EQ(imbalance_warning({}), std::nullopt);
}

TEST(DataParallel, AlongDimensionOne) {
  Call m([](const Tensor& x) { return x * x; });
  const Tensor x = varied({3, 7}, 1);
  x.requires_grad_();
  const Tensor out = data_parallel(m, x, many(3), kHost, 1);
  EXPECT_EQ(values(out), values(x * x));
  out.sum().backward();
  expect_close(values(x.grad()), values(x.detach() * 2), 1e-6);
  clear_data_parallel_cache();
}

TEST(DataParallel, HooksRunOncePerReplica) {
  nn::Linear m(2, 2);
  std::atomic<int> pre{0}, post{0};
  m->register_forward_pre_hook(
      [&](nn::Module& module, std::vector<Tensor>&) { pre += module.is_replica() ? 1 : 100; });
  DataParallel<nn::Linear> dp(m, many(3));
  dp(varied({6, 2}, 1));
  m->register_forward_hook([&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& out) {
    ++post;
    out[0] = out[0] * 0;
  });
  const Tensor y = dp(varied({6, 2}, 1));
  EXPECT_EQ(pre, 6);
  EXPECT_EQ(post, 3);
  EXPECT_EQ(values(y), Values(12, 0));
}

TEST(DataParallel, ExplicitDetach) {
  nn::Linear m(2, 2);
  for (const auto& r : replicate(m, {kHost, d(0)}, /*detach=*/true)) {
    for (const Tensor& p : r->parameters()) {
      EXPECT_TRUE(p.is_leaf());
      EXPECT_FALSE(p.requires_grad());
    }
  }
  EXPECT_TRUE(m->weight.requires_grad());
}

TEST(DataParallel, TransparentWrapper) {
  nn::Linear m(2, 2);
  DataParallel<nn::Linear> dp(m, std::vector<Device>{});
  const Tensor x = varied({3, 2}, 1);
  EXPECT_EQ(values(dp(x)), values(m(x)));
  dp(x).sum().backward();
  EXPECT_TRUE(m->weight.grad().defined());
}

TEST(DataParallel, SourceOnHostWithBatchNorm) {
  SmallConv m(true);
  set_parameters(*m, 5);
  DataParallelOptions options(many(2));
  options.output_device = kHost;
  DataParallel<SmallConv> dp(m, options);
  const Tensor x = varied({8, 1, 6, 6}, 6);
  dp(x).sum().backward();
  EXPECT_EQ(m->conv->weight.grad().device(), kHost);
  EXPECT_EQ(values(m->norm->num_batches_tracked), Values{1});
  SmallConv alone(true);
  set_parameters(*alone, 5);
  alone(x);
  expect_close(values(m->norm->running_var), values(alone->norm->running_var), 1e-5);
}

TEST(DataParallel, ModuleWithoutParameters) {
  Call m([](const Tensor& x) { return x + 1; });
  EXPECT_EQ(values(data_parallel(m, counting({4}), many(2), kHost)), (Values{1, 2, 3, 4}));
  EXPECT_EQ(replicate(m, many(2)).size(), 2u);
  clear_data_parallel_cache();
}

struct PlainImpl : nn::Cloneable<PlainImpl> {
  PlainImpl() { PlainImpl::reset(); }
  void reset() override { w = register_parameter("w", make({}, {1})); }
  Tensor forward(const Tensor& x) {
    factor += 1;  // discarded in replicas
    return x * w * factor;
  }
  double factor = 1;
  Tensor w;
};
RAMET_MODULE(Plain);

TEST(DataParallel, PlainMemberChanged) {
  Plain m;
  DataParallel<Plain> dp(m, many(2));
  EXPECT_EQ(values(dp(make({1, 1})))[1], 2);
  m->factor = 10;
  ramet::parallel::reset_counters();
  EXPECT_EQ(values(dp(make({1, 1}))), (Values{11, 11}));
  EXPECT_EQ(ramet::parallel::counters().replica_rebuilds, 1u);
  EXPECT_EQ(m->factor, 10);
}

TEST(DataParallel, HandMadeReplicas) {
  nn::Linear m(2, 1);
  std::vector<nn::Linear> copies;
  for (int k = 0; k < 2; ++k)
    copies.push_back(nn::Linear(std::dynamic_pointer_cast<nn::LinearImpl>(m->clone(d(k)))));
  replicate_grad_edges(m, copies, many(2));
  const auto out = nn::parallel::parallel_apply(
      copies, {filled({1, 2}, 1, kFloat, d(0)), filled({1, 2}, 10, kFloat, d(1))});
  (out[0].to(kHost) + out[1].to(kHost)).sum().backward();
  EXPECT_EQ(values(m->weight.grad()), (Values{11, 11}));
  EXPECT_EQ(values(m->bias.grad()), Values{2});
  std::vector<nn::Linear> wrong = {nn::Linear(2, 1), nn::Linear(3, 1)};
  wrong[0]->to(d(0));
  wrong[1]->to(d(1));
  EXPECT_ERROR_TEXT(replicate_grad_edges(m, wrong, many(2)),
                    "replica 1 on device " + d(1).str() + ": 'weight'");
  EXPECT_ERROR_TEXT(replicate_grad_edges(m, copies, many(1)), "as many devices as replicas");
}

// Its own encoder and a part that is Python's: everything a clone has to take along.
struct ToItselfImpl : nn::Cloneable<ToItselfImpl> {
  ToItselfImpl() { ToItselfImpl::reset(); }
  void reset() override {
    const auto layer = nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(3).dropout(0);
    const nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(
        nn::TransformerEncoderLayerOptions(layer).batch_first(true), 2));
    model = register_module("model", nn::Transformer(nn::TransformerOptions(4, 2, 1, 1)
                                                         .dim_feedforward(3)
                                                         .dropout(0)
                                                         .batch_first(true)
                                                         .norm_first(true)
                                                         .custom_encoder(nn::AnyModule(encoder))));
  }
  Tensor forward(const Tensor& x) {
    return model(x, x, Tensor(), Tensor(), Tensor(), x.select(2, 0).gt(.9), Tensor(), Tensor(),
                 /*src_is_causal=*/false, /*tgt_is_causal=*/true);
  }
  nn::Transformer model{nullptr};
};
RAMET_MODULE(ToItself);

TEST(DataParallel, TransformersInReplicas) {
  ToItself m;
  m->to(kDouble);
  set_parameters(*m, 1);
  DataParallel<ToItself> dp(m, many(3));
  const Tensor x = varied({6, 5, 4}, 2, kDouble), v = varied({6, 5, 4}, 3, kDouble);
  const Tensor y = m(x);
  (y * v).sum().backward();
  const std::vector<double> alone = all_gradients(*m);
  m->zero_grad();
  const Tensor z = dp(x).to(kHost);
  expect_close(values(z), values(y), 1e-12);
  (z * v).sum().backward();
  expect_close(all_gradients(*m), alone, 1e-12);
  for (const Tensor& p : m->parameters()) EXPECT_GT(p.grad().abs().max().item<double>(), 0);
}

TEST(DataParallel, ComputedWeightsInReplicas) {
  nn::Sequential m(nn::utils::weight_norm(nn::Linear(3, 5)),
                   nn::utils::spectral_norm(nn::Linear(5, 2)));
  m->to(kDouble);
  const auto alone = std::dynamic_pointer_cast<nn::SequentialImpl>(m->clone());
  DataParallel<nn::Sequential> dp(m, many(3));
  const Tensor x = varied({6, 3}, 2, kDouble), v = varied({6, 2}, 3, kDouble);
  ramet::parallel::reset_counters();
  for (int step = 0; step < 3; ++step) {
    const Tensor y = alone->forward(x), z = dp(x).to(kHost);
    expect_close(values(z), values(y), 1e-12);
    (y * v).sum().backward();
    (z * v).sum().backward();
    expect_close(all_gradients(*m), all_gradients(*alone), 1e-12);
    sgd(*m, .1), sgd(*alone, .1);
    m->zero_grad(), alone->zero_grad();
  }
  // The steps of u and v, too, are the first replica's.
  expect_close(all_state(*m), all_state(*alone), 1e-12);
  EXPECT_EQ(ramet::parallel::counters().replica_rebuilds, 0u);
}

struct OwnError : std::runtime_error {
  explicit OwnError(int code) : std::runtime_error("own"), code(code) {}
  int code;
};

TEST(DataParallel, UserExceptionType) {
  Call m([](const Tensor& x) -> Tensor {
    if (replica_index() == 1) throw OwnError(42);
    return x;
  });
  DataParallel<Call> dp(m, many(2));
  try {
    dp(counting({4}));
    FAIL();
  } catch (const OwnError& e) { EXPECT_EQ(e.code, 42); }
  ASSERT_TRUE(last_failed_replica());
  EXPECT_EQ(last_failed_replica()->replica, 1);
  EXPECT_EQ(last_failed_replica()->device, d(1));
}

}  // namespace
}  // namespace ramet
