#include "tests/parallel/schedules/schedules.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"
#include "runtime/devices/generator.h"
#include "runtime/observe/observer.h"
#include "tests/fuzz.h"
#include "tests/parallel/scenarios/fragile.h"

namespace ramet {
namespace testing {
namespace {

using namespace nn::parallel;
using parallel::Split;

#if defined(__SANITIZE_THREAD__)
constexpr int kSlower = 8;
#else
constexpr int kSlower = 1;
#endif

int below(std::mt19937& random, int n) {
  return static_cast<int>(random() % static_cast<unsigned>(n));
}

// Random pauses at kernel calls while it lives: another schedule for every seed, as far as the
// system's own scheduler lets it be one.
class Delays {
 public:
  explicit Delays(std::mt19937& random) : state_(random()), rarely_(1u << below(random, 7)) {
    Observer o;
    o.kernel_begin = [this](const KernelCall&) { pause(); };
    number_ = add_observer(o);
  }
  // Calls under way may still come.
  ~Delays() {
    devices::synchronize();
    remove_observer(number_);
  }
  void pause() {
    const uint32_t r = state_.fetch_add(0x9E3779B9u) * 2654435761u >> 12;
    if (r % (4 * rarely_) == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(r / 64 % 200));
    else if (r % rarely_ == 0) std::this_thread::yield();
  }

