// A replay makes no allocation: neither of the library's nor by operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/memory/pool.h"
#include "tests/capture/support.h"

namespace {
std::atomic<uint64_t> news{0};
// Before anything asks: every allocation of the library is counted, none fails.
const int counted = setenv("RAMET_FAIL_ALLOC", "0", 1);
}  // namespace

// Not inlined: the compiler would see malloc's memory given to delete.
[[gnu::noinline]] void* operator new(size_t bytes) {
  ++news;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept { std::free(p); }

namespace ramet {
namespace capture_tests {
namespace {

TEST(CapturedAllocations, NoneInAReplay) {
  ASSERT_EQ(counted, 0);
  ASSERT_TRUE(pool::failures_enabled());
  Net net;
  optim::AdamW adam(net->parameters(), optim::AdamWOptions(0.01));
  const auto body = [&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    Tensor loss = cross_entropy_loss(net->forward(x), y);
    loss.backward();
    adam.step();
    return loss;
  };
  Captured step(body);
  const Tensor x = randn({8, 1, 12, 12}), y = randint(0, 5, {8});
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  const auto count = [&](const auto& f) {
    pool::fail_allocation_after(0);
    news = 0;
    f();
    return std::pair(pool::allocations_counted(), news.load());
  };
  const auto replayed = count([&] { step(x, y); });
  EXPECT_EQ(replayed.first, 0u);
  EXPECT_EQ(replayed.second, 0u);
  EXPECT_GT(count([&] { body(x, y); }).first, 50u);  // the counter counts
}

// Whichever allocation of a capture fails: everything is as before, and the next one succeeds.
TEST(CapturedAllocations, EachOneOfACaptureFailsOnce) {
  for (const bool with_states : {false, true}) {
    manual_seed(3);
    Net net;
    optim::Adam adam(net->parameters(), optim::AdamOptions(0.01));
    const auto body = [&](const Tensor& x, const Tensor& y) {
      adam.zero_grad();
      Tensor loss = cross_entropy_loss(net->forward(x), y);
      loss.backward();
      adam.step();
      return loss;
    };
    const Tensor x = randn({4, 1, 12, 12}), y = randint(0, 5, {4});
    if (with_states) body(x, y);
    const auto state = [&] {
      std::string s;
      for (const Tensor& t : net->parameters()) s += bits(t) + bits(t.grad());
      for (const Tensor& t : net->buffers()) s += bits(t);
      s += std::to_string(default_generator(kHost).get_state().offset);
      for (const Tensor& t : net->parameters()) {
        const auto found = adam.state().find(t.impl());
        if (found == adam.state().end()) continue;
        const auto& a = static_cast<const optim::AdamParamState&>(*found->second);
        s += std::to_string(a.step()) + bits(a.exp_avg()) + bits(a.exp_avg_sq());
      }
      return s;
    };
    const std::string before = state();
    Captured step(body);
    uint64_t n = 1;
    for (;; ++n) {
      pool::fail_allocation_after(n);
      try {
        step(x, y);
        break;
      } catch (const OutOfMemoryError&) {}
      pool::fail_allocation_after(0);
      ASSERT_TRUE(state() == before) << "failure " << n;
      ASSERT_EQ(step.size(), 0u);
    }
    pool::fail_allocation_after(0);
    EXPECT_GT(n, 50u);
    // The eager reference.
    const std::string after = state();
    manual_seed(3);
    Net other;
    optim::Adam other_adam(other->parameters(), optim::AdamOptions(0.01));
    const Tensor x2 = randn({4, 1, 12, 12}), y2 = randint(0, 5, {4});
    for (int i = 0; i <= int(with_states); ++i) {
      other_adam.zero_grad();
      cross_entropy_loss(other->forward(x2), y2).backward();
      other_adam.step();
    }
    for (size_t i = 0; i < net->parameters().size(); ++i)
      EXPECT_EQ(bits(net->parameters()[i]), bits(other->parameters()[i])) << i;
    EXPECT_NE(after, before);
  }
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
