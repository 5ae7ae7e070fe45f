// Streams and events: order, waits, modes, what is refused.
#include <atomic>
#include <set>
#include <string>
#include <thread>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"

namespace ramet::testing {
namespace {

using emulated::StreamMode;

emulated::Settings in_mode(StreamMode mode, uint64_t seed = 1) {
  emulated::Settings s = test_settings();
  s.streams = mode;
  s.stream_seed = seed;
  return s;
}

/// Writes letters in the order in which work runs.
class Trace {
 public:
  void put(cudaStream_t stream, char letter) {
    EXPECT_CUDA(emulated::enqueue_work(stream, "trace",
                                       [this, letter] {
                                         std::lock_guard<std::mutex> lock(mutex_);
                                         text_ += letter;
                                       }),
                cudaSuccess);
  }
  std::string text() {
    std::lock_guard<std::mutex> lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

TEST(EmulatedStreams, EachKeepsItsOrder) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    Trace trace;
    const cudaStream_t a = new_stream(), b = new_stream();
    for (int i = 0; i < 10; ++i) {
      trace.put(a, char('a' + i));
      trace.put(b, char('A' + i));
    }
    EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    std::string lower, upper;
    for (const char c : trace.text()) (c >= 'a' ? lower : upper) += c;
    EXPECT_EQ(lower, "abcdefghij") << schedule.name;
    EXPECT_EQ(upper, "ABCDEFGHIJ") << schedule.name;
  }
}

TEST(EmulatedStreams, EventsOrderThem) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    Trace trace;
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t event = new_event();
    trace.put(a, '1');
    ASSERT_CUDA(cudaEventRecord(event, a), cudaSuccess);
    trace.put(a, 'x');
    ASSERT_CUDA(cudaStreamWaitEvent(b, event), cudaSuccess);
    trace.put(b, '2');
    ASSERT_CUDA(cudaEventRecord(event, b), cudaSuccess);  // the wait keeps what it waits for
    ASSERT_CUDA(cudaEventDestroy(event), cudaSuccess);
    ASSERT_CUDA(cudaStreamSynchronize(b), cudaSuccess);
    const std::string text = trace.text();
    EXPECT_LT(text.find('1'), text.find('2')) << schedule.name << ": " << text;
    ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  }
}

TEST(EmulatedStreams, EagerRunsAtOnceOnTheCallersThread) {
  Devices devices(in_mode(StreamMode::Eager));
  std::thread::id ran;
  ASSERT_CUDA(
      emulated::enqueue_work(new_stream(), "test", [&] { ran = std::this_thread::get_id(); }),
      cudaSuccess);
  EXPECT_EQ(ran, std::this_thread::get_id());
}

// Work that no caller waits for does not run: luck does not hide a forgotten event.
TEST(EmulatedStreams, LazyRunsOnlyWhatIsNeeded) {
  Devices devices(in_mode(StreamMode::Lazy));
  Trace trace;
  const cudaStream_t a = new_stream(), b = new_stream(), c = new_stream();
  const cudaEvent_t event = new_event();
  trace.put(a, 'a');
  ASSERT_CUDA(cudaEventRecord(event, a), cudaSuccess);
  trace.put(a, 'x');
  trace.put(b, 'y');
  ASSERT_CUDA(cudaStreamWaitEvent(c, event), cudaSuccess);
  trace.put(c, 'c');
  EXPECT_EQ(trace.text(), "");
  ASSERT_CUDA(cudaStreamSynchronize(c), cudaSuccess);
  EXPECT_EQ(trace.text(), "ac");
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(trace.text().size(), 4u);
}

TEST(EmulatedStreams, RandomIsGivenByTheSeed) {
  const auto order = [](uint64_t seed) {
    Devices devices(in_mode(StreamMode::Random, seed));
    Trace trace;
    std::vector<cudaStream_t> streams;
    for (int i = 0; i < 8; ++i) streams.push_back(new_stream());
    for (int i = 0; i < 8; ++i) trace.put(streams[size_t(i)], char('a' + i));
    EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    return trace.text();
  };
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    seen.insert(order(seed));
    EXPECT_EQ(order(seed), order(seed)) << seed;
  }
  EXPECT_EQ(seen.size(), 5u);
}

// The default stream and blocking streams wait for each other, non-blocking ones for neither.
TEST(EmulatedStreams, LegacyDefaultStream) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    const auto v = uniform(1000, 5);
    DeviceArray<float> a(v), b(v), c{1000}, d{1000};
    const cudaStream_t blocking = new_stream(cudaStreamDefault);
    for (int i = 0; i < 5; ++i) {
      ASSERT_CUDA(add(a, b, c, 1000, blocking), cudaSuccess);
      ASSERT_CUDA(add(c, c, d, 1000, nullptr), cudaSuccess);
      ASSERT_CUDA(cudaMemsetAsync(c, 0, 4000, blocking), cudaSuccess);
    }
    const auto r = d.host();
    for (size_t i = 0; i < r.size(); ++i) ASSERT_EQ(r[i], 4 * v[i]) << schedule.name;
  }
  Devices devices(in_mode(StreamMode::Lazy));
  Trace trace;
  const cudaStream_t free = new_stream();
  trace.put(free, 'f');
  trace.put(nullptr, 'd');
  ASSERT_CUDA(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(trace.text(), "d");
}

