// Stream capture and graphs.
#include <set>
#include <string>
#include <thread>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

void begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  EXPECT_CUDA(cudaStreamBeginCapture(stream, mode), cudaSuccess);
}

cudaGraphExec_t finish(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphDestroy(graph), cudaSuccess);
  return executable;
}

cudaStreamCaptureStatus status(cudaStream_t stream) {
  cudaStreamCaptureStatus s = cudaStreamCaptureStatusNone;
  EXPECT_CUDA(cudaStreamIsCapturing(stream, &s), cudaSuccess);
  return s;
}

TEST(EmulatedGraphs, NothingRunsWhileCapturingAndEverythingAtReplay) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    const cudaStream_t main = new_stream(), side = new_stream();
    const cudaEvent_t event = new_event();
    const auto v = uniform(1000, 5);
    DeviceArray<float> a(v), b(std::vector<float>(1000, 1.0f)), c(std::vector<float>(1000, 0.0f));
    begin(main);
    EXPECT_EQ(status(main), cudaStreamCaptureStatusActive);
    EXPECT_EQ(status(side), cudaStreamCaptureStatusNone);
    EXPECT_CUDA(add(a, b, a, 1000, main), cudaSuccess);
    EXPECT_CUDA(cudaEventRecord(event, main), cudaSuccess);
    EXPECT_CUDA(cudaStreamWaitEvent(side, event), cudaSuccess);
    EXPECT_EQ(status(side), cudaStreamCaptureStatusActive);
    EXPECT_CUDA(add(a, b, c, 1000, side), cudaSuccess);
    EXPECT_CUDA(cudaEventRecord(event, side), cudaSuccess);
    EXPECT_CUDA(cudaStreamWaitEvent(main, event), cudaSuccess);
    const cudaGraphExec_t executable = finish(main);
    EXPECT_EQ(status(side), cudaStreamCaptureStatusNone);
    EXPECT_EQ(a.host(), v);
    for (int i = 0; i < 3; ++i) EXPECT_CUDA(cudaGraphLaunch(executable, main), cudaSuccess);
    EXPECT_CUDA(cudaGraphExecDestroy(executable), cudaSuccess);  // the replays keep what they need
    EXPECT_CUDA(cudaStreamSynchronize(main), cudaSuccess);
    const auto r = c.host();
    for (size_t i = 0; i < r.size(); ++i) ASSERT_NEAR(r[i], v[i] + 4, 1e-6) << schedule.name;
  }
}

// Two captured streams without an event between them: random streams replay them in either order.
TEST(EmulatedGraphs, RandomReplaysKeepOnlyWhatWasOrdered) {
  const auto traces = [](bool ordered) {
    std::set<std::string> seen;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      emulated::Settings s = test_settings();
      s.streams = emulated::StreamMode::Random;
      s.stream_seed = seed;
      Devices devices(s);
      const cudaStream_t main = new_stream(), side = new_stream();
      const cudaEvent_t fork = new_event(), join = new_event(), between = new_event();
      std::string trace;
      const auto put = [&](cudaStream_t stream, char letter) {
        EXPECT_CUDA(emulated::enqueue_work(stream, "trace", [&trace, letter] { trace += letter; }),
                    cudaSuccess);
      };
      begin(main);
      EXPECT_CUDA(cudaEventRecord(fork, main), cudaSuccess);
      EXPECT_CUDA(cudaStreamWaitEvent(side, fork), cudaSuccess);
      put(main, 'm');
      if (ordered) {
        EXPECT_CUDA(cudaEventRecord(between, main), cudaSuccess);
        EXPECT_CUDA(cudaStreamWaitEvent(side, between), cudaSuccess);
      }
      put(side, 's');
      EXPECT_CUDA(cudaEventRecord(join, side), cudaSuccess);
      EXPECT_CUDA(cudaStreamWaitEvent(main, join), cudaSuccess);
      put(main, 'e');
      EXPECT_CUDA(cudaGraphLaunch(finish(main), main), cudaSuccess);
      EXPECT_CUDA(cudaStreamSynchronize(main), cudaSuccess);
      seen.insert(trace);
    }
    return seen;
  };
  EXPECT_EQ(traces(true), (std::set<std::string>{"mse"}));
  EXPECT_EQ(traces(false), (std::set<std::string>{"mse", "sme"}));
}

