// An exception from a kernel's check, a hook, a Function or an allocation, on any worker, in
// forward and in backward. All work is drained, the type is kept, and the lowest (replica,
// operation) wins. No parameter is half-updated, and the next step is the same as without the
// failure.
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "autograd/autograd.h"
#include "parallel/move/counters.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/scenarios/fragile.h"
#include "tests/runtime/thrown.h"

namespace ramet {
namespace {

using namespace testing;
using namespace nn::parallel;

// Each parameter's gradient is one of these two, as a whole: the one from before, or the whole new
// one.
void expect_whole(nn::Module& m, const std::vector<Values>& before,
                  const std::vector<Values>& after, bool* any_new) {
  const std::vector<Tensor> ps = m.parameters();
  for (size_t i = 0; i < ps.size(); ++i) {
    const Values now = ps[i].grad().defined() ? values(ps[i].grad()) : Values();
    EXPECT_TRUE(now == before[i] || now == after[i]) << "parameter " << i;
    if (now == after[i] && now != before[i]) *any_new = true;
  }
}
void check(Where where, bool in_backward) {
  SCOPED_TRACE(static_cast<int>(where));
  Job clean(kFour);
  const Values expected = clean.trained();
  for (const unsigned replicas : {0b1111u, 0b0110u, 0b1000u, 0b0001u}) {
    for (const bool accumulating : {false, true}) {
      Job job(kFour, accumulating ? 64 : 1 << 20);  // buckets of one, or one for all
      // What the step would have done.
      Job twin(kFour, accumulating ? 64 : 1 << 20);
      if (accumulating) job.step(7), twin.step(7);
      const auto before = gradients_of(*job.m);
      const Values buffers = all_values(job.m->buffers());
      twin.step(8);
      const auto after = gradients_of(*twin.m);

      job.plan->where = where;
      job.plan->replicas = replicas;
      job.plan->forwards = 0;
      const int lowest = __builtin_ctz(replicas);
      try {
        job.step(8);
        FAIL() << "no error";
      } catch (const Boom& e) {
        EXPECT_EQ(e.replica, lowest);
        EXPECT_NE(where, Where::kKernelCheck);
      } catch (const ReplicaError& e) {
        EXPECT_EQ(e.replica(), lowest);
        EXPECT_EQ(e.device(), kFour[static_cast<size_t>(lowest)]);
        EXPECT_THROW(e.rethrow_nested(), IndexError);
        EXPECT_EQ(e.others().size(), static_cast<size_t>(__builtin_popcount(replicas)) - 1);
        EXPECT_EQ(where, Where::kKernelCheck);
      }
      EXPECT_EQ(job.plan->forwards, in_backward ? 4 : 4 - __builtin_popcount(replicas))
          << "the others ran to their end";
      bool any_new = false;
      expect_whole(*job.m, before, after, &any_new);
      if (!in_backward) {
        EXPECT_FALSE(any_new);
        EXPECT_EQ(last_failed_replica()->replica, lowest);
        EXPECT_EQ(all_values(job.m->buffers()), buffers) << "nothing is taken over";
      } else if (where == Where::kParameterHook) {
        // All that does not depend on it was delivered: every parameter but last.weight.
        const auto now = gradients_of(*job.m);
        for (size_t i = 0; i < now.size(); ++i)
          EXPECT_EQ(now[i], i == 4 ? before[i] : after[i]) << "parameter " << i;
      }

      job.plan->where = Where::kNowhere;
      set_parameters(*job.m, 3);
      job.m->norm->reset_running_stats();
      EXPECT_EQ(job.trained(), expected) << "replicas " << replicas;
    }
  }
}

TEST(Errors, KernelCheck) {
  if (kGpus) GTEST_SKIP() << "a kernel of a GPU reports what it found when somebody waits for it";
  check(Where::kKernelCheck, false);
}
TEST(Errors, Forward) { check(Where::kForward, false); }
TEST(Errors, FunctionForward) { check(Where::kFunctionForward, false); }
TEST(Errors, FunctionBackward) { check(Where::kFunctionBackward, true); }
TEST(Errors, TensorHook) { check(Where::kTensorHook, true); }
TEST(Errors, ParameterHook) { check(Where::kParameterHook, true); }

TEST(Errors, ModuleHook) {
  for (const bool pre : {true, false}) {
    Job job(kFour);
    std::atomic<bool> on{true};
    auto fail = [&on](int r) {
      pause();
      if (on && (r == 1 || r == 3)) throw Boom(r);
    };
    if (pre)
      job.m->register_forward_pre_hook(
          [fail](nn::Module&, std::vector<Tensor>&) { fail(replica_index()); });
    else
      job.m->register_forward_hook([fail](nn::Module&, const std::vector<Tensor>&,
                                          std::vector<Tensor>&) { fail(replica_index()); });
    for (int repeat = 0; repeat < 10; ++repeat) {
      try {
        job.step(1);
        FAIL();
      } catch (const Boom& e) { EXPECT_EQ(e.replica, 1); }
    }
    on = false;
    set_parameters(*job.m, 3);
    EXPECT_EQ(job.trained(), Job(kFour).trained());
  }
}

// Hooks of the source: they see the whole sum, on the thread that brought its last part.
TEST(Errors, SourceHooks) {
  for (const bool post : {false, true}) {
    Job job(kFour, 64), twin(kFour, 64);
    twin.step(8);
    const auto after = gradients_of(*twin.m);
    const Tensor w = job.m->parameters()[4];
    std::atomic<bool> on{true};
    auto fail = [&on] {
      if (on) throw Boom(-1);
    };
    if (post) w.register_post_accumulate_grad_hook([fail](const Tensor&) { fail(); });
    else
      w.register_hook([fail](const Tensor& g) {
        fail();
        return g;
      });
    EXPECT_THROW(job.step(8), Boom);
    const auto now = gradients_of(*job.m);
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_EQ(now[i], i == 4 && !post ? Values() : after[i]) << "parameter " << i;
    on = false;
    set_parameters(*job.m, 3);
    job.m->norm->reset_running_stats();
    EXPECT_EQ(job.trained(), Job(kFour, 64).trained());
  }
}

// A device without a byte to spare while it lives.
class Full {
 public:
  explicit Full(Device device) : device_(device) {
    set_memory_limit(device, memory_stats(device).current + 1);
  }
  ~Full() { set_memory_limit(device_, 0); }

