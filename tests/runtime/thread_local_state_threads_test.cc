#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/devices/devices.h"
#include "runtime/observe/observer.h"
#include "runtime/observe/thread_local_state.h"
#include "tests/runtime/expect_error.h"

using ramet::detail::tls;

namespace ramet {
namespace {

TEST(ThreadLocalState, CarriesWhatFollowsWork) {
  RandomRegion region(Device(kCPU, 0));
  ReplicaRandomGuard random(region.shard(1, 4, 4));
  ScopedValue<bool> grad(tls.grad_mode, false), inference(tls.inference_mode, true),
      check_nan(tls.anomaly_check_nan, false);
  const ScopedValue<uint8_t> watching(tls.watching, 3);
  ScopedValue<ScalarType> dtype(tls.default_dtype, kHalf);
  ScopedValue<uint8_t> cpu(tls.cpu_device, 3), cuda(tls.cuda_device, 2), share(tls.share, 5);
  ScopedValue<int16_t> replica(tls.replica, 6);
  ScopedValue<uint64_t> counter(tls.counter, 4711);
  ScopedValue<bool> parallel(tls.in_parallel, true), draining(tls.draining, true);
  const ThreadLocalState state;
  const ReplicaRandom* mine = tls.random;
  std::thread([&] {
    const Context fresh = tls;
    {
      ThreadLocalStateGuard guard(state);
      EXPECT_TRUE(!tls.grad_mode && tls.inference_mode && tls.watching == 3 &&
                  !tls.anomaly_check_nan);
      EXPECT_EQ(tls.default_dtype, kHalf);
      EXPECT_EQ(tls.cpu_device, 3);
      EXPECT_EQ(tls.cuda_device, 2);
      EXPECT_EQ(tls.share, 5);
      EXPECT_EQ(tls.replica, 6);
      EXPECT_EQ(tls.random, mine);
      EXPECT_EQ(tls.counter, fresh.counter);  // these stay the thread's
      EXPECT_FALSE(tls.in_parallel || tls.draining);
      tls.counter = 99;
      tls.grad_mode = true;
    }
    EXPECT_TRUE(tls.grad_mode && !tls.inference_mode && !tls.watching && tls.anomaly_check_nan);
    EXPECT_EQ(tls.default_dtype, kFloat);
    EXPECT_EQ(tls.cpu_device, 0);
    EXPECT_EQ(tls.cuda_device, 0);
    EXPECT_EQ(tls.share, 0);
    EXPECT_EQ(tls.replica, -1);
    EXPECT_EQ(tls.random, nullptr);
    EXPECT_EQ(tls.counter, 99u);  // goes on counting
  }).join();
}

TEST(ThreadLocalState, KeepsScopesAndRandomContextAlive) {
  const uint64_t observer = add_observer(Observer());
  std::optional<ThreadLocalState> state;
  {
    RandomRegion region(Device(kCPU, 0));
    ReplicaRandomGuard random(region.shard(0, 0, 4));
    RecordScope outer("outer");
    RecordScope scope("inner");
    state.emplace();
  }
  EXPECT_EQ(tls.scope, nullptr);
  std::thread([copy = ThreadLocalState(*state)] {
    ThreadLocalStateGuard guard(copy);
    ASSERT_NE(tls.scope, nullptr);
    EXPECT_EQ(tls.scope->name, "inner");
    EXPECT_EQ(tls.scope->parent->name, "outer");
    EXPECT_EQ(tls.random->samples, 4);
    RecordScope deeper("deeper");
    EXPECT_EQ(tls.scope->parent->name, "inner");
  }).join();
  state.reset();
  remove_observer(observer);
}

thread_local int t_user = 0;

TEST(ThreadLocalState, CarriesRegisteredState) {
  const uint64_t number = register_thread_local_state(
      [] { return std::make_shared<int>(t_user); },
      [](const std::shared_ptr<void>& p) { t_user = *static_cast<int*>(p.get()); });
  t_user = 5;
  const ThreadLocalState state;
  t_user = 6;
  std::thread([&] {
    t_user = 1;
    {
      ThreadLocalStateGuard guard(state);
      EXPECT_EQ(t_user, 5);
    }
    EXPECT_EQ(t_user, 1);
  }).join();
  unregister_thread_local_state(number);
  {
    ThreadLocalStateGuard guard(state);
    EXPECT_EQ(t_user, 6);  // nothing restores it any more
  }
  EXPECT_ERROR(unregister_thread_local_state(number), Error, "no such state");
  EXPECT_ERROR(register_thread_local_state(nullptr, nullptr), Error, "empty function");
}

TEST(ThreadLocalState, ManyThreadsUseOneState) {
  tls.default_dtype = kDouble;
  auto state = std::make_shared<ThreadLocalState>();
  tls.default_dtype = kFloat;
  for (int i = 0; i < 200; ++i)
    devices::post(Device(kCPU, static_cast<DeviceIndex>(i % 4)), [state] {
      ThreadLocalStateGuard guard(*state);
      EXPECT_EQ(tls.default_dtype, kDouble);
    });
  state.reset();
  devices::synchronize();
}

}  // namespace
}  // namespace ramet
