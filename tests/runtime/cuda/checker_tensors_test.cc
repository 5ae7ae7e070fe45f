// What the checker of --config=check sees of tensors: where one ends, that it was not written, that
// it is gone. With a cache it sees none of that: to it a segment is one allocation. Other builds
// have no checker: there these tests are skipped.
#include "runtime/cuda/device_state.h"
#include "runtime/tensor/tensor_base.h"
#include "tests/runtime/cuda/caching.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/emulated_gpu/checked.h"
#include "tests/tools/emulated_gpu/planted.h"

namespace ramet::testing {
namespace {

cudaStream_t compute() {
  return cuda::device_state(0, "test").stream(cuda::Queue::kCompute, "test");
}
TensorBase fresh(int64_t n) { return TensorBase::empty({n}, kFloat, Device(kCUDA, 0)); }
float* data(const TensorBase& t) { return static_cast<float*>(t->data); }
TensorBase filled(int64_t n) {
  TensorBase t = fresh(n);
  EXPECT_EQ(write_ones(data(t), static_cast<int>(n) - 1, compute()), cudaSuccess);
  return t;
}

class CheckerTensors : public CheckedTest {
 protected:
  /// What the checker says of what f() queues.
  template <class F> std::string report_of(const char* caching, const F& f) {
    const Caching set(caching);
    const Gpus gpus;
    f();
    (void)message_of([] { cuda::device_state(0, "test").synchronize("test"); });
    return emulated::last_report();
  }
  template <class F> void expect_report(const F& f, const std::vector<std::string>& texts) {
    EXPECT_EQ(report_of("1", f), "") << "seen with a cache, too: this test shows nothing";
    expect_texts(report_of("0", f), texts);
  }
};

TEST_F(CheckerTensors, WhereOneEnds) {
  EXPECT_EQ(report_of("0", [] { filled(5); }), "");
  expect_report(
      [] {
        const TensorBase x = fresh(5);
        EXPECT_EQ(write_ones(data(x), 5, compute()), cudaSuccess);
      },
      {"global_overrun_kernel", "OUT OF BOUNDS: write to device memory",
       "which no allocation holds at planted.cu:", "thread (5,0,0)"});
}

TEST_F(CheckerTensors, WhatNobodyHasWritten) {
  expect_report(
      [] {
        filled(64);
        const TensorBase x = fresh(64), y = fresh(64);
        EXPECT_EQ(copy_64(data(y), data(x), compute()), cudaSuccess);
      },
      {"copy_kernel", "UNINITIALISED read of device memory", "at planted.cu:"});
}

TEST_F(CheckerTensors, WhatIsGone) {
  expect_report(
      [] {
        const TensorBase y = fresh(64);
        const float* const gone = data(filled(64));
        EXPECT_EQ(copy_64(data(y), gone, compute()), cudaSuccess);
      },
      {"copy_kernel", "OUT OF BOUNDS: read of device memory",
       "which no allocation holds at planted.cu:"});
}

}  // namespace
}  // namespace ramet::testing