TEST(EmulatedGraphs, WhatBreaksACapture) {
  Devices devices;
  const cudaStream_t main = new_stream();
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  DeviceArray<int> x(std::vector<int>(4, 1));
  std::vector<int> host(4);
  const auto broken = [&](cudaError_t error, const char* code) {
    EXPECT_STREQ(cudaGetErrorName(error), code);
    EXPECT_EQ(status(main), cudaStreamCaptureStatusInvalidated);
    EXPECT_CUDA(empty(1, 1, main), cudaErrorStreamCaptureInvalidated);
    EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(status(main), cudaStreamCaptureStatusNone);
  };
  begin(main);
  broken(cudaMalloc(&memory, 4), "cudaErrorStreamCaptureUnsupported");
  begin(main);
  broken(cudaStreamSynchronize(main), "cudaErrorStreamCaptureUnsupported");
  begin(main);
  broken(cudaDeviceSynchronize(), "cudaErrorStreamCaptureUnsupported");
  begin(main);
  broken(cudaMemcpy(host.data(), x, 16, cudaMemcpyDeviceToHost),
         "cudaErrorStreamCaptureUnsupported");
  begin(main);
  broken(cudaMemcpyAsync(host.data(), x, 16, cudaMemcpyDeviceToHost, main),
         "cudaErrorStreamCaptureUnsupported");
  begin(main);
  broken(cudaStreamQuery(main), "cudaErrorStreamCaptureUnsupported");
  // Work outside the capture that the captured stream would wait for.
  const cudaStream_t other = new_stream();
  const cudaEvent_t event = new_event();
  EXPECT_CUDA(cudaEventRecord(event, other), cudaSuccess);
  begin(main);
  broken(cudaStreamWaitEvent(main, event), "cudaErrorStreamCaptureIsolation");
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(EmulatedGraphs, TheDefaultStream) {
  Devices devices;
  EXPECT_CUDA(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
              cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  const cudaStream_t blocking = new_stream(cudaStreamDefault);
  begin(blocking);
  EXPECT_CUDA(empty(1, 1, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_CUDA(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  const cudaStream_t free = new_stream();
  begin(free);
  EXPECT_CUDA(empty(1, 1, nullptr), cudaSuccess);  // it does not wait for the captured stream
  EXPECT_CUDA(cudaStreamEndCapture(free, &graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphDestroy(graph), cudaSuccess);
}

TEST(EmulatedGraphs, StreamsMustBeJoined) {
  Devices devices;
  const cudaStream_t main = new_stream(), side = new_stream();
  const cudaEvent_t event = new_event();
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureUnmatched);
  begin(main);
  EXPECT_CUDA(empty(1, 1, main), cudaSuccess);
  EXPECT_CUDA(cudaEventRecord(event, main), cudaSuccess);
  EXPECT_CUDA(cudaEventQuery(event), cudaErrorCapturedEvent);
  EXPECT_CUDA(cudaStreamWaitEvent(side, event), cudaSuccess);
  EXPECT_CUDA(empty(1, 1, side), cudaSuccess);
  EXPECT_CUDA(cudaStreamEndCapture(side, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureUnjoined);
  // Two captures do not grow together.
  const cudaStream_t other = new_stream();
  begin(main);
  begin(other);
  EXPECT_CUDA(cudaEventRecord(event, main), cudaSuccess);
  EXPECT_CUDA(cudaStreamWaitEvent(other, event), cudaErrorStreamCaptureMerge);
}

TEST(EmulatedGraphs, ModesSayWhoIsRefused) {
  Devices devices;
  const cudaStream_t main = new_stream();
  void* memory = nullptr;
  const auto elsewhere = [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaMalloc(&memory, 4); }).join();
    return error;
  };
  begin(main, cudaStreamCaptureModeThreadLocal);
  EXPECT_CUDA(elsewhere(), cudaSuccess);
  EXPECT_EQ(status(main), cudaStreamCaptureStatusActive);
  EXPECT_CUDA(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
  begin(main, cudaStreamCaptureModeGlobal);
  EXPECT_CUDA(elsewhere(), cudaErrorStreamCaptureUnsupported);
  EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
  begin(main, cudaStreamCaptureModeRelaxed);
  EXPECT_CUDA(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphDestroy(graph), cudaErrorInvalidValue);
}

// To free is to wait for the device, in which the captured work is not.
TEST(EmulatedGraphs, FreesOfWhoCapturesCanBeRefused) {
  for (const bool allowed : {true, false}) {
    emulated::Settings s = test_settings();
    s.free_in_capture = allowed;
    Devices devices(s);
    const cudaStream_t main = new_stream();
    cudaGraph_t graph = nullptr;
    void *memory = nullptr, *pinned = nullptr, *others = nullptr;
    for (void** each : {&memory, &others}) ASSERT_CUDA(cudaMalloc(each, 4), cudaSuccess);
    ASSERT_CUDA(cudaMallocHost(&pinned, 4), cudaSuccess);
    begin(main, cudaStreamCaptureModeRelaxed);
    cudaError_t elsewhere = cudaErrorUnknown;
    std::thread([&] { elsewhere = cudaFree(others); }).join();
    EXPECT_CUDA(elsewhere, cudaSuccess);
    EXPECT_EQ(status(main), cudaStreamCaptureStatusActive);
    const cudaError_t freed = cudaFree(memory), unpinned = cudaFreeHost(pinned);
    if (allowed) {
      EXPECT_CUDA(freed, cudaSuccess);
      EXPECT_CUDA(unpinned, cudaSuccess);
      EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaSuccess);
      EXPECT_CUDA(cudaGraphDestroy(graph), cudaSuccess);
      continue;
    }
    EXPECT_CUDA(freed, cudaErrorStreamCaptureUnsupported);
    EXPECT_CUDA(unpinned, cudaErrorStreamCaptureUnsupported);
    EXPECT_CUDA(cudaStreamEndCapture(main, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_CUDA(cudaFree(memory), cudaSuccess);
    EXPECT_CUDA(cudaFreeHost(pinned), cudaSuccess);
  }
}

TEST(EmulatedGraphs, AFaultStopsAReplay) {
  Devices devices;
  const cudaStream_t stream = new_stream();
  DeviceArray<float> x(std::vector<float>(64, 1.0f));
  std::vector<char> ran(1, 0);
  begin(stream);
  EXPECT_CUDA(increment(x, 64, stream), cudaSuccess);
  EXPECT_CUDA(planted_trap(stream), cudaSuccess);
  EXPECT_CUDA(emulated::enqueue_work(stream, "after", [&] { ran[0] = 1; }), cudaSuccess);
  EXPECT_CUDA(cudaGraphLaunch(finish(stream), stream), cudaSuccess);
  EXPECT_CUDA(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_EQ(ran[0], 0);
}

}  // namespace
}  // namespace ramet::testing