TEST(EmulatedStreams, QueriesMakeProgress) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    Trace trace;
    const cudaStream_t a = new_stream();
    const cudaEvent_t event = new_event();
    EXPECT_CUDA(cudaEventQuery(event), cudaSuccess);  // never recorded
    for (int i = 0; i < 5; ++i) trace.put(a, 'a');
    ASSERT_CUDA(cudaEventRecord(event, a), cudaSuccess);
    int polls = 0;
    while (cudaEventQuery(event) == cudaErrorNotReady && polls < 1000000) {
      ++polls;
      std::this_thread::yield();
    }
    EXPECT_CUDA(cudaEventQuery(event), cudaSuccess);
    EXPECT_CUDA(cudaStreamQuery(a), cudaSuccess);
    EXPECT_EQ(trace.text(), "aaaaa") << schedule.name;
    // "Not ready" is no error, but stays as one does.
    EXPECT_EQ(cudaGetLastError(), polls ? cudaErrorNotReady : cudaSuccess) << schedule.name;
    EXPECT_CUDA(cudaGetLastError(), cudaSuccess);
  }
}

TEST(EmulatedStreams, HostFunctionsMayNotCallCuda) {
  Devices devices;
  struct Seen {
    cudaError_t error = cudaSuccess;
    std::thread::id thread;
  } seen;
  const auto function = [](void* data) {
    void* memory = nullptr;
    static_cast<Seen*>(data)->error = cudaMalloc(&memory, 4);
    static_cast<Seen*>(data)->thread = std::this_thread::get_id();
  };
  const cudaStream_t stream = new_stream();
  ASSERT_CUDA(cudaLaunchHostFunc(stream, function, &seen), cudaSuccess);
  ASSERT_CUDA(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_CUDA(seen.error, cudaErrorNotPermitted);
  EXPECT_NE(seen.thread, std::this_thread::get_id());
}

// Queued work outlives its stream's handle; the handle does not.
TEST(EmulatedStreams, DestroyedWithWorkInThem) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    DeviceArray<float> x(std::vector<float>(500, 1.0f));
    const cudaStream_t stream = new_stream();
    for (int i = 0; i < 10; ++i) ASSERT_CUDA(increment(x, 500, stream), cudaSuccess);
    ASSERT_CUDA(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_CUDA(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
    EXPECT_CUDA(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(x.host(), std::vector<float>(500, 11.0f)) << schedule.name;
  }
}

TEST(EmulatedStreams, EventsBelongToADevice) {
  Devices devices;
  const cudaEvent_t event = new_event();
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  const cudaStream_t stream = new_stream();
  EXPECT_CUDA(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaStreamWaitEvent(stream, event), cudaSuccess);  // waiting is allowed
  float milliseconds = 0;
  EXPECT_CUDA(cudaEventElapsedTime(&milliseconds, event, event), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventDestroy(event), cudaSuccess);
  EXPECT_CUDA(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
}

TEST(EmulatedStreams, AMeetingNeedsAll) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    Trace trace;
    std::atomic<int> met{0};
    const cudaStream_t a = new_stream(), b = new_stream();
    const auto meeting = emulated::make_meeting(2, [&] { ++met; });
    ASSERT_CUDA(emulated::join_meeting(a, "meeting", meeting), cudaSuccess);
    trace.put(a, '2');
    trace.put(b, '1');
    ASSERT_CUDA(emulated::join_meeting(b, "meeting", meeting), cudaSuccess);
    ASSERT_CUDA(cudaStreamSynchronize(a), cudaSuccess);
    EXPECT_EQ(trace.text(), "12") << schedule.name;
    EXPECT_EQ(met, 1);
  }
}

TEST(EmulatedStreams, WaitingForEverIsReported) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    const cudaStream_t a = new_stream();
    const auto meeting = emulated::make_meeting(2, [] {});
    ASSERT_CUDA(emulated::join_meeting(a, "a lonely meeting", meeting), cudaSuccess);
    EXPECT_CUDA(cudaStreamSynchronize(a), cudaErrorLaunchFailure);
    const std::string report = emulated::last_report();
    EXPECT_NE(report.find("STREAM DEADLOCK, nothing can run:"), std::string::npos) << report;
    EXPECT_NE(report.find("cuda:0 stream: 1 operation(s), the first is a lonely meeting "
                          "(1 of 2 members are there)"),
              std::string::npos)
        << report;
  }
}

