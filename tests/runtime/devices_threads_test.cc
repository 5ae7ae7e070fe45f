#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/context.h"
#include "runtime/devices/devices.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/thrown.h"

using ramet::detail::tls;

namespace ramet {
namespace {

Device cpu(int k) { return Device(kCPU, static_cast<DeviceIndex>(k)); }

// A task that holds its worker until it is let go.
class Gate {
 public:
  uint64_t post(Device device) {
    return devices::post(device, [this] { entered_.set_value(), open_.get_future().wait(); });
  }
  void wait_entered() { entered_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_, open_;
};

TEST(Devices, TasksRunInOrderOnTheirWorker) {
  std::vector<int> order;
  std::thread::id worker[2];
  uint64_t last = 0;
  for (int i = 0; i < 100; ++i)
    last = devices::post(cpu(1), [&, i] {
      order.push_back(i);
      worker[i % 2] = std::this_thread::get_id();
      EXPECT_TRUE(devices::on_worker());
      EXPECT_EQ(current_device(), cpu(1));
    });
  EXPECT_NE(last, 0u);
  devices::wait(last);
  EXPECT_TRUE(devices::done(last));
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(worker[0], worker[1]);
  EXPECT_NE(worker[0], std::this_thread::get_id());
  EXPECT_FALSE(devices::on_worker());
}

TEST(Devices, TicketsSayWhatIsDone) {
  Gate gate;
  const uint64_t first = gate.post(cpu(2));
  const uint64_t second = devices::post(cpu(2), [] {});
  gate.wait_entered();
  EXPECT_FALSE(devices::done(first));
  EXPECT_FALSE(devices::done(second));
  const uint64_t other = devices::post(cpu(3), [] {});  // another device does not wait
  devices::wait(other);
  gate.open();
  devices::wait(second);
  EXPECT_TRUE(devices::done(first) && devices::done(second));
}

TEST(Devices, CapturesDieBeforeTheTaskIsDone) {
  std::atomic<bool> dead{false};
  struct Slow {
    std::atomic<bool>* dead;
    ~Slow() {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      *dead = true;
    }
  };
  auto slow = std::make_shared<Slow>(Slow{&dead});
  dead = false;
  const uint64_t t = devices::post(cpu(1), [slow = std::move(slow)] {});
  devices::wait(t);
  EXPECT_TRUE(dead);
}

TEST(Devices, AWaitingWorkerRunsItsOwnQueue) {
  // 1 waits for 2, and 2's task waits for a later one of 1: without nesting neither would go on.
  std::vector<int> order;
  std::mutex mutex;
  const auto note = [&](int n) {
    std::lock_guard lock(mutex);
    order.push_back(n);
  };
  const uint64_t outer = devices::post(cpu(1), [&] {
    const uint64_t there = devices::post(cpu(2), [&] {
      const uint64_t back = devices::post(cpu(1), [&] { note(1); });
      devices::wait(back);
      EXPECT_TRUE(devices::done(back));
      note(2);
    });
    devices::wait(there);
    note(3);
  });
  devices::wait(outer);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(Devices, ANestedTaskHasAStateOfItsOwn) {
  const uint64_t outer = devices::post(cpu(1), [&] {
    tls.grad_mode = false;
    tls.default_dtype = kDouble;
    const uint64_t there = devices::post(cpu(2), [] {
      devices::wait(devices::post(cpu(1), [] {
        EXPECT_TRUE(tls.grad_mode);
        EXPECT_EQ(tls.default_dtype, kFloat);
        EXPECT_EQ(tls.cpu_device, 1);
        tls.inference_mode = true;
        TensorBase::empty({2}, kFloat, cpu(1));  // from the thread's own free lists
      }));
    });
    devices::wait(there);
    EXPECT_FALSE(tls.grad_mode || tls.inference_mode);
    EXPECT_EQ(tls.default_dtype, kDouble);
    tls.grad_mode = true;
    tls.default_dtype = kFloat;
  });
  devices::wait(outer);
}

TEST(Devices, PostAfterJoinsTheQueueLate) {
  Gate gate;
  const uint64_t before = gate.post(cpu(2));
  std::vector<int> order;
  const uint64_t late = devices::post_after(cpu(1), {before}, [&] { order.push_back(2); });
  const uint64_t soon = devices::post(cpu(1), [&] { order.push_back(1); });
  devices::wait(soon);  // not held up
  EXPECT_FALSE(devices::done(late));
  EXPECT_TRUE(devices::done(soon));
  Event event;
  event.record(cpu(1));  // everything posted so far, the parked task too
  EXPECT_FALSE(event.query());
  gate.wait_entered();
  gate.open();
  event.synchronize();
  EXPECT_TRUE(devices::done(late));
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  devices::wait(
      devices::post_after(cpu(1), {before, late, soon}, [] {}));  // all done: joins at once
}

TEST(Devices, SynchronizeWaitsForAll) {
  std::atomic<int> done{0};
  Gate gate;
  const uint64_t first = gate.post(cpu(4));
  for (int d = 0; d < 4; ++d)
    for (int i = 0; i < 10; ++i) devices::post(cpu(d), [&] { ++done; });
  devices::post_after(cpu(5), {first}, [&] { ++done; });
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    gate.open();
  });
  devices::synchronize();
  EXPECT_EQ(done, 41);
  opener.join();
}

// From the wait for the task, once; else from synchronize().
TEST(Devices, WhatATaskThrowsComesOut) {
  for (const Thrown what : kThrown) {
    const auto post = [&](int device) {
      return devices::post(cpu(device), [what] { throw_one(what); });
    };
    const uint64_t waited = post(1);
    EXPECT_EQ(thrown_by([&] { devices::wait(waited); }), what);
    EXPECT_TRUE(devices::done(waited));
    EXPECT_EQ(thrown_by([&] { devices::wait(waited); }), Thrown::kNothing);
    post(2);
    const uint64_t later = post(1);
    EXPECT_EQ(thrown_by(devices::synchronize), what);
    EXPECT_EQ(thrown_by([&] { devices::wait(later); }), Thrown::kNothing);
    EXPECT_EQ(thrown_by(devices::synchronize), what);
    EXPECT_EQ(thrown_by(devices::synchronize), Thrown::kNothing);
    // Inside a task that waits for it; and the workers go on.
    const uint64_t nested = devices::post(cpu(1), [&] {
      const uint64_t inner = post(1);
      EXPECT_EQ(thrown_by([&] { devices::wait(inner); }), what);
    });
    EXPECT_EQ(thrown_by([&] { devices::wait(nested); }), Thrown::kNothing);
  }
}

TEST(Devices, ManyPosters) {
  std::atomic<int> ran{0};
  std::vector<std::thread> posters;
  for (int t = 0; t < 4; ++t)
    posters.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const uint64_t ticket = devices::post(cpu((t + i) % 3), [&] { ++ran; });
        if (i % 10 == 0) devices::wait(ticket);
      }
    });
  for (auto& p : posters) p.join();
  devices::synchronize();
  EXPECT_EQ(ran, 800);
}

