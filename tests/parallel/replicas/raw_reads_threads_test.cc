// With RAMET_DEBUG_MEMORY=1 a replica may not read another device's memory, while the library's own
// reads are allowed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "autograd/autograd.h"
#include "nn/optim/sgd.h"
#include "runtime/base/logging.h"
#include "tests/parallel/models.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// Before the library's first allocation, which asks once.
[[maybe_unused]] const int g_set = setenv("RAMET_DEBUG_MEMORY", "1", 1);

TEST(RawReads, OfAnotherDeviceInAReplica) {
  const Tensor captured = make({2, 2}, {1, 2, 3, 4});
  const auto with = [&](bool accessor, bool copied) {
    Call m([=](const Tensor& x) {
      const Tensor table = copied ? captured.to(x.device()) : captured;
      const float v = accessor ? table.accessor<float, 2>()[1][1] : table.data_ptr<float>()[3];
      return x + v;
    });
    return values(DataParallel<Call>(m, DataParallelOptions({d(0), d(1)}))(make({0, 1})));
  };
  for (const bool accessor : {false, true}) {
    EXPECT_ERROR_TEXT(
        with(accessor, false),
        "in replica 0 on device cpu:1: [data_ptr] raw read of another device's memory: "
        "got float32[2, 2] on cpu in code that runs on cpu:1 (replica 0), expected a "
        "tensor of that device");
    EXPECT_EQ(with(accessor, true), (Values{4, 5}));
  }
  // An operation on tensors of another device runs for that device: no raw read.
  Call sums([&](const Tensor& x) { return x + captured.sum().item<float>(); });
  EXPECT_EQ(values(DataParallel<Call>(sums, DataParallelOptions({d(0), d(1)}))(make({0, 1}))),
            (Values{10, 11}));
}

struct SmallImpl : nn::Cloneable<SmallImpl> {
  SmallImpl() { SmallImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(3, 8));
    norm = register_module("norm", nn::BatchNorm1d(8));
    last = register_module("last", nn::Linear(8, 2));
  }
  Tensor forward(const Tensor& x) { return last(norm(first(x)).relu()); }
  nn::Linear first{nullptr}, last{nullptr};
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(Small);

// Own hooks included: they run for the device of their gradient, on any thread.
TEST(RawReads, TrainingMakesNone) {
  Small m;
  DataParallel<Small> dp(m, many(4));
  int before = 0, after = 0;
  std::mutex mutex;
  dp.replicas().register_pre_reduce_hook([&](int, const std::string&, const Tensor& g) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (g.data_ptr()) ++before;
    return Tensor();
  });
  dp.replicas().register_post_reduce_hook([&](const std::string&, const Tensor& g) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (g.data_ptr()) ++after;
    return Tensor();
  });
  optim::SGD sgd(m->parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    dp(varied({16, 3}, step)).square().mean().backward();
    sgd.step();
  }
  EXPECT_EQ(before, 3 * 6 * 4);
  EXPECT_EQ(after, 3 * 6);
}

// A write through a raw pointer changes no version, so the replicas keep the old values: said.
TEST(RawReads, UnmarkedWritesAreReported) {
  nn::Linear m(2, 1);
  ReplicaSet set(m.ptr(), {kHost, d(0)});
  std::vector<std::string> warnings;
  set_log_handler([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::Warning) warnings.push_back(text);
  });
  set.refresh();
  m->weight.data_ptr<float>()[1] += 1;
  set.refresh();
  ASSERT_EQ(warnings.size(), 1u);
  expect_part(warnings[0], "parameter 'weight' was changed through a raw pointer");
  set.mark_dirty();
  set.refresh();
  set.refresh();
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(values(set.replica<nn::LinearImpl>(1).weight), values(m->weight));
  set_log_handler(nullptr);
}

}  // namespace
}  // namespace ramet
