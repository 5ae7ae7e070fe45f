// Devices: number, memory, peers, errors.
#include <thread>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

TEST(EmulatedDevices, AsManyAsAskedFor) {
  for (const int count : {1, 3, 8}) {
    emulated::Settings s = test_settings();
    s.devices = count;
    s.multiprocessors = 16;
    Devices devices(s);
    int found = 0;
    ASSERT_CUDA(cudaGetDeviceCount(&found), cudaSuccess);
    EXPECT_EQ(found, count);
    for (int i = 0; i < count; ++i) {
      cudaDeviceProp p;
      ASSERT_CUDA(cudaGetDeviceProperties(&p, i), cudaSuccess);
      EXPECT_EQ(p.name, "Emulated GPU " + std::to_string(i));
      EXPECT_EQ(p.multiProcessorCount, 16);
      EXPECT_EQ(p.major, 9);
      EXPECT_EQ(p.totalGlobalMem, size_t(64) << 20);
      int shared = 0;
      EXPECT_CUDA(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, i),
                  cudaSuccess);
      EXPECT_EQ(shared, 227 * 1024);
    }
    EXPECT_CUDA(cudaSetDevice(count), cudaErrorInvalidDevice);
    EXPECT_CUDA(cudaSetDevice(-1), cudaErrorInvalidDevice);
  }
}

TEST(EmulatedDevices, None) {
  emulated::Settings s = test_settings();
  s.devices = 0;
  Devices devices(s);
  int count = -1;
  EXPECT_CUDA(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(count, 0);
  void* memory = nullptr;
  cudaStream_t stream = nullptr;
  EXPECT_CUDA(cudaMalloc(&memory, 4), cudaErrorNoDevice);
  EXPECT_CUDA(cudaStreamCreate(&stream), cudaErrorNoDevice);
  EXPECT_CUDA(cudaSetDevice(0), cudaErrorNoDevice);
  EXPECT_CUDA(empty(1, 1, nullptr), cudaErrorNoDevice);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorNoDevice);
}

