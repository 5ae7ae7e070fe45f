// What the checker of --config=check finds, where it places a fault, and what it does not report.
// Other builds have no checker: there these tests are skipped.
#include <set>
#include <thread>

#include "tests/tools/emulated_gpu/checked.h"
#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

class Checker : public CheckedTest {
 protected:
  /// `texts` in the report, and the error that a launch leaves.
  void expect_report(cudaError_t launched, const std::vector<std::string>& texts,
                     const char* code = "cudaErrorLaunchFailure") {
    EXPECT_CUDA(launched, cudaSuccess);
    EXPECT_STREQ(cudaGetErrorName(cudaDeviceSynchronize()), code);
    expect_texts(emulated::last_report(), texts);
    EXPECT_CUDA(cudaDeviceReset(), cudaSuccess);
  }

  void expect_quiet(cudaError_t launched) {
    EXPECT_CUDA(launched, cudaSuccess);
    EXPECT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(emulated::last_report(), "");
  }

  float* filled(size_t count = 1024) {
    float* memory = nullptr;
    EXPECT_CUDA(cudaMalloc(&memory, count * 4), cudaSuccess);
    EXPECT_CUDA(cudaMemset(memory, 0, count * 4), cudaSuccess);
    return memory;
  }

  /// 64 floats that cudaFreeAsync() takes back.
  float* filled_in_order(cudaStream_t stream) {
    void* memory = nullptr;
    EXPECT_CUDA(cudaMallocAsync(&memory, 256, stream), cudaSuccess);
    EXPECT_CUDA(cudaMemsetAsync(memory, 0, 256, stream), cudaSuccess);
    return static_cast<float*>(memory);
  }

  Devices devices_;
};

TEST_F(Checker, SaysNothingOfWhatIsInOrder) {
  __half* halves = nullptr;
  ASSERT_CUDA(cudaMalloc(&halves, 17 * 32), cudaSuccess);
  expect_quiet(exchange_in_warp(filled(), nullptr));
  expect_quiet(read_and_replace_in_warp(filled(), nullptr));
  expect_quiet(neighbouring_halves(halves, nullptr));
  expect_quiet(readers_and_writers(filled(), nullptr));
  expect_quiet(planted_matmul(Missing::Nothing, filled(), filled(), filled(), nullptr));
}

TEST_F(Checker, MissingBarriers) {
  expect_report(planted_matmul(Missing::FirstBarrier, filled(), filled(), filled(), nullptr),
                {"matmul_kernel", "RACE on __shared__ tile_", "planted.cu:", "by thread ("});
  expect_report(planted_matmul(Missing::SecondBarrier, filled(), filled(), filled(), nullptr),
                {"RACE on __shared__ tile_", "write by thread", "earlier read by",
                 "and no barrier between them"});
}

TEST_F(Checker, MissingWarpSynchronisation) {
  expect_report(planted_warp_race(filled(), nullptr),
                {"exchange_kernel", "RACE on __shared__ s", "and no barrier between them"});
}

// The last reader is in order, the one before it is not: the second warp runs first here.
TEST_F(Checker, ReadersOfSeveralWarps) {
  emulated::Settings s = test_settings();
  s.threads = emulated::ThreadOrder::Reverse;
  Devices devices(s);
  expect_report(planted_reader_of_another_warp(filled(), nullptr),
                {"write by thread (3,0,0)", "earlier read by several threads"});
}

TEST_F(Checker, RacesBetweenBlocks) {
  expect_report(planted_block_race(filled(), nullptr),
                {"RACE on device memory 0x", "of cuda:0", "of block number 0",
                 "nothing orders the two blocks"});
  int* x = reinterpret_cast<int*>(filled());
  expect_report(planted_half_atomic(x, nullptr), {"RACE on device memory", "atomic"});
  auto* counter = reinterpret_cast<unsigned*>(filled());
  expect_report(planted_missing_fence(filled(), filled(), counter, filled(), nullptr),
                {"missing_fence_kernel", "RACE on device memory"});
}

TEST_F(Checker, OutOfBounds) {
  expect_report(planted_dynamic_overrun(filled(), nullptr),
                {"OUT OF BOUNDS: write to dynamic shared memory +256, of which the launch gave 256 "
                 "bytes at planted.cu:",
                 "thread (63,0,0)"},
                "cudaErrorIllegalAddress");
  expect_report(planted_global_overrun(filled(1024), nullptr),
                {"OUT OF BOUNDS: write to device memory",
                 "which no allocation holds at planted.cu:", "block (16,0,0)"},
                "cudaErrorIllegalAddress");
  ASSERT_CUDA(planted_own_overrun(filled(128), 8, nullptr), cudaSuccess);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  expect_report(planted_own_overrun(filled(128), 9, nullptr),
                {"OUT OF BOUNDS: index 8 of an array", "planted.cu:"}, "cudaErrorIllegalAddress");
  float* freed = filled(64);
  ASSERT_CUDA(cudaFree(freed), cudaSuccess);
  expect_report(copy_64(filled(), freed, nullptr), {"OUT OF BOUNDS: read of device memory"},
                "cudaErrorIllegalAddress");
}

