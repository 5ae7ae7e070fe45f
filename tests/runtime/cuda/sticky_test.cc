// A kernel that dies makes its device unusable. The error names the call that noticed, the device
// and the kernels that may have caused it; other devices go on.
#include "runtime/cuda/check.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "runtime/devices/devices.h"
#include "tests/runtime/cuda/gate.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

void trap(const char* name) {
  cuda::DeviceState& state = cuda::device_state(0, name);
  const cuda::CardGuard card(name, state);
  RAMET_CUDA(name, 0, planted_trap(state.launching(name, 1, cuda::Queue::kCompute)));
}

// What the CUDA runtime's list of errors says of each code: a caller that gets one also gets the
// list of kernels that ran.
TEST(CudaStickyErrors, AllCodesAfterWhichNothingGoesOn) {
  const Gpus gpus;
  cuda::device_state(0, "test").synchronize("before");
  cuda::device_state(0, "test").launching("softmax", 1, cuda::Queue::kCompute);
  const auto told = [](int code) {
    return message_of([&] {
      cuda::raise(static_cast<cudaError_t>(code), "item", "cudaStreamSynchronize(s)", 0);
    });
  };
  for (int code : {700, 702, 710, 714, 715, 716, 717, 718, 719, 721})
    EXPECT_NE(told(code).find("left behind by kernel softmax. The device cannot be used any more"),
              std::string::npos)
        << told(code);
  for (int code : {214, 220, 226, 810, 911})
    EXPECT_NE(told(code).find("met by kernel softmax. The device cannot be used any more"),
              std::string::npos)
        << told(code);
  for (int code : {1, 101, 400, 701, 704, 705, 712, 713, 720, 800, 801, 900})
    EXPECT_EQ(told(code).find("softmax"), std::string::npos) << told(code);
}

// On a real GPU the device stays lost from here on, for the whole process.
TEST(CudaStickyErrors, NameTheKernel) {
  const Gpus gpus;
  cuda::device_state(0, "test").synchronize("before");
  trap("softmax");
  EXPECT_MESSAGE(cuda::device_state(0, "test").synchronize("synchronize"),
                 "[synchronize] cudaStreamSynchronize on cuda:0 failed");
  EXPECT_MESSAGE(cuda::device_state(0, "test").synchronize("synchronize"),
                 "left behind by kernel softmax. The device cannot be used any more");
}

TEST(CudaStickyErrors, NameAllThatMayHaveBeenIt) {
  RAMET_EMULATED_ONLY("a real device stays lost for the whole process");
  const Gpus gpus;
  cuda::device_state(0, "test").launching("add", 1, cuda::Queue::kCompute);
  trap("mul");
  EXPECT_MESSAGE(cuda::device_state(0, "test").synchronize("item"),
                 "[item] cudaStreamSynchronize on cuda:0 failed");
  EXPECT_MESSAGE(cuda::device_state(0, "test").synchronize("item"), "one of the kernels add, mul");
}

// Where the device's streams are put in order, under the lock of its streams.
TEST(CudaStickyErrors, MetByAnOrderOfStreams) {
  RAMET_EMULATED_ONLY("a real device stays lost for the whole process");
  const Gpus gpus;
  cuda::DeviceState& state = cuda::device_state(0, "test");
  state.order(cuda::Queue::kCompute, cuda::Queue::kCopyOut, "before");
  trap("softmax");
  EXPECT_MESSAGE(state.synchronize("synchronize"), "cuda:0");
  EXPECT_MESSAGE(state.order(cuda::Queue::kCompute, cuda::Queue::kCopyOut, "order"),
                 "left behind by kernel softmax. The device cannot be used any more");
}

TEST(CudaStickyErrors, OtherDevicesGoOn) {
  RAMET_EMULATED_ONLY("a real device stays lost for the whole process");
  const Gpus gpus;
  trap("softmax");
  EXPECT_MESSAGE(cuda::device_state(0, "test").synchronize("synchronize"), "cuda:0");
  void* p = gpu::library()->allocate(4, 1);
  int sent = 5, back = 0;
  cuda::copy("copy", p, kSecond, &sent, kCpu, 4);
  cuda::copy("copy", &back, kCpu, p, kSecond, 4);
  EXPECT_EQ(back, 5);
  gpu::library()->free(p, 4, 1);
}

TEST(CudaStickyErrors, OtherDevicesAreWaitedFor) {
  RAMET_EMULATED_ONLY("a real device stays lost for the whole process");
  RAMET_SKIP_IF_ONE_AT_A_TIME();
  const Gpus gpus;
  trap("softmax");
  Gate gate;
  queue(1, Gate::wait, &gate);
  const OpensLater later(gate);
  EXPECT_MESSAGE(devices::synchronize(), "[synchronize] cudaStreamSynchronize on cuda:0 failed");
  EXPECT_TRUE(gate.passed);
}

}  // namespace
}  // namespace ramet::testing
