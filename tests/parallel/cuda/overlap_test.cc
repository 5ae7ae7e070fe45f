// Sums that run on the communication stream, concurrently with the backward, where their leaves get
// something before it ends. The results are those of CPU devices, bit for bit, in every mode of
// streams.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "autograd/graph/function.h"
#include "nn/layers/basic/linear.h"
#include "runtime/observe/observer.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

using nn::parallel::DataParallel;

// Its backward calls `act` with the device of the gradient.
struct Calls : autograd::Function<Calls> {
  using Act = std::function<void(Device)>;
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, const Act* act) {
    context->saved_data["act"] = reinterpret_cast<int64_t>(act);
    return x * 2;
  }
  static autograd::tensor_list backward(autograd::AutogradContext* context,
                                        autograd::tensor_list g) {
    (*reinterpret_cast<const Act*>(context->saved_data["act"].toInt()))(g[0].device());
    return {g[0] * 2, {}};
  }
};

struct PairImpl : nn::Cloneable<PairImpl> {
  PairImpl() { PairImpl::reset(); }
  void reset() override {
    first = register_module("first", nn::Linear(4, 3));
    last = register_module("last", nn::Linear(3, 2));
  }
  Tensor forward(const Tensor& x) {
    if (!at_start) return last(first(x));
    return Calls::apply(last(first(Calls::apply(x, at_end))), at_start);
  }
  nn::Linear first{nullptr}, last{nullptr};
  // Called before and after the backward of each replica's layers.
  static inline const Calls::Act *at_start = nullptr, *at_end = nullptr;
};
RAMET_MODULE(Pair);

// Whole numbers: any order of additions gives the same bits, of matrix products, too.
Tensor numbers(IntArrayRef sizes, int64_t seed) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return ((arange(n) * 5 + seed).remainder(7) - 3).to(kFloat).view(sizes);
}

struct Trial {
  Pair m;
  DataParallel<Pair> dp;
  Tensor x;
  Values seen;  // what a test adds to the gradients
  static nn::parallel::DataParallelOptions options(const std::vector<Device>& devices) {
    nn::parallel::DataParallelOptions o(devices);
    o.bucket_bytes = 16;  // one for each parameter
    return o;
  }
  explicit Trial(const std::vector<Device>& devices)
      : m(prepared(devices[0])), dp(m, options(devices)) {
    // Kernels that last: what runs too early reads old values.
    x = numbers({512, 4}, 2).to(devices[0]);
  }
  static Pair prepared(Device device) {
    Pair m;
    NoGradGuard off;
    int64_t seed = 1;
    for (const Tensor& p : m->parameters()) p.copy_(numbers(p.sizes(), seed++));
    m->to(device);
    return m;
  }
  void look(const Tensor& gradient) {
    for (double v : values(gradient)) seen.push_back(v);
  }
};

using Case = std::function<void(Trial&)>;

Values outcome(const std::vector<Device>& devices, const Case& act) {
  Trial run(devices);
  for (int step = 0; step < 2; ++step) {  // the second with memory that was used before
    run.m->zero_grad();
    act(run);
  }
  Values all = all_gradients(*run.m);
  for (const Tensor& p : run.m->parameters()) run.look(p.detach());
  all.insert(all.end(), run.seen.begin(), run.seen.end());
  return all;
}

void expect_as_on_cpu(const Case& act) {
  const Values expected = outcome({Device(kCPU, 0), Device(kCPU, 1)}, act);
  using emulated::StreamMode;
  std::vector<StreamMode> modes = {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy};
  modes.insert(modes.end(), 6, StreamMode::Random);
  for (size_t i = 0; i < modes.size(); ++i) {
    emulated::Settings settings = gpu_settings(2);
    settings.streams = modes[i];
#if RAMET_GPU_EMULATED
    settings.stream_seed = i;
#endif
    const Gpus two(settings);
    EXPECT_EQ(outcome(gpus(2), act), expected)
        << "mode " << static_cast<int>(modes[i]) << ", seed " << i;
    nn::parallel::clear_data_parallel_cache();
  }
}

TEST(Overlap, NothingElse) {
  expect_as_on_cpu([](Trial& run) { run.dp(run.x).sum().backward(); });
}

