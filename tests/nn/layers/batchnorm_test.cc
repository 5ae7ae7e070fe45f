#include "nn/layers/norm/batchnorm.h"

#include "autograd/grad_mode.h"
#include "autograd/graph/node.h"
#include "autograd/ops/layers/batch_norm.h"
#include "autograd/ops/layers/pool.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/pointwise/unary.h"
#include "autograd/ops/shape/cat.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

Tensor image() { return sines(96, 0.13, 0.4).view({2, 3, 4, 4}); }

TEST(BatchNorm, WithoutMomentumItAveragesAllBatches) {
  BatchNorm1d norm(BatchNorm1dOptions(1).momentum(nullopt));
  norm->to(kDouble);
  norm(doubles({1, 3}).view({2, 1}));
  norm(doubles({5, 9}).view({2, 1}));
  norm(doubles({0, 3}).view({2, 1}));
  expect_values(norm->running_mean, {(2 + 7 + 1.5) / 3});
  expect_values(norm->running_var, {(2 + 8 + 4.5) / 3});
  EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 3);
  // A hundred batches of 16 bits: their mean, as near as 16 bits say it.
  BatchNorm1d narrow(BatchNorm1dOptions(1).momentum(nullopt));
  narrow->to(kHalf);
  for (int i = 0; i < 100; ++i) narrow(doubles({1, 3}).view({2, 1}).to(kHalf));
  expect_values(narrow->running_mean.to(kDouble), {2}, 1e-3);
}

TEST(BatchNorm, WithoutStatisticsItUsesTheBatchInEvaluationToo) {
  BatchNorm1d norm(BatchNorm1dOptions(2).track_running_stats(false).affine(false));
  EXPECT_EQ(norm->named_buffers().size() + norm->parameters().size(), 0u);
  norm->to(kDouble);
  norm->eval();
  expect_values(norm(doubles({1, 2, 3, 4}).view({2, 2})), {-1, -1, 1, 1}, 1e-4);
}

TEST(BatchNorm, ChecksItsInput) {
  EXPECT_ERROR_TEXT(BatchNorm1d(2)(ones({2, 2, 2, 2})), "expected 2D or 3D input (got 4D input)");
  EXPECT_ERROR_TEXT(BatchNorm2d(2)(ones({2, 2})), "expected 4D input (got 2D input)");
  EXPECT_ERROR_TEXT(BatchNorm1d(2)(ones({1, 2})),
                    "Expected more than 1 value per channel when training, got input size [1, 2]");
}

// What is refused has left no trace in the module.
TEST(BatchNorm, ARefusedBatchIsNotCounted) {
  for (const bool momentum : {true, false}) {
    BatchNormOptions options(2);
    if (!momentum) options.momentum(nullopt);
    BatchNorm1d norm(options);
    BatchNormReLUMaxPool2d fused(options);
    const auto state = [&] {
      std::vector<double> all;
      for (const auto& b : {norm->buffers(), fused->buffers()})
        for (const Tensor& t : b)
          for (const double v : values(t)) all.push_back(v);
      return all;
    };
    norm(sines(8).to(kFloat).view({4, 2}));
    fused(sines(64).to(kFloat).view({2, 2, 4, 4}));
    const auto before = state();
    EXPECT_THROW(norm(ones({1, 2})), Error);  // one value per channel
    EXPECT_THROW(norm(ones({4, 3})), Error);  // other channels
    EXPECT_THROW(norm(ones({4, 2}, kLong)), Error);
    EXPECT_THROW(norm(Tensor()), Error);
    EXPECT_THROW(fused(ones({1, 2, 1, 1})), Error);
    EXPECT_THROW(fused(ones({2, 3, 4, 4})), Error);
    EXPECT_EQ(state(), before);
    norm(sines(8).to(kFloat).view({4, 2}));
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 2);
  }
}

TEST(BatchNorm, NothingInEvaluationNeedsNoStatistics) {  // as in LibTorch
  EXPECT_EQ(batch_norm(zeros({0, 3}), {}, {}, {}, {}, false, .1, 1e-5, false).sizes(),
            IntArrayRef({0, 3}));
  EXPECT_THROW(batch_norm(zeros({1, 3}), {}, {}, {}, {}, false, .1, 1e-5, false), Error);
}

TEST(BatchNorm, WithReluAndPoolAgreesWithTheThreeModules) {
  BatchNorm2d norm(3);
  BatchNormReLUMaxPool2d fused(3);
  const auto plain = [&](const Tensor& x) { return max_pool2d(relu(norm(x)), 2); };
  for (bool training : {true, true, false}) {
    norm->train(training);
    fused->train(training);
    const Tensor x = image().to(kFloat).requires_grad_(), z = image().to(kFloat).requires_grad_();
    const Tensor rows = x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
    const Tensor y = fused(rows), want = plain(z);
    EXPECT_EQ(y.grad_fn()->name(), "BatchNormReluMaxPool2DBackward0");
    expect_values(y, values(want), 1e-5);
    y.square().sum().backward();
    want.square().sum().backward();
    expect_values(x.grad(), values(z.grad()), 1e-4);
  }
  expect_values(fused->running_mean, values(norm->running_mean), 1e-6);
  expect_values(fused->running_var, values(norm->running_var), 1e-6);
  EXPECT_EQ(fused->num_batches_tracked.item<int64_t>(), 2);
  EXPECT_EQ(fused->named_parameters().keys(), norm->named_parameters().keys());
  EXPECT_ERROR_TEXT(fused(ones({2, 2})), "expected 4D input (got 2D input)");
}

// ---- Note [Batch norm in replicas] --------------------------------------------------------------