// A circle: this thread is about to do what the device waits for, and calls what waits for the
// device. The second stream's part of a meeting stands for another rank's of a collective.
TEST(EmulatedStreams, DriversMayWait) {
  for (const bool waits : {false, true}) {
    emulated::Settings s = test_settings();
    s.driver_waits = waits;
    Devices devices(s);
    const cudaStream_t a = new_stream(), b = new_stream(), captured = new_stream();
    DeviceArray<float> x(std::vector<float>(64, 1.0f));
    cudaGraph_t graph = nullptr;
    ASSERT_CUDA(increment(x, 64, captured), cudaSuccess);  // loads it
    ASSERT_CUDA(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed), cudaSuccess);
    ASSERT_CUDA(increment(x, 64, captured), cudaSuccess);
    ASSERT_CUDA(cudaStreamEndCapture(captured, &graph), cudaSuccess);
    const auto in_the_middle = [&](const char* name, const auto& call) {
      const auto meeting = emulated::make_meeting(2, nullptr);
      ASSERT_CUDA(emulated::join_meeting(a, "first half", meeting), cudaSuccess);
      const cudaError_t error = call();
      if (waits) {
        EXPECT_CUDA(error, cudaErrorLaunchFailure);
        for (const std::string& text : {std::string("STREAM DEADLOCK, nothing can run while ") +
                                            name + " waits for the device",
                                        std::string("first half (1 of 2 members are there)")})
          EXPECT_NE(emulated::last_report().find(text), std::string::npos)
              << name << ": " << emulated::last_report();
        EXPECT_CUDA(call(), cudaErrorLaunchFailure) << name << ": a wait that failed loads nothing";
      } else {
        EXPECT_CUDA(error, cudaSuccess) << name;
      }
      ASSERT_CUDA(emulated::join_meeting(b, "second half", meeting), cudaSuccess);
      ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
      EXPECT_CUDA(call(), cudaSuccess) << name;  // nothing is broken
    };
    std::vector<void*> memory, pinned;  // in_the_middle calls more than once
    void* last = nullptr;
    const auto got = [&](std::vector<void*>& all, cudaError_t error) {
      if (error == cudaSuccess) all.push_back(last);
      return error;
    };
    cudaGraphExec_t executable = nullptr;
    in_the_middle("cudaMalloc", [&] { return got(memory, cudaMalloc(&last, 4)); });
    in_the_middle("cudaHostAlloc", [&] { return got(pinned, cudaHostAlloc(&last, 4, 0)); });
    in_the_middle("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&executable, graph); });
    in_the_middle("the first launch of a kernel", [&] { return empty(1, 1, b); });
    // Later launches of what is loaded do not.
    const auto meeting = emulated::make_meeting(2, nullptr);
    ASSERT_CUDA(emulated::join_meeting(a, "first half", meeting), cudaSuccess);
    EXPECT_CUDA(increment(x, 64, b), cudaSuccess);
    EXPECT_CUDA(empty(1, 1, b), cudaSuccess);
    EXPECT_CUDA(cudaGraphLaunch(executable, b), cudaSuccess);
    ASSERT_CUDA(emulated::join_meeting(b, "second half", meeting), cudaSuccess);
    ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(x.host(), std::vector<float>(64, 4.0f)) << waits;
    for (void* each : memory) EXPECT_CUDA(cudaFree(each), cudaSuccess);
    for (void* each : pinned) EXPECT_CUDA(cudaFreeHost(each), cudaSuccess);
  }
}

// Four host threads, each with a device, a stream and an event that the next one waits for.
TEST(EmulatedStreams, ManyThreads) {
  for (const Schedule& schedule : schedules()) {
    emulated::Settings settings = schedule.settings;
    settings.devices = 4;
    settings.timeout_ms = 60000;
    Devices devices(settings);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> threads;
    for (int device = 0; device < 4; ++device)
      threads.emplace_back([&, device] {
        EXPECT_CUDA(cudaSetDevice(device), cudaSuccess);
        const cudaStream_t compute = new_stream(), copies = new_stream();
        const cudaEvent_t event = new_event();
        const auto v = uniform(300, unsigned(device));
        DeviceArray<float> x(v), y{300};
        std::vector<float> host(300);
        for (int i = 0; i < 10; ++i) {
          EXPECT_CUDA(increment(x, 300, compute), cudaSuccess);
          EXPECT_CUDA(cudaEventRecord(event, compute), cudaSuccess);
          EXPECT_CUDA(cudaStreamWaitEvent(copies, event), cudaSuccess);
          EXPECT_CUDA(cudaMemcpyAsync(y, x, 1200, cudaMemcpyDeviceToDevice, copies), cudaSuccess);
          EXPECT_CUDA(cudaEventRecord(event, copies), cudaSuccess);
          EXPECT_CUDA(cudaStreamWaitEvent(compute, event), cudaSuccess);
        }
        EXPECT_CUDA(cudaStreamSynchronize(copies), cudaSuccess);
        results[size_t(device)] = y.host();
      });
    for (std::thread& thread : threads) thread.join();
    for (int device = 0; device < 4; ++device) {
      auto expected = uniform(300, unsigned(device));
      for (float& value : expected)
        for (int i = 0; i < 10; ++i) value += 1.0f;
      EXPECT_EQ(results[size_t(device)], expected) << schedule.name << ", device " << device;
    }
  }
}

}  // namespace
}  // namespace ramet::testing
