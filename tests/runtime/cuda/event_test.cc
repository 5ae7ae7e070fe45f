// The public Event on GPUs.
#include <atomic>
#include <thread>

#include "runtime/cuda/check.h"
#include "runtime/cuda/data_faults.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "tests/runtime/cuda/gate.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {
namespace {

using cuda::Queue;

/// Async, whatever schedule the environment asks for: the thread that checks also opens the gate.
emulated::Settings side_by_side() {
  emulated::Settings settings = gpu_settings();
  settings.streams = emulated::StreamMode::Async;
  return settings;
}

TEST(GpuEvents, StandForWhatWasQueuedBefore) {
  const Gpus gpus(side_by_side());
  Event never;
  EXPECT_TRUE(never.query());
  never.synchronize();
  never.wait(kGpu);

  Gate before, after;
  queue(0, Gate::wait, &before);
  Event event;
  event.record(kGpu);
  queue(0, Gate::wait, &after);
  EXPECT_FALSE(event.query());
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess) << "the next launch would find it";
  const Event copy = event;
  before.open = true;
  event.synchronize();  // not for what came later
  EXPECT_TRUE(before.passed);
  EXPECT_TRUE(event.query());
  event.record(kGpu);
  EXPECT_FALSE(event.query());
  EXPECT_TRUE(copy.query()) << "a copy stays where it is";
  after.open = true;
  event.synchronize();
  EXPECT_TRUE(after.passed);
}

TEST(GpuEvents, AnotherGpuWaitsAndTheHostDoesNot) {
  const Gpus gpus(side_by_side());
  Gate gate;
  struct Seen {
    Gate* gate;
    std::atomic<int> passed{-1};
  } seen{&gate};
  queue(0, Gate::wait, &gate);
  Event event;
  event.record(kGpu);
  event.wait(kSecond);
  queue(
      1, [](void* s) { static_cast<Seen*>(s)->passed = static_cast<Seen*>(s)->gate->passed; },
      &seen);
  EXPECT_EQ(seen.passed, -1);
  gate.open = true;
  cuda::synchronize(1);
  EXPECT_EQ(seen.passed, 1);
}

TEST(GpuEvents, TheHostsDevicesWaitForIt) {
  const Gpus gpus(side_by_side());
  Gate gate;
  queue(0, Gate::wait, &gate);
  Event event;
  event.record(kGpu);
  std::thread opens([&] { gate.open = true; });
  event.wait(kCpu);
  EXPECT_TRUE(gate.passed);
  opens.join();
}

// What is on a worker's queue is given to the device before the event is.
TEST(GpuEvents, WorkersComeFirst) {
  const Gpus gpus(side_by_side());
  Gate on_worker, on_gpu;
  devices::post(kGpu, [&] {
    Gate::wait(&on_worker);
    queue(0, Gate::wait, &on_gpu);
  });
  Event event;
  event.record(kGpu);
  EXPECT_FALSE(event.query());
  on_worker.open = true;
  event.wait(kSecond);
  EXPECT_FALSE(event.query());
  on_gpu.open = true;
  event.synchronize();
  EXPECT_TRUE(on_gpu.passed);
}

TEST(GpuEvents, ErrorsInDataAreTold) {
  const Gpus gpus(side_by_side());
  const auto fault = [](cuda::FaultWord& word) {
    const gpu::DataFault to = gpu::library()->fault(0, {"embedding", "rows", true, 0, 4});
    word = {0, 0, 3, 9, to.check};
    cuda::DeviceState& state = cuda::device_state(0, "test");
    const cuda::CardGuard card("test", state);
    const cuda::Look look(state);
    RAMET_CUDA("test", 0,
               cudaMemcpyAsync(to.word, &word, sizeof word, cudaMemcpyHostToDevice,
                               state.stream(Queue::kCompute, "test")));
  };
  cuda::FaultWord word;
  Event before, after;
  before.record(kGpu);
  fault(word);
  after.record(kGpu);
  EXPECT_NO_THROW(before.synchronize());
  EXPECT_MESSAGE(after.synchronize(), "[embedding] index out of range: got 9 at position 3");
  EXPECT_NO_THROW(after.synchronize());
  fault(word);
  after.record(kGpu);
  after.wait(kSecond);
  EXPECT_MESSAGE(cuda::synchronize(1), "[embedding] index out of range");
}

TEST(GpuEvents, TimesBetweenThem) {
  const Gpus gpus(side_by_side());
  Event start(true), middle(true), end(true), other(true), without;
  const auto pause = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  start.record(kGpu);
  queue(0, pause, nullptr);
  middle.record(kGpu);
  Gate gate;
  queue(0, Gate::wait, &gate);
  end.record(kGpu);
  EXPECT_MESSAGE(end.elapsed_time(start), "the first event is not done yet");
  gate.open = true;
  end.synchronize();
  EXPECT_GE(start.elapsed_time(middle), 19);
  EXPECT_GE(middle.elapsed_time(end), 0);
  EXPECT_EQ(middle.elapsed_time(start), -start.elapsed_time(middle));
  EXPECT_EQ(start.elapsed_time(start), 0);

  EXPECT_MESSAGE(start.elapsed_time(other), "the second event was never recorded");
  other.record(kSecond);
  other.synchronize();
  EXPECT_MESSAGE(start.elapsed_time(other), "got events of cuda:0 and cuda:1, expected one device");
  without.record(kGpu);
  without.synchronize();
  EXPECT_MESSAGE(without.elapsed_time(end), "the first event has no times, expected Event(true)");
}

TEST(GpuEvents, OfADeviceThatDoesNotExist) {
  RAMET_EMULATED_ONLY("a machine with two cards");
  const Gpus gpus(side_by_side());
  Event event;
  EXPECT_MESSAGE(event.record(Device(kCUDA, 5)), "got cuda:5");
}

}  // namespace
}  // namespace ramet::testing