// GPUs take a vector, and every other value, from multiples of its size only.
TEST_F(Checker, Misaligned) {
  for (const int offset : {0, 16, 64}) expect_quiet(planted_float4(filled(), offset, nullptr));
  for (const int offset : {8, 24}) expect_quiet(planted_float2(filled(), offset, nullptr));
  expect_quiet(planted_float(filled(), 12, nullptr));
  for (const int offset : {4, 8, 12})
    expect_report(planted_float4(filled(), offset, nullptr),
                  {"MISALIGNED: access of ", "float4", " at device memory 0x",
                   "which is no multiple of 16 at planted.cu:", "twice_kernel"},
                  "cudaErrorMisalignedAddress");
  expect_report(planted_float2(filled(), 4, nullptr),
                {"MISALIGNED: access of ", "float2", "which is no multiple of 8"},
                "cudaErrorMisalignedAddress");
  expect_report(planted_float(filled(), 2, nullptr),
                {"MISALIGNED: access of ", "float", "which is no multiple of 4"},
                "cudaErrorMisalignedAddress");
}

// A block gets at most 48 KiB of both kinds together, or 227 for a kernel that has asked.
TEST_F(Checker, StaticAndDynamicSharedMemoryTogether) {
  constexpr size_t kKiB = 1024;
  expect_quiet(planted_shared_sum(filled(), 8 * kKiB, false, nullptr));
  expect_report(
      planted_shared_sum(filled(), 8 * kKiB + 4, false, nullptr),
      {"shared_sum_kernel",
       "TOO MUCH SHARED MEMORY: more than 40956 bytes of __shared__ variables and 8196 of "
       "the launch, and a block gets 49152 without cudaFuncSetAttribute() at planted.cu:"});
  expect_quiet(planted_shared_sum(filled(), 187 * kKiB, true, nullptr));
  expect_report(planted_shared_sum(filled(), 187 * kKiB + 4, true, nullptr),
                {"TOO MUCH SHARED MEMORY", "and a block gets 232448 at planted.cu:"});
}

TEST_F(Checker, Uninitialised) {
  expect_report(planted_uninitialised_shared(filled(), nullptr),
                {"UNINITIALISED read of dynamic shared memory + 20 by thread (58,0,0) at "
                 "planted.cu:"});
  float* fresh = nullptr;
  ASSERT_CUDA(cudaMalloc(&fresh, 256), cudaSuccess);
  expect_report(planted_uninitialised_global(filled(), fresh, nullptr),
                {"UNINITIALISED read of device memory"});
}

TEST_F(Checker, HostMemory) {
  std::vector<float> host(64, 1.0f);
  expect_report(copy_64(filled(), host.data(), nullptr),
                {"ILLEGAL ADDRESS: read of host memory 0x", "planted.cu:"},
                "cudaErrorIllegalAddress");
  float* pinned = nullptr;
  ASSERT_CUDA(cudaMallocHost(&pinned, 256), cudaSuccess);
  expect_quiet(copy_64(filled(), pinned, nullptr));
}