std::shared_ptr<BatchNorm1dImpl> replica_of(const BatchNorm1dImpl& source, const char* device) {
  auto made = std::dynamic_pointer_cast<BatchNorm1dImpl>(source.clone(Device(device)));
  made->set_replica(true);
  return made;
}
void merge(BatchNorm1dImpl& source, const std::vector<std::shared_ptr<BatchNorm1dImpl>>& replicas) {
  std::vector<Module*> list;
  for (const auto& r : replicas) list.push_back(r.get());
  source.merge_replicas(list);
}

TEST(BatchNormReplicas, UnequalPartsMergeToTheWholeBatch) {
  // far from zero: a sum of squares would lose digits
  const Tensor x = sines(7 * 2, 0.9, 0.3).view({7, 2}) * 3 + 100;
  BatchNorm1d whole(2), source(2);
  whole->to(kDouble), source->to(kDouble);
  const auto a = replica_of(*source, "cpu:0"), b = replica_of(*source, "cpu:1"),
             c = replica_of(*source, "cpu:2");
  for (int step = 0; step < 3; ++step) {
    whole(x);
    a->forward(x.narrow(0, 0, 2));
    b->forward(x.narrow(0, 2, 2).to(Device("cpu:1")));
    c->forward(x.narrow(0, 4, 3).to(Device("cpu:2")));
    merge(*source, {a, b, c});
  }
  expect_values(source->running_mean, values(whole->running_mean), 1e-13);
  expect_values(source->running_var, values(whole->running_var), 1e-12);
  EXPECT_EQ(source->num_batches_tracked.item<int64_t>(), 3);
  EXPECT_EQ(source->running_mean.device(), Device("cpu:0"));
}

TEST(BatchNormReplicas, EmptyPartsTeachNothing) {
  BatchNorm1d whole(2), source(2);
  const Tensor x = sines(3 * 2).view({3, 2}).to(kFloat);
  const auto a = replica_of(*source, "cpu:0"), b = replica_of(*source, "cpu:1");
  whole(x);
  a->forward(x.narrow(0, 0, 0));
  b->forward(x.to(Device("cpu:1")));
  merge(*source, {a, b});
  expect_values(source->running_mean, values(whole->running_mean), 1e-6);
  expect_values(source->running_var, values(whole->running_var), 1e-6);
  a->forward(x.narrow(0, 0, 0));
  b->forward(x.narrow(0, 0, 0).to(Device("cpu:1")));
  merge(*source, {a, b});
  expect_values(source->running_mean, values(whole->running_mean), 1e-6);
  EXPECT_EQ(source->num_batches_tracked.item<int64_t>(), 2);
}

TEST(BatchNormReplicas, AReplicaWritesNoBuffersAndNormalisesItsPart) {
  BatchNorm1d source(1);
  const auto a = replica_of(*source, "cpu:0");
  const Tensor y = a->forward(tensor({1., 3.}).view({2, 1}));
  expect_values(y, {-1, 1}, 1e-4);
  expect_values(a->running_mean, {0});
  expect_values(a->running_var, {1});
  EXPECT_EQ(a->num_batches_tracked.item<int64_t>(), 0);
  const auto bytes = a->own_bytes();
  const std::vector<char> before(static_cast<const char*>(bytes.first),
                                 static_cast<const char*>(bytes.first) + bytes.second);
  a->forward(tensor({1., 3.}).view({2, 1}));
  EXPECT_EQ(std::memcmp(before.data(), a->own_bytes().first, before.size()), 0)
      << "a deposit is no change of the object";
}

TEST(BatchNormReplicas, EveryForwardOfAStepCounts) {
  BatchNorm1d whole(1), source(1);
  const auto a = replica_of(*source, "cpu:0"), b = replica_of(*source, "cpu:0");
  const Tensor x = tensor({1., 3., 5., 8.}).view({4, 1}), z = x * 2;
  whole(x), whole(z);
  a->forward(x.narrow(0, 0, 2)), a->forward(z.narrow(0, 0, 2));
  b->forward(x.narrow(0, 2, 2)), b->forward(z.narrow(0, 2, 2));
  merge(*source, {a, b});
  expect_values(source->running_mean, values(whole->running_mean), 1e-6);
  expect_values(source->running_var, values(whole->running_var), 1e-6);
  EXPECT_EQ(source->num_batches_tracked.item<int64_t>(), 2);
  merge(*source, {a, b});
  EXPECT_EQ(source->num_batches_tracked.item<int64_t>(), 2) << "a deposit is used once";
}

TEST(BatchNormReplicas, DepositsOfAFailedStepAreDropped) {
  BatchNorm1d source(1);
  const auto a = replica_of(*source, "cpu:0");
  a->forward(tensor({1., 3.}).view({2, 1}));
  a->discard_deposits();
  merge(*source, {a});
  EXPECT_EQ(source->num_batches_tracked.item<int64_t>(), 0);
}

TEST(BatchNormReplicas, AnotherPolicyMeansTheReplicasOwnBuffers) {
  BatchNorm1d source(1);
  for (const char* name : {"running_mean", "running_var", "num_batches_tracked"})
    source->set_buffer_policy(name, BufferPolicy::first);
  const auto a = replica_of(*source, "cpu:0");
  EXPECT_EQ(a->buffer_policy("running_mean"), BufferPolicy::first);
  a->forward(tensor({1., 3.}).view({2, 1}));
  EXPECT_EQ(a->num_batches_tracked.item<int64_t>(), 1);
  expect_values(a->running_mean, {0.2}, 1e-6);
}

}  // namespace
}  // namespace ramet::nn