TEST(Events, AskAndWait) {
  Event never;
  EXPECT_TRUE(never.query());
  never.synchronize();
  Gate gate;
  gate.post(cpu(6));
  Event event;
  event.record(cpu(6));
  gate.wait_entered();
  EXPECT_FALSE(event.query());
  gate.open();
  event.synchronize();
  EXPECT_TRUE(event.query());
}

TEST(Events, AnotherDeviceComesAfter) {
  Gate gate;
  gate.post(cpu(6));
  Event event;
  event.record(cpu(6));
  gate.wait_entered();
  std::thread opener([&] { gate.open(); });
  event.wait(cpu(2));  // operations of cpu:2 run at once on this thread
  EXPECT_TRUE(event.query());
  int after = 0;
  devices::wait(devices::post(cpu(2), [&] { after = event.query() ? 1 : -1; }));
  EXPECT_EQ(after, 1);
  opener.join();
}

TEST(Events, TimesBetweenThem) {
  Event start(true), end(true), elsewhere(true), without;
  start.record(cpu(6));
  devices::post(cpu(6), [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
  end.record(cpu(6));
  elsewhere.record(cpu(2));
  without.record(cpu(6));
  for (const Event* e : {&start, &end, &elsewhere, &without}) e->synchronize();
  EXPECT_GE(start.elapsed_time(end), 20);
  EXPECT_EQ(end.elapsed_time(start), -start.elapsed_time(end));
  EXPECT_THROW(start.elapsed_time(elsewhere), Error);
  EXPECT_THROW(start.elapsed_time(without), Error);
  EXPECT_THROW(Event(true).elapsed_time(end), Error);
}

TEST(Pending, AReaderWaits) {
  TensorBase t = TensorBase::empty({1000}, kFloat, cpu(1));
  float* data = static_cast<float*>(t->data);
  devices::reset_host_syncs();
  Gate gate;
  gate.post(cpu(1));
  const uint64_t ticket = devices::post(cpu(1), [=] {
    for (int i = 0; i < 1000; ++i) data[i] = 3;
  });
  t.storage_impl()->pending = ticket;
  gate.wait_entered();
  std::thread opener([&] {
    while (devices::host_syncs() == 0) std::this_thread::yield();  // the reader has come
    gate.open();
  });
  EXPECT_EQ(static_cast<float*>(t.ptr())[999], 3);
  EXPECT_EQ(t.storage_impl()->pending, 0u);
  EXPECT_EQ(devices::host_syncs(), 1u);
  t.ptr();
  EXPECT_EQ(devices::host_syncs(), 1u);
  opener.join();
}

TEST(Pending, TheWriterItselfDoesNot) {
  TensorBase t = TensorBase::empty({4}, kFloat, cpu(1));
  Gate gate;
  gate.post(cpu(1));
  const uint64_t ticket = devices::post(cpu(1), [&t] { static_cast<float*>(t.ptr())[0] = 1; });
  t.storage_impl()->pending = ticket;
  gate.open();
  EXPECT_EQ(static_cast<float*>(t.ptr())[0], 1);
}

TEST(Pending, MemoryLivesUntilItIsWritten) {
  std::atomic<bool> written{false};
  Gate gate;
  gate.post(cpu(1));
  std::thread opener;
  {
    TensorBase t = TensorBase::empty({4}, kFloat, cpu(1));
    void* data = t->data;
    t.storage_impl()->pending = devices::post(cpu(1), [&written, data] {
      std::memset(data, 1, 16);
      written = true;
    });
    opener = std::thread([&] { gate.open(); });
  }
  EXPECT_TRUE(written);
  opener.join();
}

// Memory that was never written is not read, and may be freed.
TEST(Pending, AWriterThatThrows) {
  for (const Thrown what : kThrown) {
    TensorBase t = TensorBase::empty({4}, kFloat, cpu(1));
    t.storage_impl()->pending = devices::post(cpu(1), [what] { throw_one(what); });
    for (int i = 0; i < 2; ++i) EXPECT_EQ(thrown_by([&] { t.ptr(); }), what);
    EXPECT_EQ(thrown_by([&] { t = TensorBase(); }), Thrown::kNothing);
    EXPECT_EQ(thrown_by(devices::synchronize), what);
  }
}

TEST(DevicesDeathTest, WorkersEndWithTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static std::atomic<int> ran{0};
        std::atexit([] {
          std::_Exit(ran);
        });  // registered before the workers exist: runs after they have ended
        for (int i = 0; i < 20; ++i) devices::post(cpu(i % 3), [] { ++ran; });
        std::exit(0);
      },
      testing::ExitedWithCode(20), "");
}

}  // namespace
}  // namespace ramet
