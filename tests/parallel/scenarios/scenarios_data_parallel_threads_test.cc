// data_parallel: layers that synchronise, errors, delays, overlap, any number of threads.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "autograd/autograd.h"
#include "autograd/graph/layout.h"
#include "nn/optim/sgd.h"
#include "parallel/move/counters.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/observe/observer.h"
#include "tests/parallel/models.h"
#include "tests/share.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

TEST(DataParallelThreads, SynchronisedBatchNorm) {
  const Tensor x = varied({8, 3}, 27), seed = varied({8, 3}, 28);
  nn::BatchNorm1d alone(3);
  const Tensor expected = alone(x);
  expected.backward(seed);
  for (const std::vector<Device>& on :
       {std::vector<Device>{kHost, d(0)}, many(4), std::vector<Device>{d(0), d(0), kHost}}) {
    nn::BatchNorm1d m(3);
    for (const char* name : {"running_mean", "running_var", "num_batches_tracked"})
      m->set_buffer_policy(name, nn::BufferPolicy::sync);
    DataParallelOptions options(on);
    options.output_device = kHost;
    DataParallel<nn::BatchNorm1d> dp(m, options);
    const Tensor y = dp(x);
    expect_close(values(y), values(expected), 1e-6);
    y.backward(seed);
    expect_close(values(m->weight.grad()), values(alone->weight.grad()), 1e-5);
    expect_close(values(m->running_mean), values(alone->running_mean), 1e-6);
    expect_close(values(m->running_var), values(alone->running_var), 1e-6);
    EXPECT_EQ(values(m->num_batches_tracked), Values{1});
  }
}

TEST(DataParallelThreads, SynchronisedBatchNormOfFewValues) {
  nn::BatchNorm1d m(3);
  for (const char* name : {"running_mean", "running_var", "num_batches_tracked"})
    m->set_buffer_policy(name, nn::BufferPolicy::sync);
  DataParallel<nn::BatchNorm1d> dp(m, many(2));
  EXPECT_ERROR_TEXT(dp(varied({1, 3}, 5)), "Expected more than 1 value per channel when training");
  EXPECT_EQ(values(m->running_var), (Values{1, 1, 1}));
  EXPECT_EQ(dp(varied({0, 3}, 5)).sizes(), IntArrayRef({0, 3}));
  EXPECT_EQ(values(m->running_mean), (Values{0, 0, 0}));
  EXPECT_EQ(values(m->running_var), (Values{1, 1, 1}));
}

struct SyncOrThrowImpl : nn::Cloneable<SyncOrThrowImpl> {
  SyncOrThrowImpl() { SyncOrThrowImpl::reset(); }
  void reset() override {
    norm = register_module("norm", nn::BatchNorm1d(2));
    for (const char* name : {"running_mean", "running_var", "num_batches_tracked"})
      norm->set_buffer_policy(name, nn::BufferPolicy::sync);
  }
  Tensor forward(const Tensor& x, int mode) {
    if (replica_index() == 2 && mode == 1) throw std::runtime_error("Badness!");
    if (replica_index() == 2 && mode == 2) return x;
    return norm(x);
  }
  nn::BatchNorm1d norm{nullptr};
};
RAMET_MODULE(SyncOrThrow);

TEST(DataParallelThreads, ASynchronisingLayerReleasesOthers) {
  SyncOrThrow m;
  DataParallel<SyncOrThrow> dp(m, many(4));
  const Tensor x = varied({8, 2}, 1);
  const std::string failed = error_of([&] { dp(x, 1); });
  EXPECT_TRUE(contains(failed, "in replica 2 on device " + d(2).str()) &&
              contains(failed, "Badness!"))
      << failed;
  const std::string skipped = error_of([&] { dp(x, 2); });
  expect_part(skipped, "replica 2 ended its forward without this layer");
  EXPECT_EQ(dp(x, 0).size(0), 8);
}

TEST(DataParallelThreads, ErrorsOfReplicas) {
  std::atomic<bool> bad{true};
  std::atomic<int> finished{0};
  Call m([&](const Tensor& x) {
    if (bad && (replica_index() == 1 || replica_index() == 2)) throw std::runtime_error("Badness!");
    ++finished;
    return x;
  });
  DataParallel<Call> dp(m, many(4));
  try {
    dp(counting({8}));
    FAIL();
  } catch (const ReplicaError& e) {
    EXPECT_TRUE(contains(e.what(), "in replica 1 on device " + d(1).str()) &&
                contains(e.what(), "Badness!"))
        << e.what();
    EXPECT_EQ(e.replica(), 1);
    EXPECT_EQ(e.device(), d(1));
    EXPECT_EQ(e.others().size(), 1u);
    EXPECT_THROW(e.rethrow_nested(), std::runtime_error);
  }
  EXPECT_EQ(finished, 2);
  bad = false;
  EXPECT_EQ(values(dp(counting({4}))), (Values{0, 1, 2, 3}));
}