TEST(EmulatedDevices, TheHostHasNoAccessWhereGuarded) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "under ASan device memory comes from the heap";
#endif
  emulated::Settings s = test_settings();
  s.guard_host = true;
  Devices devices(s);
  float* memory = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, 4096), cudaSuccess);
  EXPECT_EXIT((void)*static_cast<volatile float*>(memory), ::testing::KilledBySignal(SIGSEGV), "");
  // Copies and kernels have it.
  std::vector<float> sent(1024, 3), back(1024);
  ASSERT_CUDA(cudaMemcpy(memory, sent.data(), 4096, cudaMemcpyHostToDevice), cudaSuccess);
  ASSERT_CUDA(cudaMemcpy(back.data(), memory, 4096, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(back, sent);
  EXPECT_EXIT(*static_cast<volatile float*>(memory) = 1, ::testing::KilledBySignal(SIGSEGV), "");
}

TEST(EmulatedDevices, TheCurrentOneIsTheThreads) {
  Devices devices;
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  int here = -1, there = -1;
  std::thread([&] { EXPECT_CUDA(cudaGetDevice(&there), cudaSuccess); }).join();
  EXPECT_CUDA(cudaGetDevice(&here), cudaSuccess);
  EXPECT_EQ(here, 1);
  EXPECT_EQ(there, 0);
}

TEST(EmulatedDevices, MemoryRunsOutOnEachByItself) {
  emulated::Settings s = test_settings();
  s.memory = {size_t(4) << 20, size_t(1) << 20};
  Devices devices(s);
  size_t free = 0, total = 0;
  float *a = nullptr, *b = nullptr;
  EXPECT_CUDA(cudaMalloc(&a, 3 << 20), cudaSuccess);
  EXPECT_CUDA(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(total, size_t(4) << 20);
  EXPECT_EQ(free, size_t(1) << 20);
  EXPECT_CUDA(cudaMalloc(&b, (1 << 20) + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(b, nullptr);
  // The error is there once, and nothing is broken.
  EXPECT_CUDA(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaGetLastError(), cudaSuccess);
  EXPECT_CUDA(cudaMalloc(&b, 1 << 20), cudaSuccess);
  EXPECT_CUDA(cudaFree(a), cudaSuccess);
  EXPECT_CUDA(cudaMalloc(&a, 2 << 20), cudaSuccess);
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  float* c = nullptr;
  EXPECT_CUDA(cudaMalloc(&c, 2 << 20), cudaErrorMemoryAllocation);
  EXPECT_CUDA(cudaMalloc(&c, 1 << 20), cudaSuccess);
  for (float* memory : {a, b, c}) EXPECT_CUDA(cudaFree(memory), cudaSuccess);
  EXPECT_CUDA(cudaFree(a), cudaErrorInvalidValue);  // twice
  EXPECT_CUDA(cudaFree(&free), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFree(nullptr), cudaSuccess);
}

// Memory goes back the way it came.
TEST(EmulatedDevices, OnlyAPoolsMemoryIsFreedInOrder) {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Lazy;
  Devices devices(s);
  const cudaStream_t stream = new_stream();
  void *plain = nullptr, *pooled = nullptr;
  ASSERT_CUDA(cudaMalloc(&plain, 512), cudaSuccess);
  EXPECT_CUDA(cudaFreeAsync(plain, stream), cudaErrorInvalidValue);
  EXPECT_EQ(emulated::last_report(),
            "[emulated CUDA] cudaFreeAsync: memory that cudaMallocAsync() did not give");
  EXPECT_CUDA(cudaFree(plain), cudaSuccess);
  ASSERT_CUDA(cudaMallocAsync(&pooled, 512, stream), cudaSuccess);
  EXPECT_CUDA(cudaFreeAsync(static_cast<char*>(pooled) + 256, stream), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeAsync(pooled, stream), cudaSuccess);
  EXPECT_CUDA(cudaStreamSynchronize(stream), cudaSuccess);
  // cudaFree() takes it, too, and then does not wait.
  ASSERT_CUDA(cudaMallocAsync(&pooled, 512, stream), cudaSuccess);
  bool ran = false;
  ASSERT_CUDA(emulated::enqueue_work(stream, "later", [&ran] { ran = true; }), cudaSuccess);
  EXPECT_CUDA(cudaFree(pooled), cudaSuccess);
  EXPECT_FALSE(ran);
  ASSERT_CUDA(cudaMalloc(&plain, 512), cudaSuccess);
  EXPECT_CUDA(cudaFree(plain), cudaSuccess);
  EXPECT_TRUE(ran);
}

// Once, though the first has not run.
TEST(EmulatedDevices, APoolsMemoryIsFreedOnce) {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Lazy;
  Devices devices(s);
  const cudaStream_t stream = new_stream();
  void* pooled = nullptr;
  for (int round = 0; round < 2; ++round) {
    ASSERT_CUDA(cudaMallocAsync(&pooled, 512, stream), cudaSuccess);
    EXPECT_CUDA(cudaFreeAsync(pooled, stream), cudaSuccess);
    EXPECT_CUDA(cudaFreeAsync(pooled, stream), cudaErrorInvalidValue);
    EXPECT_EQ(emulated::last_report(),
              "[emulated CUDA] cudaFreeAsync: memory that cudaFreeAsync() has been given before");
    EXPECT_CUDA(cudaFree(pooled), cudaErrorInvalidValue);
    EXPECT_EQ(emulated::last_report(),
              "[emulated CUDA] cudaFree: memory that cudaFreeAsync() has been given before");
    EXPECT_CUDA(cudaStreamSynchronize(stream), cudaSuccess);
  }
}

// Fragments and red zones are not what memory runs out of, and addresses that were freed serve
// again.
TEST(EmulatedDevices, AllCapacityCanBeUsedAgainAndAgain) {
  emulated::Settings s = test_settings();
  s.memory = {size_t(1) << 20};
  Devices devices(s);
  for (int round = 0; round < 5; ++round) {
    std::vector<void*> blocks(2048);
    for (void*& block : blocks) ASSERT_CUDA(cudaMalloc(&block, 512), cudaSuccess);
    void* more = nullptr;
    EXPECT_CUDA(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
    for (size_t i = 0; i < blocks.size(); ++i)
      ASSERT_CUDA(cudaFree(blocks[i * 1021 % blocks.size()]), cudaSuccess);
    size_t free = 0, total = 0;
    EXPECT_CUDA(cudaMemGetInfo(&free, &total), cudaSuccess);
    EXPECT_EQ(free, total);
  }
}

// A large block goes back to the system in whole pages, and ends within one.
TEST(EmulatedDevices, WhatLiesBesideFreedMemoryStays) {
  Devices devices;
  void* large = nullptr;
  ASSERT_CUDA(cudaMalloc(&large, (size_t{1} << 20) + 512), cudaSuccess);
  const DeviceArray<int> beside(std::vector<int>(256, 7));
  ASSERT_CUDA(cudaFree(large), cudaSuccess);
  EXPECT_EQ(beside.host(), std::vector<int>(256, 7));
}

TEST(EmulatedDevices, Peers) {
  emulated::Settings s = test_settings();
  s.devices = 3;
  s.all_peers = false;
  s.peers = {{0, 1}};
  Devices devices(s);
  int can = -1;
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 1), cudaSuccess);
  EXPECT_EQ(can, 1);
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 2), cudaSuccess);
  EXPECT_EQ(can, 0);
  EXPECT_CUDA(cudaDeviceCanAccessPeer(&can, 0, 3), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
  EXPECT_CUDA(cudaDeviceDisablePeerAccess(1), cudaSuccess);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
  EXPECT_CUDA(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
}

TEST(EmulatedDevices, LaunchesAreChecked) {
  Devices devices;
  EXPECT_CUDA(empty(0, 32, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_CUDA(empty(1, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_CUDA(empty(1, 1025, nullptr), cudaErrorInvalidConfiguration);
  for (const dim3 grid :
       {dim3(1, 0), dim3(1, 1, 0), dim3(1, 65536), dim3(1, 1, 65536), dim3(0x80000000u)})
    EXPECT_CUDA(coordinates(nullptr, grid, dim3(1), nullptr), cudaErrorInvalidConfiguration);
  for (const dim3 block :
       {dim3(1, 0), dim3(1, 1, 0), dim3(1, 1025), dim3(1, 1, 65), dim3(32, 33), dim3(2, 8, 65)})
    EXPECT_CUDA(coordinates(nullptr, dim3(1), block, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_CUDA(empty(1, 1024, nullptr), cudaSuccess);
  cudaStream_t other = nullptr;
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  ASSERT_CUDA(cudaStreamCreate(&other), cudaSuccess);
  ASSERT_CUDA(cudaSetDevice(0), cudaSuccess);
  EXPECT_CUDA(empty(1, 1, other), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaStreamDestroy(other), cudaSuccess);
}

// Two kernels with different bounds, which must not be confused, and one without.
template <int kMost> __global__ void __launch_bounds__(kMost, 1) bounded(float* x) {
  x[threadIdx.x] = 1.0f;
}

TEST(EmulatedDevices, LaunchBounds) {
#if !(defined(__x86_64__) || defined(__aarch64__)) || defined(__clang__)
  GTEST_SKIP() << "the bounds are not in the code (types.h)";
#endif
  Devices devices;
  DeviceArray<float> x{1024};
  const auto refused = [&](cudaError_t error, const std::string& text) {
    EXPECT_CUDA(error, cudaErrorInvalidValue);
    EXPECT_NE(emulated::last_report().find(text), std::string::npos) << emulated::last_report();
  };
  EXPECT_CUDA(planted_launch_bounds(x, 64, nullptr), cudaSuccess);
  refused(planted_launch_bounds(x, 65, nullptr),
          ": a block of 65 threads, and its __launch_bounds__ are 64");
  float* const p = x;
  EXPECT_CUDA(launch(bounded<256>, 1, 256, 0, nullptr, p), cudaSuccess);
  refused(launch(bounded<256>, 1, dim3(16, 17), 0, nullptr, p), "a block of 272 threads");
  EXPECT_CUDA(launch(bounded<1024>, 1, 1024, 0, nullptr, p), cudaSuccess);
  EXPECT_CUDA(empty(1, 1024, nullptr), cudaSuccess);
  // No part of a refused launch has run, and nothing is broken.
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
}

__global__ void fill_dynamic(int count) {
  float* s = dynamic_shared<float>();
  for (int i = 0; i < count; ++i) s[i] = 1.0f;
}

TEST(EmulatedDevices, LargeSharedMemoryIsAskedForFirst) {
  Devices devices;
  const auto launch_with = [](size_t bytes) {
    return launch(fill_dynamic, 1, 1, bytes, nullptr, bytes / sizeof(float));
  };
  EXPECT_CUDA(launch_with(48 * 1024), cudaSuccess);
  EXPECT_CUDA(launch_with(48 * 1024 + 4), cudaErrorInvalidValue);
  const auto limit = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_CUDA(cudaFuncSetAttribute(fill_dynamic, limit, 227 * 1024 + 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFuncSetAttribute(fill_dynamic, limit, 227 * 1024), cudaSuccess);
  EXPECT_CUDA(launch_with(227 * 1024), cudaSuccess);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
}

struct Large {
  float values[1000];
};

__global__ void copy_argument(const Large large, float* x, long count) {
  for (long i = threadIdx.x; i < count; i += blockDim.x) x[i] = large.values[i];
}

// Arguments are copied by the launch and converted to the kernel's types.
TEST(EmulatedDevices, ArgumentsAreTheLaunchs) {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Lazy;
  Devices devices(s);
  DeviceArray<float> x{1000};
  Large large{};
  for (int i = 0; i < 1000; ++i) large.values[i] = float(i);
  short count = 1000;
  ASSERT_CUDA(launch(copy_argument, 1, 64, 0, nullptr, large, x, count), cudaSuccess);
  large = {};
  count = 0;
  const auto host = x.host();
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(host[i], float(i));
}

// A reset gives everything back: memory, streams, events.
TEST(EmulatedDevices, Reset) {
  Devices devices;
  float* memory = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_CUDA(cudaMalloc(&memory, 1 << 20), cudaSuccess);
  ASSERT_CUDA(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_CUDA(cudaEventCreate(&event), cudaSuccess);
  ASSERT_CUDA(planted_trap(stream), cudaSuccess);
  ASSERT_CUDA(cudaEventRecord(event, stream), cudaSuccess);
  ASSERT_CUDA(cudaStreamSynchronize(stream), cudaErrorLaunchFailure);
  EXPECT_NE(emulated::last_report(), "");
  ASSERT_CUDA(cudaDeviceReset(), cudaSuccess);
  size_t free = 0, total = 1;
  EXPECT_CUDA(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_EQ(free, total);
  EXPECT_CUDA(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  EXPECT_CUDA(cudaFree(memory), cudaErrorInvalidValue);
}

TEST(EmulatedDevices, ErrorsHaveNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorNotReady), "cudaErrorNotReady");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(1000)), "cudaErrorUnknown");
}

}  // namespace
}  // namespace ramet::testing
