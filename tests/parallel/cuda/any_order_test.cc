// Reduction order `any`: NCCL forms the sums where it can, a kernel elsewhere.
#include <gtest/gtest.h>

#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/base/logging.h"
#include "runtime/cuda/nccl.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/cuda/gpu_models.h"
#include "tests/runtime/cuda/greedy.h"
#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/nccl/nccl_control.h"
#endif

namespace ramet::testing {
namespace {

using namespace parallel;

ReduceOptions any() {
  ReduceOptions o;
  o.order = ReduceOrder::any();
  return o;
}

TEST(AnyOrder, ByNccl) {
  RAMET_EMULATED_ONLY("four cards");
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Async, emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    emulated::Settings settings = gpu_settings(4);
    settings.streams = mode;
    const Gpus four(settings);
    for (const ScalarType dtype : {kFloat, kDouble, kHalf, kBFloat16, kInt, kLong, kByte}) {
      std::vector<Tensor> in;
      for (int k = 0; k < 4; ++k) in.push_back(filled({33}, 1 << k, dtype, gpu(k)));
      for (int to : {0, 2}) {
        const uint64_t before = cuda::nccl_sums();
        const Tensor sum = comm::reduce_add(in, gpu(to), any());
        in[3].fill_(8);  // after the sum
        EXPECT_EQ(values(sum), Values(33, 15)) << short_name_of(dtype);
        EXPECT_EQ(cuda::nccl_sums(), before + 1);
      }
    }
    EXPECT_EQ(comm::plan(gpus(4), gpu(2), ReduceOrder::any()),
              std::vector<comm::Route>(4, comm::Route::library));
    EXPECT_EQ(comm::plan(gpus(4), gpu(2), ReduceOrder::any(), kBool)[2], comm::Route::local);
  }
}

TEST(AnyOrder, ByAKernelElsewhere) {
  const auto expect_kernel = [](const std::vector<Tensor>& in, Device to) {
    const uint64_t before = cuda::nccl_sums();
    EXPECT_EQ(values(comm::reduce_add(in, to, any()))[0], values(comm::reduce_add(in, to))[0]);
    EXPECT_EQ(cuda::nccl_sums(), before);
  };
  {
    const Gpus three(gpu_settings(3));
    const Tensor a = filled({5}, 1, kFloat, gpu(0)), b = filled({5}, 2, kFloat, gpu(1));
    expect_kernel({a, b}, kHost);
    expect_kernel({a, b}, gpu(2));                  // not one of them
    expect_kernel({a, b, filled({5}, 4)}, gpu(0));  // the host's
    expect_kernel({a, b, a}, gpu(0));               // twice one GPU
    expect_kernel({a.to(kBool), b.to(kBool)}, gpu(0));
  }
  const Gpus one(gpu_settings(1), "0,0");
  expect_kernel({filled({5}, 1, kFloat, gpu(0)), filled({5}, 2, kFloat, gpu(1))}, gpu(0));
}

#if RAMET_GPU_EMULATED
TEST(AnyOrder, CommunicatorsOfAFailedSumAreNotUsedAgain) {
  const Gpus two(gpu_settings(2));
  const std::vector<Tensor> in = {filled({5}, 1, kFloat, gpu(0)), filled({5}, 2, kFloat, gpu(1))};
  const auto sum = [&] { return values(comm::reduce_add(in, gpu(0), any())); };
  EXPECT_EQ(sum(), Values(5, 3));
  emulated::fail_next_nccl_group(ncclInternalError);
  EXPECT_MESSAGE(sum(), "[reduce_add] ncclGroupEnd failed: internal error");
  EXPECT_EQ(sum(), Values(5, 3));
  // The second rank's call is refused, the first one's waits for it in its stream.
  const Tensor out = filled({5}, 0, kFloat, gpu(0)), host = filled({5}, 2);
  const void* const parts[] = {in[0]->data, host->data};
  const int devices[] = {0, 1};
  EXPECT_MESSAGE(cuda::nccl_sum("test", parts, devices, 2, out->data, 0, 5, kFloat),
                 "[test] ncclReduce failed: invalid argument");
  EXPECT_EQ(sum(), Values(5, 3));
}

// For communicators, or for connections, which NCCL makes with the first sum. Caches go back, and
// the sum is begun again, once.
TEST(AnyOrder, MemoryThatNcclNeeds) {
  const GreedyGpus two(2);
  const std::vector<Tensor> in = {filled({5}, 1, kFloat, gpu(0)), filled({5}, 2, kFloat, gpu(1))};
  const auto sum = [&] { return values(comm::reduce_add(in, gpu(0), any())); };
  EXPECT_EQ(sum(), Values(5, 3));  // streams are there
  const auto cached = [] { return memory_stats(gpu(1)).cached >= int64_t{62} << 20; };

  cuda::destroy_communicators();
  nearly_all_of(gpu(1));
  ASSERT_TRUE(cached());
  EXPECT_EQ(sum(), Values(5, 3));
  EXPECT_FALSE(cached());

  nearly_all_of(gpu(1));
  emulated::fail_next_nccl_group(ncclUnhandledCudaError);
  const uint64_t sums = cuda::nccl_sums();
  EXPECT_EQ(sum(), Values(5, 3));
  EXPECT_FALSE(cached());
  EXPECT_EQ(cuda::nccl_sums(), sums + 1);

  cuda::destroy_communicators();
  {
    const Tensor all = nearly_all_of(gpu(1));
    EXPECT_MESSAGE(sum(), "[reduce_add] ncclCommInitAll failed: unhandled cuda error");
  }
  EXPECT_EQ(sum(), Values(5, 3));
}

TEST(AnyOrder, DevicesThatShareACardAreToldOfOnce) {
  const Gpus one(gpu_settings(1), "0,0");
  std::vector<std::string> said;
  set_log_handler([&](LogLevel, const std::string& text) { said.push_back(text); });
  const Tensor a = filled({5}, 1, kFloat, gpu(0)), b = filled({5}, 2, kFloat, gpu(1));
  comm::reduce_add({a, b}, gpu(0));
  comm::reduce_add({a, a}, gpu(0), any());  // one device alone
  EXPECT_EQ(said, std::vector<std::string>());
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(values(comm::reduce_add({a, b}, gpu(0), any())), Values(5, 3));
  set_log_handler(nullptr);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("NCCL wants a card for each device"), std::string::npos) << said[0];
}
#endif

TEST(AnyOrder, GradientsOfBuckets) {
  RAMET_EMULATED_ONLY("four cards");
  emulated::Settings settings = gpu_settings(4);
  settings.streams = emulated::StreamMode::Random;
  const Gpus four(settings);
  const auto gradients = [](ReduceOrder order) {
    SmallConv m;
    set_parameters(*m, 5);
    m->to(gpu(0));
    nn::parallel::DataParallelOptions options(gpus(4));
    options.order = order;
    options.bucket_bytes = 256;
    nn::parallel::DataParallel<SmallConv> dp(m, options);
    for (int step = 0; step < 2; ++step) dp(varied({8, 1, 6, 6}, 6)).sum().backward();
    return all_gradients(*m);  // of both: the second was added
  };
  const uint64_t before = cuda::nccl_sums();
  const Values fixed = gradients(ReduceOrder::fixed());
  EXPECT_EQ(cuda::nccl_sums(), before);
  const Values any = gradients(ReduceOrder::any());
  EXPECT_GT(cuda::nccl_sums(), before);
  EXPECT_LE(difference(fixed, any), 1e-6);
}

}  // namespace
}  // namespace ramet::testing
