// Tensors on GPUs as a user sees them: moving, printing, reading, mixing devices, running out of
// memory.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "autograd/graph/captured.h"
#include "autograd/ops.h"
#include "ramet/compat/cuda.h"
#include "runtime/base/device.h"
#include "runtime/cuda/device_state.h"
#include "runtime/memory/allocator.h"
#include "tests/autograd/table/op_table.h"
#include "tests/error_text.h"
#include "tests/runtime/cuda/gpus.h"
#include "tests/tools/emulated_gpu/kernels.h"

namespace ramet {
namespace {

using op_table::bits;
const Device host(kCPU, 0), gpu(kCUDA, 0), other(kCUDA, 1);

Tensor numbers(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return arange(static_cast<double>(n)).reshape(sizes);
}

TEST(GpuTensors, CopiesOfDenseSlices) {
  // Where the slice begins decides how wide a thread's piece is: 16 bytes or the element.
  for (const ScalarType t : {kDouble, kFloat, kHalf, kUInt8})
    for (const int64_t from : {0, 1, 2, 5, 16}) {
      const Tensor x = arange(3000).remainder(251).to(t), there = x.to(gpu).slice(0, from);
      cuda::DeviceState& state = cuda::device_state(0, "test");
      state.forget_launches();
      const Tensor copy = there.clone();
      const auto bytes = static_cast<uint64_t>(there.numel() * x.element_size());
      const uint64_t wide = static_cast<uint64_t>(from * x.element_size()) % 16 == 0
                                ? bytes / 16
                                : static_cast<uint64_t>(there.numel());
      EXPECT_LT(state.launches().most_threads, wide + 1024) << t << " from " << from;
      EXPECT_EQ(bits(copy.to(host)), bits(x.slice(0, from).clone())) << t << " from " << from;
    }
}

TEST(GpuTensors, GammaFunctionsHaveTheHostsBits) {  // simd/gamma.h, by the host's libm here
  RAMET_EMULATED_ONLY("another libm");
  for (const ScalarType t : {kDouble, kFloat, kHalf}) {
    const Tensor x = arange(-19.9375, 20, 0.125, t), there = x.to(gpu);  // no poles: NaNs differ
    EXPECT_EQ(bits(lgamma(there).to(host)), bits(lgamma(x))) << t;
    EXPECT_EQ(bits(digamma(there).to(host)), bits(digamma(x))) << t;
    for (const int64_t n : {0, 1, 2, 5})
      EXPECT_EQ(bits(polygamma(n, there).to(host)), bits(polygamma(n, x))) << t << " order " << n;
  }
}

TEST(GpuTensors, MoveBetweenHostAndDevices) {
  for (const Tensor& x : {numbers({4, 5}), numbers({4, 5}).t(), numbers({6, 4}).slice(0, 0, 6, 2),
                          numbers({}), numbers({0, 3}), numbers({3}).expand({4, 3})}) {
    const Tensor there = x.to(gpu), further = there.to(other), back = further.to(host);
    EXPECT_EQ(there.device(), gpu);
    EXPECT_EQ(further.device(), other);
    EXPECT_EQ(bits(back), bits(x));
    EXPECT_EQ(bits(there.to(host)), bits(x));
    EXPECT_EQ(bits(there.to(kDouble).to(host)), bits(x.to(kDouble)));
    EXPECT_EQ(bits(x.to(gpu, kHalf).to(host)), bits(x.to(kHalf)));
    EXPECT_TRUE(there.to(gpu).is_same(there));
  }
}

TEST(GpuTensors, CopyIntoViewsOnEitherSide) {
  const Tensor x = numbers({4, 6}), there = zeros({6, 4}).to(gpu), here = zeros({4, 6});
  there.t().copy_(x);
  EXPECT_EQ(bits(there.to(host)), bits(x.t().contiguous()));
  here.slice(1, 0, 6, 2).copy_(there.t().slice(1, 1, 6, 2));
  EXPECT_EQ(bits(here.slice(1, 0, 6, 2).contiguous()), bits(x.slice(1, 1, 6, 2).contiguous()));
  there.copy_(tensor({1., 2., 3., 4.}, kDouble));  // broadcast, cast
  EXPECT_EQ(there.to(host).sum().item<float>(), 60);
}

TEST(GpuTensors, GradientsTravelBack) {
  const Tensor w = numbers({3}).requires_grad_();
  w.to(gpu).mul(2).to(other).sum().backward();
  EXPECT_EQ(bits(w.grad()), bits(full({3}, 2.f)));
}

TEST(GpuTensors, ReadOneElementAndPrint) {
  const Tensor x = numbers({2, 3}).to(gpu);
  EXPECT_EQ(x[1][2].item<float>(), 5);
  std::ostringstream text;
  text << x;
  EXPECT_EQ(text.str(), " 0  1  2\n 3  4  5\n[ CUDAFloatType{2,3} ]");
}

TEST(GpuTensors, EqualAndAllcloseReadTheAnswer) {
  const Tensor x = numbers({2, 3}).to(gpu);
  EXPECT_TRUE(equal(x, x.clone()));
  EXPECT_FALSE(allclose(x, x.add(1)));
}

TEST(GpuTensors, DevicesDoNotMix) {
  const Tensor x = ones({3}), y = ones({3}).to(gpu);
  EXPECT_ERROR_TEXT(x.add(y), "cpu");
  EXPECT_ERROR_TEXT(x.add(y), "cuda:0");
  EXPECT_ERROR_TEXT(y.matmul(ones({3}).to(other)), "cuda:1");
  EXPECT_ERROR_TEXT(y.index_select(0, tensor({0})), "cuda:0");
  // A 0-dim tensor of the host is a number.
  EXPECT_EQ(y.add(tensor(2.f)).sum().item<float>(), 9);
}

TEST(GpuTensors, ADeviceThatDoesNotExist) {
  EXPECT_ERROR_TEXT(ones({3}).to(Device(kCUDA, 7)), "cuda:7");
  EXPECT_ERROR_TEXT(ones({3}, TensorOptions().device(Device(kCUDA, 7))),
                    "expected cuda:0 to cuda:1");
}

TEST(GpuTensors, MemoryRunsOutAndComesBack) {
  const Tensor kept = ones({1000}).to(gpu);
  set_memory_limit(gpu, int64_t{1} << 20);
  EXPECT_THROW(empty({1 << 20}, TensorOptions().device(gpu)), OutOfMemoryError);
  EXPECT_ERROR_TEXT(empty({1 << 20}, TensorOptions().device(gpu)), "4194304 bytes");
  EXPECT_EQ(kept.sum().item<float>(), 1000);
  set_memory_limit(gpu, 0);
  EXPECT_EQ(zeros({1 << 20}, TensorOptions().device(gpu)).sum().item<float>(), 0);
}

// The last error of the thread is not the launch's: a kernel that has run is not run again for it.
TEST(GpuTensors, ErrorsOfOthersAreNotOurs) {
  const Tensor x = ones({1000}).to(gpu);
  void* never = nullptr;
  ASSERT_EQ(cudaMalloc(&never, size_t{1} << 50), cudaErrorMemoryAllocation);
  x.add_(1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation) << "it is for who asks";
  EXPECT_EQ(x.sum().item<float>(), 2000);
}

TEST(GpuTensors, WhatIsReleasedIsUsedAgain) {
  empty_cache();
  const Tensor first = ones({1000}, TensorOptions().device(gpu));
  const auto before = memory_stats(gpu).current;
  for (int i = 0; i < 50; ++i) {
    const Tensor x = first.add(i);
    EXPECT_GT(memory_stats(gpu).current, before);
  }
  EXPECT_EQ(memory_stats(gpu).current, before);
}

// As an extension of LibTorch does it. Streams are lazy here: in a different stream the kernel
// would read memory before the operation.
TEST(GpuTensors, KernelsOfTheProgramAmongOperations) {
  for (const Device device : {gpu, other}) {
    const at::cuda::OptionalCUDAGuard guard(device);
    Tensor x = zeros({5000}, TensorOptions().device(device)).add(1);
    ASSERT_EQ(testing::increment(x.data_ptr<float>(), x.numel(), at::cuda::getCurrentCUDAStream()),
              cudaSuccess);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const Tensor y = x * 3;
    const auto there = c10::cuda::getCurrentCUDAStream(static_cast<DeviceIndex>(device.index()));
    EXPECT_EQ(there.device(), device);
    EXPECT_TRUE(there == c10::cuda::getDefaultCUDAStream());
    AT_CUDA_CHECK(testing::increment(x.data_ptr<float>(), x.numel(), there));
    x = Tensor();  // its memory waits for the kernel
    const Tensor z = zeros({5000}, TensorOptions().device(device));
    EXPECT_EQ((y + z).sum().item<float>(), 5000 * 6) << device;
    there.synchronize();
    EXPECT_TRUE(there.query());
  }
  EXPECT_ERROR_TEXT(C10_CUDA_CHECK(cudaErrorInvalidValue), "[CUDA] cudaErrorInvalidValue: ");
  Captured step([](const Tensor&) { (void)cuda::current_stream(); });
  EXPECT_ERROR_TEXT(step(ones({2}, TensorOptions().device(gpu))),
                    "[current_stream] not capturable");
}

}  // namespace
}  // namespace ramet
