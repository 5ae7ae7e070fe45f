#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/base/machine_internal.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/devices.h"
#include "tests/runtime/expect_error.h"
#include "tests/runtime/thrown.h"

using ramet::detail::tls;

namespace ramet {
namespace {

struct Threads {
  explicit Threads(int n) : before(get_num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

TEST(ThreadPool, EveryTaskRunsOnce) {
  for (const int threads : {1, 2, 3, 7}) {
    Threads use(threads);
    for (const int64_t tasks : {0, 1, 2, 3, 5, 7, 8, 100, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      std::atomic<int> bad_slots{0};
      const int slots = max_parallel_slots();
      EXPECT_EQ(slots, threads);
      parallel_tasks(tasks, [&](int64_t i, int slot) {
        ++runs[static_cast<size_t>(i)];
        if (slot < 0 || slot >= slots) ++bad_slots;
      });
      for (auto& r : runs) ASSERT_EQ(r, 1);
      EXPECT_EQ(bad_slots, 0);
    }
  }
}

TEST(ThreadPool, SlotsAreExclusive) {
  Threads use(4);
  std::atomic<int> inside[4] = {}, clashes{0};
  for (int round = 0; round < 200; ++round)
    parallel_tasks(16, [&](int64_t, int slot) {
      clashes += ++inside[slot] != 1;
      std::this_thread::yield();
      --inside[slot];
    });
  EXPECT_EQ(clashes, 0);
}

TEST(ThreadPool, WritesAreSeenByTheCaller) {
  Threads use(3);
  std::vector<int64_t> out(64);
  for (int64_t round = 0; round < 500; ++round) {
    parallel_tasks(64, [&](int64_t i, int) { out[static_cast<size_t>(i)] = round * i; });
    for (int64_t i = 0; i < 64; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], round * i);
  }
}

TEST(ThreadPool, NestedRegionsRunInline) {
  Threads use(3);
  std::atomic<int64_t> sum{0};
  std::atomic<int> elsewhere{0};
  parallel_tasks(5, [&](int64_t i, int) {
    const auto me = std::this_thread::get_id();
    EXPECT_EQ(max_parallel_slots(), 1);
    parallel_tasks(7, [&](int64_t j, int slot) {
      sum += i * 7 + j;
      elsewhere += std::this_thread::get_id() != me || slot != 0;
    });
  });
  EXPECT_EQ(sum, 34 * 35 / 2);
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(max_parallel_slots(), 3);  // outside again
}

TEST(ThreadPool, ManyCallers) {
  Threads use(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t)
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round)
        parallel_tasks(10, [&](int64_t i, int) { sum += i; });
    });
  for (auto& c : callers) c.join();
  EXPECT_EQ(sum, 4 * 200 * 45);
}

TEST(ThreadPool, DevicesHaveTeamsOfTheirOwn) {
  Threads use(4);
  std::mutex mutex;
  std::set<std::thread::id> of[2];
  std::vector<std::thread> callers;
  std::latch both(2);  // a thread that ends may give its id to the other team's helper
  for (int d = 0; d < 2; ++d)
    callers.emplace_back([&, d] {
      DeviceGuard device(Device(kCPU, static_cast<DeviceIndex>(d)));
      ScopedValue<uint8_t> share(tls.share, 2);
      EXPECT_EQ(max_parallel_slots(), 2);
      for (int round = 0; round < 100; ++round)
        parallel_tasks(8, [&](int64_t, int slot) {
          EXPECT_LT(slot, 2);
          std::lock_guard lock(mutex);
          of[d].insert(std::this_thread::get_id());
        });
      both.arrive_and_wait();
    });
  for (auto& c : callers) c.join();
  EXPECT_LE(of[0].size(), 2u);
  for (const auto id : of[0]) EXPECT_EQ(of[1].count(id), 0u);
}

// On helpers too; of several tasks that of the first, for any number of threads.
TEST(ThreadPool, WhatATaskThrowsComesOut) {
  for (const int threads : {1, 2, 4}) {
    Threads use(threads);
    for (const Thrown what : kThrown) {
      std::atomic<int> ran{0}, on_helpers{0};
      int number = -1;
      EXPECT_EQ(what, thrown_by(
                          [&] {
                            parallel_tasks(200, [&](int64_t i, int slot) {
                              ++ran;
                              if (slot == 0 && threads > 1) {  // the helpers take some, too
                                std::this_thread::sleep_for(std::chrono::microseconds(200));
                              }
                              on_helpers += slot != 0;
                              if (i >= 5 && i % 3 == 2) throw_one(what, int(i));
                            });
                          },
                          &number));
      if (what != Thrown::kNoMemory) { EXPECT_EQ(number, 5); }
      EXPECT_GE(ran, 6);
      if (threads > 1) { EXPECT_GT(on_helpers, 0); }
      // And the pool goes on.
      std::atomic<int> good{0};
      parallel_tasks(50, [&](int64_t, int) { ++good; });
      EXPECT_EQ(good, 50);
    }
  }
}

TEST(ThreadPool, Settings) {
  EXPECT_GE(get_num_threads(), 1);
  EXPECT_ERROR(set_num_threads(0), Error, "got 0, expected 1 to 256");
  EXPECT_ERROR(set_num_threads(257), Error, "got 257");
  EXPECT_EQ(parallel_grain(), 32 << 10);
}

TEST(ThreadPoolDeathTest, SettingsFromTheEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto with = [](const char* threads, const char* grain) {
    setenv("RAMET_NUM_THREADS", threads, 1);
    setenv("RAMET_PAR_GRAIN", grain, 1);
    try {
      std::exit(get_num_threads() + static_cast<int>(parallel_grain()));
    } catch (const Error& e) { std::exit(std::string(e.what()).find("[RAMET_") == 0 ? 100 : 101); }
  };
  EXPECT_EXIT(with("5", "60"), testing::ExitedWithCode(65), "");
  EXPECT_EXIT(with("0", "60"), testing::ExitedWithCode(100), "");
  EXPECT_EXIT(with("2", "-1"), testing::ExitedWithCode(100), "");
  EXPECT_EXIT(with("2x", "1"), testing::ExitedWithCode(100), "");
  // The settings of other libraries hold where this one has none.
  const auto told_others = [](const char* threads, const char* own) {
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv("RAMET_NUM_THREADS", own, 1);
    const int n = get_num_threads(), cores = std::min(detail::usable_threads(), 256);
    std::exit(n == 256 ? 66 : n == cores ? 77 : n);
  };
  EXPECT_EXIT(told_others("7", ""), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(told_others("6 , 2", ""), testing::ExitedWithCode(6), "");
  EXPECT_EXIT(told_others("6,2", "5"), testing::ExitedWithCode(5), "");
  EXPECT_EXIT(told_others("1000", ""), testing::ExitedWithCode(66), "");
  for (const char* none : {"many", "0", "-3", "4x", ","})
    EXPECT_EXIT(told_others(none, ""), testing::ExitedWithCode(77), "") << none;
}

struct Static {
  ~Static() {
    std::atomic<int> ran{0};
    parallel_tasks(10, [&](int64_t, int) { ++ran; });
    std::_Exit(ran == 10 ? 7 : 8);
  }
};
TEST(ThreadPoolDeathTest, ServesStaticDestructors) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static Static object;  // constructed before the pool: destroyed after it
        set_num_threads(3);
        parallel_tasks(10, [](int64_t, int) {});
        std::exit(0);
      },
      testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace ramet
