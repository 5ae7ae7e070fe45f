// Pinned memory and copies without waits: Note in runtime/tensor/pinned.h. Every dependency holds
// in every mode of streams. Work without a dependency runs in any order: the tests show that with
// streams that run only what a caller waits for.
#include "runtime/tensor/pinned.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "autograd/ops.h"
#include "runtime/cuda/check.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "tests/autograd/gpu/gpu_tensors.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet {
namespace {

using cuda::Queue;
using kernels::drawn;
using kernels::numbers;
using ramet::testing::gpu_settings;
using ramet::testing::Gpus;
using StreamMode = ramet::emulated::StreamMode;
const Device host(kCPU, 0), gpu(kCUDA, 0), other(kCUDA, 1);
constexpr int64_t kN = 1000;

/// `test` in each mode of streams, each time on GPUs of their own.
void in_every_mode(const std::function<void()>& test) {
  for (const StreamMode mode :
       {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy, StreamMode::Random}) {
    SCOPED_TRACE(static_cast<int>(mode));
    auto settings = gpu_settings(2);
    settings.streams = mode;
    const Gpus gpus(settings);
    test();
  }
}
Tensor pinned(int64_t seed, int64_t n = kN) { return drawn({n}, kFloat, seed).pin_memory(); }

TEST(Pinned, WhoIs) {
  const Gpus gpus(gpu_settings(2));
  const Tensor x = drawn({4, 6}, kFloat, 1);
  EXPECT_FALSE(x.is_pinned());
  const Tensor p = x.pin_memory();
  EXPECT_TRUE(p.is_pinned());
  EXPECT_EQ(numbers(p), numbers(x));
  EXPECT_TRUE(p.pin_memory().is_same(p));
  EXPECT_TRUE(p.t().is_pinned() && p.select(0, 2).is_pinned() && p.data().is_pinned());
  EXPECT_FALSE(p.clone().is_pinned() || p.to(gpu).is_pinned());
  EXPECT_TRUE(same_strides(x.t().pin_memory(), x.t()));
  EXPECT_EQ(numbers(x.select(1, 1).expand({3, 4}).pin_memory()),
            numbers(x.select(1, 1).expand({3, 4})));
  const TensorOptions options = TensorOptions().pinned_memory(true);
  for (const Tensor& t :
       {empty({3}, options), zeros({3}, options), full({3}, 2, options), arange(3, options),
        rand({3}, options), tensor({1., 2.}, options), zeros_like(x.t(), options),
        empty_strided({2, 2}, {1, 2}, options), zeros({0}, options),
        empty({1, 2, 3, 4}, options, MemoryFormat::ChannelsLast)})
    EXPECT_TRUE(t.is_pinned()) << describe(t);
  EXPECT_TRUE(empty({1, 2, 3, 4}, options, MemoryFormat::ChannelsLast)
                  .is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(numbers(arange(3, options)), (std::vector<double>{0, 1, 2}));
  EXPECT_MESSAGE(x.to(gpu).pin_memory(),
                 "[pin_memory] only dense CPU tensors can be pinned: got float32[4, 6] on cuda:0");
  EXPECT_MESSAGE(zeros({3}, options.device(gpu)), "only dense CPU tensors can be pinned");
  EXPECT_MESSAGE(Tensor().pin_memory(), "[pin_memory] undefined tensor");
  const Tensor w = ones({3}).requires_grad_();
  w.pin_memory().to(gpu, kFloat, true).mul(3).sum().backward();
  EXPECT_EQ(numbers(w.grad()), (std::vector<double>{3, 3, 3}));
}

TEST(Pinned, RoundTrips) {
  in_every_mode([] {
    for (const Tensor& x :
         {drawn({kN}, kFloat, 1), drawn({30, 40}, kDouble, 2).t(), drawn({}, kFloat, 3),
          drawn({0, 4}, kFloat, 4), drawn({30, 40}, kFloat, 5).select(1, 3)}) {
      const Tensor p = x.pin_memory(), there = p.to(gpu, x.scalar_type(), /*non_blocking=*/true);
      const Tensor back = there.to(host, x.scalar_type(), true);
      EXPECT_EQ(numbers(back), numbers(x));
      EXPECT_EQ(back.is_pinned(), true);
      EXPECT_EQ(numbers(p.to(gpu, kDouble, true)), numbers(x.to(kDouble)));  // cast there
      EXPECT_EQ(numbers(p.to(gpu, kHalf, true)), numbers(x.to(kHalf)));      // and here
      EXPECT_EQ(numbers(there.to(host, kHalf, true)), numbers(x.to(kHalf)));
      EXPECT_EQ(numbers(x.to(gpu, x.scalar_type(), true)), numbers(x)) << "pageable";
    }
  });
}

// No caller waits, and every reader gets the values of the program's order.
TEST(Pinned, KernelsComeBehindTheirCopies) {
  in_every_mode([] {
    const Tensor p = pinned(1), q = pinned(2), into = zeros({kN}).to(gpu);
    const Tensor before = into.add(1);
    into.copy_(p, true);  // after `before` has read it
    const Tensor sum = into.add(q.to(gpu, kFloat, true));
    into.copy_(q, true);  // after the sum has
    const Tensor first = drawn({kN}, kFloat, 1), second = drawn({kN}, kFloat, 2);
    EXPECT_EQ(numbers(cat({before, sum, into})),
              numbers(cat({ones({kN}), first.add(second), second})));
  });
}

TEST(Pinned, WhatIsCopiedOutIsNotOverwrittenEarly) {
  in_every_mode([] {
    const Tensor x = drawn({kN}, kFloat, 1).to(gpu), y = x.mul(2);
    const Tensor out = y.to(host, kFloat, true);
    y.zero_();
    const Tensor again = y.add(1).to(host, kFloat, true);  // of a tensor that goes at once
    const Tensor other_use = ones({kN}, gpu).mul(5);       // in its memory
    EXPECT_EQ(numbers(other_use), numbers(full({kN}, 5.f)));
    EXPECT_EQ(numbers(again), numbers(ones({kN})));
    EXPECT_EQ(numbers(out), numbers(drawn({kN}, kFloat, 1).mul(2)));
  });
}

// A copy into memory that is no longer used comes before its next owner.
TEST(Pinned, WhatIsCopiedInDoesNotArriveLate) {
  const ramet::testing::Caching on("1");
  in_every_mode([] {
    const Tensor p = pinned(1);
    void* place;
    {
      const Tensor there = p.to(gpu, kFloat, true);
      place = there->data;
    }
    const Tensor next = ones({kN}, gpu);
    ASSERT_EQ(next->data, place);
    EXPECT_EQ(numbers(next), numbers(ones({kN})));
    cuda::synchronize(0);
    EXPECT_EQ(numbers(next), numbers(ones({kN})));
  });
}

// Loaders in threads: their pinned batches are freed while they are copied. None gets another's
// data.
TEST(Pinned, ThreadsThatLoadBatches) {
  in_every_mode([] {
    std::vector<std::thread> threads;
    std::atomic<int> wrong = 0;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([t, &wrong] {
        for (int round = 0; round < 12; ++round) {
          std::vector<Tensor> there, expected;
          for (int i = 0; i < 8; ++i) {
            expected.push_back(full({64}, 1000.0 * t + 8 * round + i, kFloat));
            there.push_back(expected.back().pin_memory().to(gpu, kFloat, true));
          }
          for (size_t i = 0; i < there.size(); ++i)
            wrong += numbers(there[i]) != numbers(expected[i]);
        }
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
  });
}

TEST(Pinned, TheHostWritesAfterTheCopyHasRead) {
  in_every_mode([] {
    const Tensor p = pinned(1), expected = p.clone();
    const Tensor there = p.to(gpu, kFloat, true), also = p.to(other, kFloat, true);
    p.fill_(7);
    EXPECT_EQ(numbers(there), numbers(expected));
    EXPECT_EQ(numbers(also), numbers(expected));
    // Two copies into it from two GPUs, and one out of it.
    p.copy_(there, true);
    p.copy_(also.add(1), true);
    const Tensor again = p.to(gpu, kFloat, true);
    EXPECT_EQ(numbers(again), numbers(expected.add(1)));
    EXPECT_EQ(numbers(p), numbers(expected.add(1)));
  });
}

// Memory of both kinds may be given out again while a copy still uses it.
TEST(Pinned, TemporariesMayGo) {
  in_every_mode([] {
    std::vector<Tensor> kept;
    for (int64_t i = 0; i < 100; ++i) {  // more than events are kept
      kept.push_back(pinned(i, 64).to(gpu, kFloat, true).add(1));
      (void)pinned(1000 + i, 64).to(gpu, kFloat, true);  // not used
    }
    for (int64_t i = 0; i < 100; ++i)
      ASSERT_EQ(numbers(kept[static_cast<size_t>(i)]), numbers(drawn({64}, kFloat, i).add(1))) << i;
  });
}

// Storages that show the same memory have pending words of their own.
TEST(Pinned, AliasesComeBehindToo) {
  in_every_mode([] {
    const Tensor p = pinned(1), q = pinned(2);
    const Tensor x = zeros({kN}).to(gpu), early = x.data();
    x.copy_(p, true);
    EXPECT_EQ(numbers(early.mul(2)), numbers(drawn({kN}, kFloat, 1).mul(2)));
    const Tensor y = q.to(gpu, kFloat, true), late = y.data();
    EXPECT_EQ(numbers(late.mul(2)), numbers(drawn({kN}, kFloat, 2).mul(2)));
    const Tensor out = x.to(host, kFloat, true);
    early.zero_();
    EXPECT_EQ(numbers(early), numbers(zeros({kN})));
    EXPECT_EQ(numbers(out), numbers(drawn({kN}, kFloat, 1)));
    // The host's memory.
    const Tensor look = p.data();
    x.copy_(p, true);
    look.fill_(7);
    EXPECT_EQ(numbers(x), numbers(drawn({kN}, kFloat, 1)));
    p.copy_(x, true);
    EXPECT_EQ(numbers(look), numbers(drawn({kN}, kFloat, 1)));
  });
}

// A pointer that was taken before is good after an event, or after a wait for the device.
TEST(Pinned, RawPointersAfterEventsAndWaits) {
  in_every_mode([] {
    const Tensor x = drawn({kN}, kFloat, 1), there = x.to(gpu), out = zeros({kN}).pin_memory();
    const Tensor twice = there.mul(2), four = there.mul(4), eight = there.mul(8);
    const float* raw = out.data_ptr<float>();
    const auto is = [&](double factor) {
      bool all = true;
      for (int64_t i = 0; i < kN; ++i)
        all = all && raw[i] == static_cast<float>(factor) * x.data_ptr<float>()[i];
      return all;
    };
    out.copy_(twice, true);
    Event event;
    event.record(gpu);
    event.synchronize();
    EXPECT_TRUE(event.query());
    EXPECT_TRUE(is(2));
    out.copy_(four, true);
    cuda::synchronize(0);
    EXPECT_TRUE(is(4));
    out.copy_(eight, true);
    event.record(gpu);
    event.wait(other);
    cuda::synchronize(1);
    EXPECT_TRUE(is(8));
  });
}

TEST(Pinned, ErrorsInDataAreToldToWhoReads) {
  in_every_mode([] {
    const Tensor x = ones({4}).to(gpu);
    const Tensor out = x.index_select(0, tensor({9}).to(gpu)).to(host, kFloat, true);
    EXPECT_MESSAGE(out.item(), "[index_select] index out of range: got 9 at position 0");
    EXPECT_NO_THROW(out.item()) << "told once";
    EXPECT_NO_THROW(cuda::synchronize(0));
  });
}

TEST(Pinned, MemoryIsUsedAgain) {
  const Gpus gpus(gpu_settings(1));
  void* place;
  {
    const Tensor p = pinned(1);
    place = p.data_ptr();
    (void)p.to(gpu, kFloat, true);
    cuda::synchronize(0);
  }
  EXPECT_EQ(pinned(2).data_ptr(), place);
  empty_cache();
  const Tensor p = pinned(3);  // from the driver again, wherever that is
  EXPECT_EQ(numbers(p.to(gpu, kFloat, true)), numbers(p));
}

#if RAMET_GPU_EMULATED

/// Work of the compute stream that no caller has waited for yet.
struct Kernel {
  bool ran = false;
  void queue() {
    cuda::DeviceState& state = cuda::device_state(0, "test");
    const cuda::CardGuard card("test", state);
    RAMET_CUDA("test", 0,
               cudaLaunchHostFunc(
                   state.stream(Queue::kCompute, "test"),
                   [](void* self) { static_cast<Kernel*>(self)->ran = true; }, this));
  }
};
/// Runs what is in this stream, and, in a lazy one, only what that depends on.
void wait_for(Queue queue) {
  cuda::DeviceState& state = cuda::device_state(0, "test");
  const cuda::CardGuard card("test", state);
  RAMET_CUDA("test", 0, cudaStreamSynchronize(state.stream(queue, "test")));
}
emulated::Settings lazy() {
  auto settings = gpu_settings(1);
  settings.streams = StreamMode::Lazy;
  return settings;
}

// Without a cache memory is the compute stream's from its allocation on.
TEST(PinnedOverlap, ACopyIntoNewMemoryIsNotBehindEarlierKernels) {
  const ramet::testing::Caching on("1");
  const Gpus gpus(lazy());
  const Tensor p = pinned(1);
  Kernel kernel;
  kernel.queue();
  const Tensor there = p.to(gpu, kFloat, true);
  wait_for(Queue::kCopyIn);
  EXPECT_FALSE(kernel.ran);
  EXPECT_EQ(numbers(there), numbers(p));  // reads it after all other work
  EXPECT_TRUE(kernel.ran);
}

TEST(PinnedOverlap, AnUnrelatedKernelIsNotBehindTheCopy) {
  const Gpus gpus(lazy());
  const Tensor p = pinned(1), expected = p.clone();
  float* const raw = p.data_ptr<float>();
  const Tensor there = p.to(gpu, kFloat, true);
  Kernel kernel;
  kernel.queue();
  wait_for(Queue::kCompute);
  EXPECT_TRUE(kernel.ran);
  raw[0] = 99;  // against the rules: so the copy has not run yet
  expected.data_ptr<float>()[0] = 99;
  EXPECT_EQ(numbers(there), numbers(expected));
}

TEST(PinnedOverlap, ACopyOutIsBehindItsKernelsAndBesideLaterOnes) {
  const Gpus gpus(lazy());
  const Tensor x = drawn({kN}, kFloat, 1).to(gpu);
  Kernel before, after;
  before.queue();
  const Tensor out = x.mul(2).to(host, kFloat, true);
  after.queue();
  EXPECT_EQ(numbers(out), numbers(x.to(host).mul(2))) << "waits";
  EXPECT_TRUE(before.ran);
  const Tensor again = x.to(host, kFloat, true);
  Kernel later;
  later.queue();
  (void)again.data_ptr();
  EXPECT_FALSE(later.ran) << "the host waited for its copy alone";
  x.add_(1);  // comes after the copy: what it reads is overwritten
  EXPECT_EQ(numbers(again), numbers(drawn({kN}, kFloat, 1)));
}

// The next batch is on its way while a step computes. It uses the memory of an earlier batch, and
// waits for that batch's kernels, but for no later ones.
TEST(PinnedOverlap, TheNextBatchTravelsBesideAStep) {
  const Gpus gpus(lazy());
  Tensor batch = pinned(0).to(gpu, kFloat, true), next = pinned(1).to(gpu, kFloat, true);
  std::vector<Tensor> results;
  for (int64_t step = 0; step < 4; ++step) {
    results.push_back(batch.mul(2));
    batch = next;  // frees the old one
    next = pinned(step + 2).to(gpu, kFloat, true);
    Kernel rest;  // of the step
    rest.queue();
    wait_for(Queue::kCopyIn);
    EXPECT_FALSE(rest.ran) << step;
    wait_for(Queue::kCompute);
  }
  for (int64_t step = 0; step < 4; ++step)
    EXPECT_EQ(numbers(results[static_cast<size_t>(step)]),
              numbers(drawn({kN}, kFloat, step).mul(2)));
}

#endif

}  // namespace
}  // namespace ramet
