// A replay makes no allocation: neither of the library's nor by operator new.
#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/memory/pool.h"
#include "tests/capture/training.h"

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
  Training run(kHost, Kind::kAdamW);
  run.schedule = nullptr;  // its step makes a list of rates
  Captured step([&](const Tensor& x, const Tensor& y) { return run.step(x, y); });
  const auto [x, y] = run.batch(8);
  for (int i = 0; i < 3; ++i) step(x, y);
  ASSERT_EQ(step.counters().replays, 1u);
  const auto count = [&](const auto& f) {
    pool::fail_allocation_after(0);
    news = 0;
    f();
    return std::pair(pool::allocations_counted(), news.load());
  };
  const auto replayed = count([&, &x = x, &y = y] { step(x, y); });
  EXPECT_EQ(replayed.first, 0u);
  EXPECT_EQ(replayed.second, 0u);
  EXPECT_GT(count([&, &x = x, &y = y] { run.step(x, y); }).first, 50u);  // the counter counts
}

// Whichever allocation of a capture fails: everything is as before, and the next one succeeds.
TEST(CapturedAllocations, EachOneOfACaptureFailsOnce) {
  for (const bool with_states : {false, true}) {
    Training run(kHost);
    const auto [x, y] = run.batch(4);
    if (with_states) run.step(x, y);
    const std::string before = run.state();
    Captured step([&](const Tensor& a, const Tensor& b) { return run.step(a, b); });
    uint64_t n = 1;
    for (;; ++n) {
      pool::fail_allocation_after(n);
      try {
        step(x, y);
        break;
      } catch (const OutOfMemoryError&) {}
      pool::fail_allocation_after(0);
      ASSERT_TRUE(run.state() == before) << "failure " << n;
      ASSERT_EQ(step.size(), 0u);
    }
    pool::fail_allocation_after(0);
    EXPECT_GT(n, 50u);
    const std::string after = run.state();
    Training eager(kHost);
    for (int i = 0; i <= int(with_states); ++i) eager.step(x, y);
    EXPECT_TRUE(after == eager.state());
    EXPECT_FALSE(after == before);
  }
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