 private:
  Device device_;
};

// An allocation of one device fails: of the caller's while it scatters, of its worker's in forward
// and in backward.
TEST(Errors, AllocationOnAWorker) {
  const Values expected = Job(kFour).trained();
  for (const Device full : {d(0), d(2)}) {
    const std::string said = "[allocate] out of memory on " + full.str();
    Job job(kFour);
    job.step(1);  // replicas and slots are there
    job.m->zero_grad();
    const auto none = gradients_of(*job.m);

    DataParallel<Call> large(Call([](const Tensor& x) { return x; }), kFour);
    large(varied({8, 6}, 1));
    {
      const Full limit(full);
      const std::string text = error_of([&] { large(varied({8, 600}, 1)); });
      EXPECT_TRUE(contains(text, said) && !contains(text, "replica")) << text;
    }

    const int64_t held = memory_stats(full).current;
    try {
      const Full limit(full);
      job.step(2);
      ADD_FAILURE() << "no error";
    } catch (const ReplicaError& e) {
      EXPECT_EQ(e.device(), full);
      EXPECT_TRUE(contains(e.what(), said)) << e.what();
      EXPECT_THROW(e.rethrow_nested(), OutOfMemoryError);
    } catch (const OutOfMemoryError& e) {
      // A piece of the batch is memory of the GPU, however small.
      EXPECT_TRUE(kGpus && contains(e.what(), said)) << e.what();
    }
    EXPECT_EQ(gradients_of(*job.m), none);
    EXPECT_EQ(memory_stats(full).current, held);

    const Tensor out = (*job.dp)(varied({8, 6}, 2)).pow(2).sum();
    try {
      const Full limit(full);
      out.backward();
      ADD_FAILURE() << "no error";
    } catch (const OutOfMemoryError& e) { EXPECT_TRUE(contains(e.what(), said)) << e.what(); }
    Job twin(kFour);
    twin.step(1);
    twin.m->zero_grad();
    twin.step(2);
    bool any_new = false;
    expect_whole(*job.m, none, gradients_of(*twin.m), &any_new);

    set_parameters(*job.m, 3);
    job.m->norm->reset_running_stats();
    EXPECT_EQ(job.trained(), expected);
  }
}

// In a forward or a backward, on a device's worker.
TEST(Errors, AnythingMayBeThrown) {
  for (const Thrown what : kThrown) {
    DataParallel<Call> forward(Call([what](const Tensor& x) -> Tensor {
                                 if (x.device() == d(2)) throw_one(what);
                                 return x * 2;
                               }),
                               kFour);
    Thrown got = Thrown::kNothing;
    try {
      got = thrown_by([&] { forward(varied({8, 6}, 1)); });
    } catch (const ReplicaError& e) {  // of what is the standard library's it says where
      EXPECT_EQ(what, Thrown::kNoMemory);
      EXPECT_EQ(e.device(), d(2));
      got = thrown_by([&] { e.rethrow_nested(); });
    }
    EXPECT_EQ(got, what);

    DataParallel<Call> backward(
        Call([what](const Tensor& x) -> Tensor {
          Tensor y = x * 2;
          if (x.device() == d(2))
            y.register_hook([what](const Tensor&) -> Tensor { throw_one(what); });
          return y;
        }),
        kFour);
    const Tensor x = varied({8, 6}, 1).requires_grad_();
    const Tensor loss = backward(x).sum();
    EXPECT_EQ(thrown_by([&] { loss.backward(); }), what);
  }
}

// Two failures of one replica. The first in the order of backward, that is the later operation, is
// thrown, for every plan of the buckets and whichever gradient came first.
struct TwoDtypesImpl : nn::Cloneable<TwoDtypesImpl> {
  TwoDtypesImpl() { TwoDtypesImpl::reset(); }
  void reset() override {
    a = register_parameter("a", make({1}));
    b = register_parameter("b", make({1}, kDouble));
    c = register_parameter("c", make({1}));
  }
  // c's gradient needs the whole of a's and b's backward first: it comes last.
  Tensor forward(const Tensor& x) { return ((x * c).tanh().to(kDouble) * b).to(kFloat) * a; }
  Tensor a, b, c;
};
RAMET_MODULE(TwoDtypes);

TEST(Errors, FirstInTheOrderWins) {
  for (const int64_t bucket_bytes : {64, 1 << 20}) {
    TwoDtypes m;
    DataParallelOptions options({kHost, d(0)});
    options.bucket_bytes = bucket_bytes;
    DataParallel<TwoDtypes> dp(m, options);
    const auto fail_on = [](const Tensor& t, int number) {
      return t.register_hook([number](const Tensor& g) -> Tensor {
        pause();
        if (number) throw Boom(number);
        return g;
      });
    };
    for (int repeat = 0; repeat < 20; ++repeat) {
      const Tensor loss = dp(make({.5, .25})).sum();
      auto& replica = dp.replicas().replica<TwoDtypesImpl>(repeat % 2);
      fail_on(replica.a, 1);
      fail_on(replica.b, 2);
      try {
        loss.backward();
        FAIL();
      } catch (const Boom& e) { EXPECT_EQ(e.replica, 2) << "b's edge was made after a's"; }
      EXPECT_FALSE(m->a.grad().defined());
      EXPECT_FALSE(m->b.grad().defined());
      EXPECT_TRUE(m->c.grad().defined()) << "shares a's bucket, but not its fate";
      m->zero_grad();
    }
  }
}

// A failure upstream of some members of a bucket: the others are still delivered.
TEST(Errors, BucketsDoNotShareFailures) {
  for (const int64_t bucket_bytes : {64, 1 << 20}) {
    Job job({kHost, d(0)}, bucket_bytes), twin({kHost, d(0)}, bucket_bytes);
    twin.step(8);
    const auto after = gradients_of(*twin.m);
    job.plan->where = Where::kTensorHook;  // between last and norm
    job.plan->replicas = 0b10;
    EXPECT_THROW(job.step(8), Boom);
    const auto now = gradients_of(*job.m);
    for (size_t i = 0; i < now.size(); ++i)
      EXPECT_EQ(now[i], i >= 4 ? after[i] : Values()) << "parameter " << i;
  }
}

// Many failing steps leave nothing in memory: no block, no queued work.
TEST(Errors, FailuresKeepNothing) {
  Job job(kFour);
  job.step(1);
  job.m->zero_grad();
  auto held = [] {
    devices::synchronize();
    std::vector<int64_t> out;
    for (Device device : kFour) out.push_back(memory_stats(device).current);
    return out;
  };
  job.plan->replicas = 0b0110;
  std::vector<int64_t> before;
  for (int i = 0; i < 30; ++i) {
    job.plan->where = i % 2 ? Where::kFunctionBackward : Where::kForward;
    EXPECT_THROW(job.step(2), Boom);
    job.m->zero_grad();
    if (i == 1) before = held();
  }
  EXPECT_EQ(held(), before);
}

}  // namespace
}  // namespace ramet