 private:
  std::atomic<uint32_t> state_;
  const uint32_t rarely_;
  uint64_t number_ = 0;
};

struct Threads {
  explicit Threads(int n) : before(get_num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

std::vector<Device> first_devices(int n) { return {kFour.begin(), kFour.begin() + n}; }

// What one training is made of.
struct Setup {
  int devices, batch;
  bool tree, extras;
  int64_t bucket_bytes;
  uint64_t data;
};

Values trained(const Setup& s) {
  manual_seed(s.data);
  SmallConv m(s.extras);
  set_parameters(*m, s.data);
  DataParallelOptions options(first_devices(s.devices));
  options.bucket_bytes = s.bucket_bytes;
  options.output_device = kHost;
  if (s.tree) options.order = ReduceOrder::tree(4);
  DataParallel<SmallConv> dp(m, options);
  const Tensor shared = varied({3}, s.data + 1);
  shared.requires_grad_();
  for (int step = 0; step < 2; ++step) {
    // The last batch is a short one.
    const Tensor x =
        varied({s.batch + 4 - 3 * step, 1, 6, 6}, s.data + 2 + static_cast<uint64_t>(step));
    x.requires_grad_();
    if (step == 1) m->zero_grad();
    (dp(x) * shared).pow(2).sum().backward();
    sgd(*m, 0.01);
    if (step == 0) continue;
    Values all = all_gradients(*m);
    for (const std::vector<Tensor>& list :
         {m->parameters(), m->buffers(), std::vector<Tensor>{x.grad(), shared.grad()}})
      for (double v : all_values(list)) all.push_back(v);
    return all;
  }
  return {};
}

}  // namespace

void many_schedules(int default_rounds, const std::function<void(std::mt19937&)>& round) {
  const int rounds = fuzz::rounds(std::max(default_rounds / kSlower, 1));
  fuzz::announce(rounds);
  for (int i = 0; i < rounds; ++i) {
    const uint64_t seed = fuzz::seed() + static_cast<uint64_t>(i);
    std::mt19937 random(static_cast<uint32_t>(seed));
    round(random);
    if (::testing::Test::HasFailure()) {
      FAIL() << "in round " << i << ": again with RAMET_SEED=" << seed << " RAMET_ROUNDS=1";
    }
  }
}

void check_training(std::mt19937& random) {
  Setup s;
  s.tree = random() % 2;
  s.devices = s.tree ? 1 << below(random, 3) : 1 + below(random, 4);
  s.batch = 1 + below(random, 8);
  s.extras = random() % 2;
  s.bucket_bytes = std::vector<int64_t>{64, 256, 1 << 20}[static_cast<size_t>(below(random, 3))];
  s.data = random() % 1000;
  Setup plain = s;
  if (s.tree) plain.devices = 1;
  const Values expected = [&] {
    const Threads one(1);
    return trained(plain);
  }();
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Threads some(1 + below(random, 3));
    const Delays delays(random);
    EXPECT_EQ(trained(s), expected)
        << s.devices << " devices, batch " << s.batch << (s.tree ? ", tree(4)" : ", fixed")
        << (s.extras ? ", with dropout" : "") << ", " << get_num_threads() << " threads";
  }
}

namespace {

// What a failing step says: type, text and place.
std::string failure_of(Job& job) {
  try {
    job.step(8);
  } catch (const Boom& e) {
    return "Boom of replica " + std::to_string(e.replica);
  } catch (const ReplicaError& e) {
    std::string text =
        ramet::detail::join("replica ", e.replica(), " on ", e.device().str(), ": ", e.what());
    for (const auto& other : e.others()) (void)other, text += " +1";
    return text;
  } catch (const std::exception& e) { return e.what(); }
  return "no error";
}

}  // namespace

void check_errors(std::mt19937& random) {
  static const std::vector<Where> places = {
      Where::kKernelCheck,      Where::kForward,    Where::kForwardHook,  Where::kFunctionForward,
      Where::kFunctionBackward, Where::kTensorHook, Where::kParameterHook};
  const int n = 2 + below(random, 3);
  const int64_t bucket_bytes = random() % 2 ? 64 : 1 << 20;
  Job job(first_devices(n), bucket_bytes), clean(first_devices(n), bucket_bytes);
  const Values expected = clean.trained();
  // Two kinds of failure side by side: the module's own at `where`, a hook's on other replicas.
  const unsigned hooked = random() % (1u << n);
  std::atomic<bool> on{false};
  job.m->register_forward_pre_hook([&](nn::Module&, std::vector<Tensor>&) {
    pause();
    if (on && (hooked >> replica_index() & 1)) throw Boom(100 + replica_index());
  });
  std::string first;
  job.plan->where = places[random() % places.size()];
  job.plan->replicas = 1 + random() % ((1u << n) - 1);
  const bool with_hook = random() % 3 == 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    job.m->zero_grad();
    set_parameters(*job.m, 3);
    job.m->norm->reset_running_stats();
    const Threads some(1 + below(random, 3));
    on = with_hook;
    std::string text;
    {
      const Delays delays(random);
      text = failure_of(job);
    }
    on = false;
    if (repeat == 0) first = text;
    EXPECT_EQ(text, first);
  }
  EXPECT_EQ(first == "no error", job.plan->where == Where::kForwardHook && !(with_hook && hooked))
      << first;
  job.plan->where = Where::kNowhere;
  job.m->zero_grad();
  set_parameters(*job.m, 3);
  job.m->norm->reset_running_stats();
  EXPECT_EQ(job.trained(), expected) << "after: " << first;
}

namespace {

// Movements of a few tensors between five devices; `pause` decides how late each source is written.
std::vector<Values> moved(std::mt19937 random, const std::function<int()>& microseconds) {
  std::vector<Device> all = {kHost, d(0), d(1), d(2), d(3)};
  const auto any_device = [&] { return all[random() % all.size()]; };
  std::vector<Tensor> open;
  for (int k = 0; k < 4; ++k) {
    const Tensor t = make(Values(6, 0), kFloat, any_device());
    // Large and small ones: another order gives another sum.
    const float value = std::vector<float>{1e8f, 1.f, -1e8f, 3.f}[random() % 4];
    t.storage_impl()->pending =
        devices::post(t.device(), [p = static_cast<float*>(t->data), value, us = microseconds()] {
          std::this_thread::sleep_for(std::chrono::microseconds(us));
          for (int i = 0; i < 6; ++i) p[i] = value * static_cast<float>(i + 1);
        });
    open.push_back(t);
  }
  const auto any = [&] { return open[random() % open.size()]; };
  for (int step = 0; step < 12; ++step) {
    switch (random() % 4) {
      case 0: {
        std::vector<Tensor> in;
        for (int n = 1 + below(random, 5); n > 0; --n) in.push_back(any());
        parallel::ReduceOptions options;
        if (random() % 2 && in.size() <= 4) options.order = parallel::ReduceOrder::tree(4);
        open.push_back(parallel::reduce_add(in, any_device(), options));
        break;
      }
      case 1:
        for (const Tensor& t : parallel::broadcast(any(), {any_device(), any_device()}))
          open.push_back(t);
        break;
      case 2: {
        const auto pieces = parallel::scatter(any(), {any_device(), any_device(), any_device()});
        open.push_back(parallel::gather(pieces, 0, any_device()));
        break;
      }
      default: open.push_back(any() * 0.5 + 1); break;
    }
  }
  std::vector<Values> out;
  for (const Tensor& t : open) out.push_back(values(t));
  return out;
}

}  // namespace

void check_movements(std::mt19937& random) {
  const std::mt19937 program(static_cast<uint32_t>(random()));
  const auto expected = moved(program, [] { return 0; });
  for (int repeat = 0; repeat < 4; ++repeat) {
    const Delays delays(random);
    EXPECT_EQ(moved(program, [&] { return below(random, 300); }), expected);
  }
}

}  // namespace testing
}  // namespace ramet