TEST_F(Checker, PeerMemory) {
  ASSERT_CUDA(cudaSetDevice(1), cudaSuccess);
  float* there = filled(64);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_CUDA(cudaSetDevice(0), cudaSuccess);
  expect_report(copy_64(filled(), there, nullptr),
                {"PEER ACCESS is not enabled: read of device memory", "of cuda:1 on cuda:0"},
                "cudaErrorIllegalAddress");
  ASSERT_CUDA(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
  expect_quiet(copy_64(filled(), there, nullptr));
}

// A pool is opened by itself: not by what opens other memory.
TEST_F(Checker, PeerMemoryOfAPool) {
  for (const bool opened : {false, true}) {
    Devices devices;
    const PoolMemory there(1, 64);
    ASSERT_CUDA(cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    if (opened) there.open_to(0);
    const cudaError_t launched = copy_64(filled(), there, nullptr);
    if (opened) expect_quiet(launched);
    else
      expect_report(launched,
                    {"PEER ACCESS is not enabled: read of device memory", "of cuda:1 on cuda:0"},
                    "cudaErrorIllegalAddress");
  }
}

// Under every stream mode: the order is missing whether or not luck made up for it.
TEST_F(Checker, StreamsWithoutAnEvent) {
  for (const Schedule& schedule : schedules()) {
    Devices devices(schedule.settings);
    for (const bool ordered : {true, false}) {
      SCOPED_TRACE(schedule.name);
      const cudaStream_t a = new_stream(), b = new_stream();
      float *x = filled(), *y = filled();
      ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
      cudaEvent_t event = nullptr;
      ASSERT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
      ASSERT_CUDA(increment(x, 64, a), cudaSuccess);
      ASSERT_CUDA(cudaEventRecord(event, a), cudaSuccess);
      if (ordered) {
        ASSERT_CUDA(cudaStreamWaitEvent(b, event), cudaSuccess);
        expect_quiet(copy_64(y, x, b));
      } else {
        expect_report(copy_64(y, x, b),
                      {"UNORDERED STREAMS on device memory",
                       " in copy_kernel at planted.cu:", " in increment_kernel at kernels.cu:",
                       "and no event, wait or barrier orders the two"});
      }
    }
  }
}

// A fill that a non-blocking stream does not wait for, and a copy that overtakes a kernel.
TEST_F(Checker, CopiesWithoutAnEvent) {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Eager;
  Devices devices(s);
  const cudaStream_t stream = new_stream();
  float* x = filled(64);  // cudaMemset() is not synchronous
  ASSERT_CUDA(increment(x, 64, stream), cudaSuccess);
  expect_report(cudaSuccess, {"UNORDERED STREAMS", "earlier write by fill"});
  float *y = filled(64), *z = filled(64);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  const cudaStream_t other = new_stream(), copies = new_stream();
  ASSERT_CUDA(increment(y, 64, other), cudaSuccess);
  ASSERT_CUDA(cudaMemcpyAsync(z, y, 256, cudaMemcpyDeviceToDevice, copies), cudaSuccess);
  EXPECT_CUDA(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_NE(emulated::last_report().find("UNORDERED STREAMS"), std::string::npos);
}

// A free runs after all that used the memory; a later copy uses memory without an owner.
TEST_F(Checker, FreesWithoutAnEvent) {
  for (const bool ordered : {true, false}) {
    emulated::Settings s = test_settings();
    s.streams = emulated::StreamMode::Eager;
    Devices devices(s);
    const cudaStream_t a = new_stream(), b = new_stream();
    const cudaEvent_t event = new_event();
    float* x = filled_in_order(a);
    ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_CUDA(increment(x, 64, a), cudaSuccess);
    ASSERT_CUDA(cudaEventRecord(event, a), cudaSuccess);
    if (ordered) { ASSERT_CUDA(cudaStreamWaitEvent(b, event), cudaSuccess); }
    const cudaError_t freed = cudaFreeAsync(x, b);
    if (ordered) expect_quiet(freed);
    else
      expect_report(freed, {"UNORDERED STREAMS on device memory", "write by cudaFreeAsync",
                            "in increment_kernel at kernels.cu:"});
  }
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Lazy;
  Devices devices(s);
  const cudaStream_t a = new_stream(), b = new_stream();
  float *x = filled_in_order(a), *y = filled(64);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_CUDA(cudaMemcpyAsync(y, x, 256, cudaMemcpyDeviceToDevice, a), cudaSuccess);
  ASSERT_CUDA(cudaFreeAsync(x, b), cudaSuccess);
  ASSERT_CUDA(cudaStreamSynchronize(b), cudaSuccess);
  expect_report(cudaSuccess,
                {"OUT OF BOUNDS: read by copy of device memory", "no allocation holds"},
                "cudaErrorIllegalAddress");
}

// The next owner of an address has nothing to do with earlier owners.
TEST_F(Checker, AnAddressThatIsGivenOutAgain) {
  emulated::Settings s = test_settings();
  s.streams = emulated::StreamMode::Eager;
  s.memory = {size_t{1} << 20};
  Devices devices(s);
  std::set<float*> all;
  for (int i = 0; i < 12; ++i) {
    const cudaStream_t stream = new_stream();
    void* memory = nullptr;
    ASSERT_CUDA(cudaMallocAsync(&memory, size_t{1} << 19, stream), cudaSuccess);
    float* x = static_cast<float*>(memory);
    all.insert(x);
    ASSERT_CUDA(cudaMemsetAsync(x, 0, 256, stream), cudaSuccess);
    ASSERT_CUDA(increment(x, 64, stream), cudaSuccess);
    ASSERT_CUDA(cudaFreeAsync(x, stream), cudaSuccess);
  }
  EXPECT_LT(all.size(), 12u);
  expect_quiet(cudaSuccess);
}

// What the host has waited for is in order.
TEST_F(Checker, WaitsOfTheHostOrderStreams) {
  const cudaStream_t a = new_stream(), b = new_stream();
  float *x = filled(), *y = filled();
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  ASSERT_CUDA(increment(x, 64, a), cudaSuccess);
  ASSERT_CUDA(cudaStreamSynchronize(a), cudaSuccess);
  expect_quiet(copy_64(y, x, b));
  // Also when the stream is gone by then.
  ASSERT_CUDA(increment(x, 64, a), cudaSuccess);
  while (cudaStreamQuery(a) == cudaErrorNotReady) std::this_thread::yield();
  ASSERT_CUDA(increment(x, 64, b), cudaSuccess);
  ASSERT_CUDA(cudaStreamDestroy(b), cudaSuccess);
  ASSERT_CUDA(cudaDeviceSynchronize(), cudaSuccess);
  expect_quiet(copy_64(y, x, a));
}

}  // namespace
}  // namespace ramet::testing
