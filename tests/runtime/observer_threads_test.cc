#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/logging.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"
#include "runtime/observe/thread_local_state.h"
#include "tests/runtime/expect_error.h"

using ramet::detail::tls;

namespace ramet {
namespace {

// What kernels/kernel.h does around a kernel.
template <class F> void call_kernel(const char* name, Device device, F&& work) {
  int args = 5;
  if (auto* observer = detail::kernel_observer.load()) {
    KernelCall call{name, {device, 0}, &args, sizeof args};
    observer(call);
    work();
    call.done = true;
    observer(call);
  } else {
    work();
  }
}

struct Watch {  // an observer that writes a journal
  std::mutex mutex;
  std::vector<std::string> journal;
  uint64_t number;
  Watch() {
    Observer o;
    const auto note = [this](std::string text) {
      std::lock_guard lock(mutex);
      journal.push_back(std::move(text));
    };
    o.scope_begin = [note](const Scope& s) {
      note("+" + s.name + (s.parent ? "<" + s.parent->name : ""));
    };
    o.scope_end = [note](const Scope& s) {
      note("-" + s.name + (s.end >= s.start && s.start ? "" : " backwards"));
    };
    o.kernel_begin = [note](const KernelCall& c) { note(std::string("k+") + c.name); };
    o.kernel_end = [note](const KernelCall& c) {
      note(std::string("k-") + c.name +
           (c.start && c.bytes == 4 && *static_cast<const int*>(c.args) == 5 ? "" : " wrong"));
    };
    number = add_observer(std::move(o));
  }
  ~Watch() { remove_observer(number); }
};

TEST(Observer, WaitsForAGpu) {
  std::vector<HostWait> seen;
  const Device gpu(kCUDA, 1);
  { const RecordWait nobody("item", gpu); }
  Observer o;
  o.host_wait = [&](const HostWait& w) {
    seen.push_back(w);
    const RecordWait own("item", gpu);  // what an observer does is not observed
  };
  const uint64_t number = add_observer(std::move(o));
  { const RecordWait wait("copy", gpu); }
  try {
    const RecordWait fails("item", gpu);
    throw std::runtime_error("lost");
  } catch (const std::runtime_error&) {}
  remove_observer(number);
  { const RecordWait nobody("item", gpu); }
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_STREQ(seen[0].what, "copy");
  EXPECT_EQ(seen[0].device, gpu);
  EXPECT_EQ(seen[0].from, nullptr);
  EXPECT_GT(seen[0].start, 0u);
  EXPECT_GE(seen[0].end, seen[0].start);
}

TEST(Observer, NobodyLooks) {
  EXPECT_FALSE(observed());
  RecordScope scope("unseen");
  EXPECT_EQ(tls.scope, nullptr);
  EXPECT_EQ(detail::kernel_observer.load(), nullptr);
}

TEST(Observer, SeesScopesAndKernels) {
  Watch watch;
  {
    RecordScope a("a");
    RecordScope b(std::string("b"));
    call_kernel("add", Device(kCPU, 0), [] {});
  }
  { RecordScope c("c"); }
  EXPECT_EQ(watch.journal,
            (std::vector<std::string>{"+a", "+b<a", "k+add", "k-add", "-b", "-a", "+c", "-c"}));
}

TEST(Observer, SeveralUntilRemoved) {
  RecordScope unseen("from before");
  {
    Watch one;
    {
      Watch two;
      RecordScope scope("x");
    }
    RecordScope scope("y");
    EXPECT_EQ(one.journal,
              (std::vector<std::string>{"+x", "-x", "+y"}));  // `unseen` is no scope's parent
  }
  EXPECT_FALSE(observed());
  EXPECT_EQ(detail::kernel_observer.load(), nullptr);
  EXPECT_EQ(tls.scope, nullptr);
  EXPECT_ERROR(remove_observer(123456), Error, "no such observer: got 123456");
}

TEST(Observer, ItsOwnOperationsAreNotObserved) {
  std::atomic<int> calls{0};
  Observer o;
  o.scope_begin = [&](const Scope&) {
    ++calls;
    RecordScope inside("inside");
    call_kernel("k", Device(kCPU, 0), [] {});
  };
  o.kernel_begin = [&](const KernelCall&) { ++calls; };
  const uint64_t number = add_observer(o);
  { RecordScope scope("s"); }
  EXPECT_EQ(calls, 1);
  remove_observer(number);
}

TEST(Observer, ExceptionsAreLoggedOnly) {
  std::vector<std::string> messages;
  set_log_handler([&](LogLevel, const std::string& m) { messages.push_back(m); });
  Observer o;
  o.scope_begin = [](const Scope&) { throw std::runtime_error("boom"); };
  o.scope_end = [](const Scope&) { throw 5; };
  const uint64_t number = add_observer(o);
  { RecordScope scope("s"); }
  remove_observer(number);
  set_log_handler({});
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0], "[observer] an observer failed: got \"boom\", expected no exception");
  EXPECT_NE(messages[1].find("unknown exception"), std::string::npos);
}

TEST(Observer, ARawHookIsLeftAlone) {
  static std::atomic<int> raw{0};
  detail::kernel_observer = [](KernelCall&) { ++raw; };
  {
    Watch watch;
    call_kernel("add", Device(kCPU, 0), [] {});
    EXPECT_TRUE(watch.journal.empty());
  }
  EXPECT_EQ(raw, 2);
  EXPECT_NE(detail::kernel_observer.load(), nullptr);
  detail::kernel_observer = nullptr;
}

TEST(Observer, ScopesFollowWorkToWorkers) {
  std::mutex mutex;
  std::vector<std::string> seen;
  Observer o;
  o.scope_end = [&](const Scope& s) {
    std::lock_guard lock(mutex);
    if (s.parent) seen.push_back(s.name + "<" + s.parent->name + " on " + s.device.str());
  };
  const uint64_t number = add_observer(o);
  {
    RecordScope forward("forward");
    const ThreadLocalState state;
    for (int d = 1; d < 3; ++d)
      devices::post(Device(kCPU, static_cast<DeviceIndex>(d)), [&, d] {
        ThreadLocalStateGuard guard(state);
        DeviceGuard device(Device(kCPU, static_cast<DeviceIndex>(d)));
        RecordScope replica("replica");
      });
    devices::synchronize();
  }
  remove_observer(number);
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen,
            (std::vector<std::string>{"replica<forward on cpu:1", "replica<forward on cpu:2"}));
}

TEST(Observer, ComesAndGoesWhileThreadsWork) {
  std::atomic<bool> stop{false};
  std::atomic<int64_t> begun{0}, ended{0}, kernels{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) {
        RecordScope a("a");
        RecordScope b("b");
        call_kernel("k", Device(kCPU, 0), [] {});
      }
    });
  for (int i = 0; i < 100; ++i) {
    Observer o;
    o.scope_begin = [&](const Scope&) { ++begun; };
    o.scope_end = [&](const Scope&) { ++ended; };
    o.kernel_end = [&](const KernelCall&) { ++kernels; };
    const uint64_t number = add_observer(o);
    const int64_t before = kernels;
    while (kernels == before) std::this_thread::yield();
    remove_observer(number);
  }
  stop = true;
  for (auto& t : threads) t.join();
  EXPECT_GT(begun, 0);
  EXPECT_GT(ended, 0);
  EXPECT_EQ(tls.scope, nullptr);
}

}  // namespace
}  // namespace ramet