TEST(Overlap, ALeafThatTheLossUsesToo) {
  expect_as_on_cpu([](Trial& run) {
    const Tensor &first = run.m->first->weight, &last = run.m->last->weight;
    (run.dp(run.x).sum() + first.pow(2).sum() + last.pow(2).sum()).backward();
  });
}

TEST(Overlap, TwoSetsOfReplicas) {
  expect_as_on_cpu([](Trial& run) {
    DataParallel<Pair> other(run.m, Trial::options(run.dp.replicas().devices()));
    (run.dp(run.x).sum() + other(run.x + 1).sum()).backward();
  });
}

// The first layer's gradients come last.
TEST(Overlap, AHookThatLooksAtAnotherGradient) {
  expect_as_on_cpu([](Trial& run) {
    Tensor copy;
    const auto hook = run.m->first->weight.register_post_accumulate_grad_hook(
        [&](const Tensor&) { copy = run.m->last->weight.grad().clone(); });
    run.dp(run.x).sum().backward();
    run.m->first->weight.remove_hook(hook);
    run.look(copy);
  });
}

TEST(Overlap, AnOptimizerStepInAHook) {
  expect_as_on_cpu([](Trial& run) {
    optim::SGD sgd(run.m->last->parameters(), 0.5);
    const auto hook =
        run.m->first->weight.register_post_accumulate_grad_hook([&](const Tensor&) { sgd.step(); });
    run.dp(run.x).sum().backward();
    run.m->first->weight.remove_hook(hook);
  });
}

// A backward inside a reduce hook of the layer that gets its gradients last.
TEST(Overlap, ABackwardInsideAReduceHook) {
  expect_as_on_cpu([](Trial& run) {
    const Tensor more = (run.m->last->weight * 2).sum();
    DataParallel<Pair> hooked(run.m, Trial::options(run.dp.replicas().devices()));
    hooked.replicas().register_post_reduce_hook([&](const std::string& name, const Tensor&) {
      if (name == "first.weight") more.backward();
      return Tensor();
    });
    hooked(run.x).sum().backward();
  });
}

// And inside a Function that runs its backward after those of all layers.
TEST(Overlap, ABackwardInsideAFunction) {
  expect_as_on_cpu([](Trial& run) {
    const Tensor more = (run.m->last->weight * 2).sum();
    const Calls::Act act = [&](Device) { more.backward(); };
    const Tensor x = run.x.detach().set_requires_grad(true);
    run.dp(Calls::apply(x, &act)).sum().backward();
  });
}

bool comes(const std::function<bool()>& condition) {
  for (int i = 0; i < 20'000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

// It adds to a leaf while the leaf's sum is running, before the backward that queued the sum has
// ended. The second replica's thread waits for the first one's last gradient. So it is the later
// thread and launches all sums, which the first one adds to the leaves meanwhile.
TEST(Overlap, AnotherThreadsBackwardComesToTheLeaf) {
  expect_as_on_cpu([](Trial& run) {
    std::atomic<bool> first_ended = false, waited = true, came = false;
    const Calls::Act start = [&](Device device) {
      if (device.index() == 1 && !comes([&] { return first_ended.load(); })) waited = false;
    };
    const Calls::Act end = [&](Device device) {
      if (device.index() == 0) first_ended = true;
    };
    PairImpl::at_start = &start, PairImpl::at_end = &end;
    const Tensor bias = run.m->last->bias, more = (bias * 2).sum(),
                 loss = run.dp(run.x.detach().set_requires_grad(true)).sum();
    PairImpl::at_start = PairImpl::at_end = nullptr;
    autograd::AccumulateGrad& leaf = *autograd::grad_accumulator(bias.impl());
    const auto leaf_has_its_sum = [&leaf] {
      const std::lock_guard lock(leaf.mutex);
      return leaf.grad.defined();
    };
    std::atomic<int> sums = 0;
    Observer o;
    o.kernel_begin = [&](const KernelCall& call) {
      if (std::string(call.name) != "nary_sum" || ++sums != 3) return;  // after the last layer's
      came = true;
      if (!comes(leaf_has_its_sum)) waited = false;
      std::thread([&] { more.backward(); }).join();
    };
    const uint64_t number = add_observer(o);
    loss.backward();
    remove_observer(number);
    EXPECT_TRUE(came && waited);
  });
}

}  // namespace
}  // namespace ramet::testing
