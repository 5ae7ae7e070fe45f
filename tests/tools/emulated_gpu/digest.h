// A small training-like program on three emulated GPUs, and its result as bytes: the same for every
// schedule.
#pragma once
#include <vector>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tools/emulated_gpu/nccl/collective.h"

namespace ramet::testing {

/// Each device computes a product on its compute stream, a softmax of it, and its transpose on a
/// copy stream after an event. Then come a sum over all devices and, in a graph's replay, the sum
/// added to itself.
inline std::vector<float> digest(const emulated::Settings& asked) {
  emulated::Settings settings = asked;
  constexpr int kDevices = 3, kSize = 48;
  constexpr size_t kCount = size_t(kSize) * kSize, kBytes = kCount * sizeof(float);
  settings.devices = kDevices;
  settings.timeout_ms = 60000;
  Devices devices(settings);

  cudaStream_t compute[kDevices], copies[kDevices];
  float *a[kDevices], *b[kDevices], *c[kDevices], *t[kDevices];
  ncclComm_t comms[kDevices];
  EXPECT_EQ(ncclCommInitAll(comms, kDevices, nullptr), ncclSuccess);
  for (int d = 0; d < kDevices; ++d) {
    EXPECT_CUDA(cudaSetDevice(d), cudaSuccess);
    EXPECT_CUDA(cudaStreamCreateWithFlags(&compute[d], cudaStreamNonBlocking), cudaSuccess);
    EXPECT_CUDA(cudaStreamCreateWithFlags(&copies[d], cudaStreamNonBlocking), cudaSuccess);
    for (float** memory : {&a[d], &b[d], &c[d], &t[d]})
      EXPECT_CUDA(cudaMalloc(memory, kBytes), cudaSuccess);
    const auto left = uniform(kCount, unsigned(d)), right = uniform(kCount, unsigned(d) + 10);
    EXPECT_CUDA(cudaMemcpyAsync(a[d], left.data(), kBytes, cudaMemcpyHostToDevice, compute[d]),
                cudaSuccess);
    EXPECT_CUDA(cudaMemcpyAsync(b[d], right.data(), kBytes, cudaMemcpyHostToDevice, compute[d]),
                cudaSuccess);
    EXPECT_CUDA(matmul(a[d], b[d], c[d], kSize, kSize, kSize, compute[d]), cudaSuccess);
    EXPECT_CUDA(softmax<float>(c[d], a[d], kSize, kSize, compute[d]), cudaSuccess);
    cudaEvent_t event = nullptr;
    EXPECT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    EXPECT_CUDA(cudaEventRecord(event, compute[d]), cudaSuccess);
    EXPECT_CUDA(cudaStreamWaitEvent(copies[d], event), cudaSuccess);
    EXPECT_CUDA(transpose(a[d], t[d], kSize, kSize, copies[d]), cudaSuccess);
    EXPECT_CUDA(increment(b[d], kCount, compute[d]), cudaSuccess);  // next to the transpose
  }
  EXPECT_EQ(ncclGroupStart(), ncclSuccess);
  for (int d = 0; d < kDevices; ++d)
    EXPECT_EQ(ncclAllReduce(t[d], t[d], kCount, ncclFloat32, ncclSum, comms[d], copies[d]),
              ncclSuccess);
  EXPECT_EQ(ncclGroupEnd(), ncclSuccess);

  EXPECT_CUDA(cudaSetDevice(1), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  EXPECT_CUDA(cudaStreamBeginCapture(copies[1], cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_CUDA(add(t[1], t[1], t[1], kCount, copies[1]), cudaSuccess);
  EXPECT_CUDA(cudaStreamEndCapture(copies[1], &graph), cudaSuccess);
  EXPECT_CUDA(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_CUDA(cudaGraphLaunch(executable, copies[1]), cudaSuccess);
  std::vector<float> result(2 * kCount);
  EXPECT_CUDA(cudaMemcpyAsync(result.data(), t[1], kBytes, cudaMemcpyDeviceToHost, copies[1]),
              cudaSuccess);
  EXPECT_CUDA(
      cudaMemcpyAsync(result.data() + kCount, b[1], kBytes, cudaMemcpyDeviceToHost, compute[1]),
      cudaSuccess);
  for (ncclComm_t comm : comms) EXPECT_EQ(ncclCommDestroy(comm), ncclSuccess);
  return result;
}

/// Expects one digest for `seeds` seeds, every stream mode, every order of threads and 1 to 3
/// workers.
inline void expect_one_digest(uint64_t seeds) {
  using emulated::StreamMode, emulated::ThreadOrder;
  const std::vector<float> expected = digest(test_settings());
  for (const StreamMode streams :
       {StreamMode::Async, StreamMode::Eager, StreamMode::Lazy, StreamMode::Random})
    for (const ThreadOrder threads :
         {ThreadOrder::Forward, ThreadOrder::Reverse, ThreadOrder::Random})
      for (const int workers : {1, 2, 3})
        for (uint64_t seed = 1; seed <= seeds; ++seed) {
          if (seed > 1 && streams != StreamMode::Random && threads != ThreadOrder::Random) break;
          emulated::Settings s = test_settings();
          s.streams = streams;
          s.threads = threads;
          s.workers = workers;
          s.stream_seed = s.thread_seed = seed;
          ASSERT_EQ(digest(s), expected)
              << int(streams) << " " << int(threads) << " " << workers << " seed " << seed;
        }
}

}  // namespace ramet::testing