// Random pauses at kernel calls while it lives: scheduling differs at every run.
class Delays {
 public:
  Delays() {
    Observer o;
    o.kernel_begin = [](const KernelCall&) {
      static std::atomic<uint32_t> state{
          static_cast<uint32_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
      const uint32_t r = state.fetch_add(0x9E3779B9u) * 2654435761u >> 16;
      if (r % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(r / 64 % 200));
      else if (r % 8 == 0) std::this_thread::yield();
    };
    number_ = add_observer(o);
  }
  ~Delays() { remove_observer(number_); }

 private:
  uint64_t number_;
};

TEST(DataParallelThreads, SameGradientsUnderDelays) {
  SmallConv m(true);
  set_parameters(*m, 41);
  DataParallelOptions options({kHost, d(0), d(1)});
  options.bucket_bytes = 256;
  options.output_device = kHost;
  DataParallel<SmallConv> dp(m, options);
  const Tensor x = varied({7, 1, 6, 6}, 42), shared = varied({3}, 43);
  x.requires_grad_();
  shared.requires_grad_();
  const Delays delays;
  Values first;
  for (int repeat = 0; repeat < 100 / one_repeat_in(); ++repeat) {
    manual_seed(41);
    m->zero_grad();
    x.mutable_grad() = shared.mutable_grad() = Tensor();
    (dp(x) * shared).pow(2).sum().backward();
    Values all = all_gradients(*m);
    for (const Tensor& t : {x, shared})
      for (double v : values(t.grad())) all.push_back(v);
    if (repeat == 0) first = all;
    ASSERT_EQ(all, first) << "repeat " << repeat;
  }
}

TEST(DataParallelThreads, ReplicasRunAtTheSameTime) {
  struct Barrier {
    std::mutex mutex;
    std::condition_variable changed;
    int present = 0;
    bool meet(int n) {
      std::unique_lock<std::mutex> lock(mutex);
      if (++present == n) changed.notify_all();
      return changed.wait_for(lock, std::chrono::seconds(60), [&] { return present >= n; });
    }
  } barrier;
  std::atomic<int> passed{0};
  Call m([&](const Tensor& x) {
    passed += barrier.meet(4);
    return x;
  });
  DataParallel<Call>(m, {kHost, d(0), d(1), d(2)})(counting({4}));
  EXPECT_EQ(passed, 4);
}

struct DeepImpl : nn::Cloneable<DeepImpl> {
  DeepImpl() { DeepImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(6, 8));
    last = register_module("last", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) {
    const Tensor h = first(x).tanh();
    if (hook) h.register_hook([f = hook](const Tensor&) { (*f)(); });
    return last(h);
  }
  nn::Linear first{nullptr}, last{nullptr};
  std::shared_ptr<std::function<void()>> hook;
};
RAMET_MODULE(Deep);

TEST(DataParallelThreads, ReductionOverlapsBackward) {
  Deep m;
  m->hook = std::make_shared<std::function<void()>>();
  DataParallelOptions options({kHost, d(0)});
  options.bucket_bytes = 200;  // {last.weight, last.bias}, then the first layer's
  DataParallel<Deep> dp(m, options);
  const Tensor loss = dp(varied({8, 6}, 1)).sum();
  GradBucket* early = dp.replicas().buckets()[0].get();
  ASSERT_EQ(early->members().size(), 2u);
  ASSERT_EQ(early->members()[0]->full_name(), "last.weight");
  std::atomic<int> overlapped{0};
  *m->hook = [&] {  // runs before the first layer's backward, in every replica
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (early->reductions() == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::yield();
    overlapped += early->reductions() != 0;
  };
  loss.backward();
  EXPECT_EQ(overlapped, 2);
  for (const auto& b : dp.replicas().buckets()) EXPECT_LE(b->ready_at(), b->done_at());
  EXPECT_LE(early->done_at(), dp.replicas().buckets()[1]->ready_at());
}

struct CountedImpl : nn::Cloneable<CountedImpl> {
  CountedImpl() {
    ++constructed;
    CountedImpl::reset();
  }
  CountedImpl(const CountedImpl& o) : Cloneable(o), w(o.w), fc(o.fc) { ++constructed; }
  CountedImpl& operator=(const CountedImpl&) = default;
  void reset() override {
    ++resets;
    w = register_parameter("w", filled({300}, 2));
    fc = register_module("fc", nn::Linear(300, 4));
  }
  Tensor forward(const Tensor& x) { return fc(x * w); }
  static std::atomic<int> constructed, resets;
  Tensor w;
  nn::Linear fc{nullptr};
};
std::atomic<int> CountedImpl::constructed{0}, CountedImpl::resets{0};
RAMET_MODULE(Counted);

TEST(DataParallelThreads, ReplicasPersist) {
  Counted m;
  DataParallel<Counted> dp(m, {kHost, d(0)});
  const Tensor x = varied({4, 300}, 1);
  auto step = [&] {
    m->zero_grad();
    dp(x).sum().backward();
    sgd(*m, 0.01);
  };
  step();
  step();
  std::vector<const void*> where;
  auto addresses = [&] {
    std::vector<const void*> out;
    for (int r = 0; r < 2; ++r)
      for (const Tensor& p : dp.replicas().shell(r)->parameters()) out.push_back(p->data);
    return out;
  };
  where = addresses();
  const int constructed = CountedImpl::constructed, resets = CountedImpl::resets;
  for (int i = 0; i < 100; ++i) {
    step();
    ASSERT_EQ(addresses(), where);
  }
  EXPECT_EQ(CountedImpl::constructed, constructed);
  EXPECT_EQ(CountedImpl::resets, resets);
  // An unchanged refresh moves nothing: by the kernels that run and the memory that is asked for.
  dp.replicas().refresh();
  std::atomic<int> kernels{0};
  Observer o;
  o.kernel_begin = [&](const KernelCall&) { ++kernels; };
  const int64_t before[] = {memory_stats(kHost).allocations, memory_stats(d(0)).allocations};
  const uint64_t number = add_observer(o);
  for (int i = 0; i < 10; ++i) dp.replicas().refresh();
  remove_observer(number);
  EXPECT_EQ(kernels, 0);
  // With debug memory a refresh compares parameters on the host, which a GPU's have to be copied
  // to.
  if (!kGpus || !debug_memory()) { EXPECT_EQ(memory_stats(kHost).allocations, before[0]); }
  EXPECT_EQ(memory_stats(d(0)).allocations, before[1]);
}

TEST(DataParallelThreads, OneDigestForAnyDevicesAndThreads) {
  auto digest = [](int n, int threads) {
    set_num_threads(threads);
    manual_seed(41);
    SmallConv m(true);
    set_parameters(*m, 44);
    std::vector<Device> on = {kHost};
    for (int k = 1; k < n; ++k) on.push_back(d(k - 1));
    DataParallelOptions options(kGpus ? many(n) : on);  // one kind: the other rounds otherwise
    options.output_device = kHost;
    options.order = ReduceOrder::tree(4);
    DataParallel<SmallConv> dp(m, options);
    optim::SGD sgd(m->parameters(), optim::SGDOptions(0.05).momentum(0.9));
    for (int step = 0; step < 4; ++step) {
      const int64_t batch = step == 3 ? 62 : 64;
      const Tensor x = varied({batch, 1, 6, 6}, static_cast<uint64_t>(450 + step)),
                   y = varied({batch, 3}, static_cast<uint64_t>(460 + step));
      sgd.zero_grad();
      (dp(x) - y).pow(2).mean().backward();
      sgd.step();
    }
    return all_state(*m, sgd);
  };
  const int before = get_num_threads();
  const Values one = digest(1, 1);
  for (int n : {1, 2, 4})
    for (int threads : {1, 2, 3}) {
      // Where a step costs many times as much, those with the most threads.
      if (one_repeat_in() > 1 && (n == 1 || threads < 3)) continue;
      EXPECT_EQ(digest(n, threads), one) << n << " devices, " << threads << " threads";
    }
  set_num_threads(before);
}

TEST(DataParallelThreads, ConcurrentCallsOnOneModule) {
  nn::Linear m(4, 3);
  const Tensor x = varied({6, 4}, 1);
  const Values expected = [&] {
    const NoGradGuard off;
    return values(m(x));
  }();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      const NoGradGuard off;
      for (int i = 0; i < 20; ++i) {
        const Values got = values(data_parallel(m, x, many(2), kHost));
        bool close = got.size() == expected.size();
        for (size_t k = 0; close && k < got.size(); ++k)
          close = std::abs(got[k] - expected[k]) < 1e-6;
        right += close;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 60);
  clear_data_parallel_cache();
}

TEST(DataParallelThreads, GraphOutlivesItsReplicas) {
  nn::Linear m(4, 3);
  Tensor loss;
  {
    DataParallel<nn::Linear> dp(m, many(2));
    loss = dp(varied({6, 4}, 1)).sum();
  }
  loss.backward();
  EXPECT_EQ(values(m->bias.grad()), Values(3, 6));
}

TEST(DataParallelThreads, NestedDataParallel) {
  nn::Linear inner(4, 4);
  Call outer([&](const Tensor& x) {
    return data_parallel(inner, x, {{d(0), d(1)}}, current_device());
  });
  const Tensor x = varied({8, 4}, 1);
  const NoGradGuard off;
  expect_close(values(DataParallel<Call>(outer, {kHost, d(0), d(1)})(x)), values(inner(x)), 1e-6);
  clear_data_parallel_cache();
}

// Where the module itself runs, as many forwards at a time as it allows.
TEST(DataParallelThreads, AWrapperAddsNoLimit) {
  for (const std::vector<Device>& on : {std::vector<Device>{}, std::vector<Device>{kHost}}) {
    Times m(3);
    DataParallel<Times> dp(m, DataParallelOptions(on));
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        const NoGradGuard off;
        for (int i = 0; i < 50; ++i) right += dp(filled({2}, 2)).sum().item<double>() == 12;
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(right, 200);
  }
}

}  // namespace
}  // namespace ramet
