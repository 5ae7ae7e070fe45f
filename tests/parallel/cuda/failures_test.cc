// The errors where a GPU is absent, too small or unlike the others, and that the next call works.
#include <gtest/gtest.h>

#include "autograd/graph/captured.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/base/logging.h"
#include "runtime/cuda/blas.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "tests/parallel/cuda/gpu_models.h"
#include "tests/runtime/cuda/greedy.h"

namespace ramet::testing {
namespace {

using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;

TEST(GpuFailures, ADeviceThatDoesNotExist) {
  RAMET_EMULATED_ONLY("machines with two cards and with none");
  nn::Linear m(2, 2);
  const Tensor x = varied({4, 2}, 1);
  {
    const Gpus two(gpu_settings(2));
    EXPECT_MESSAGE(DataParallel<nn::Linear>(m, {gpu(0), gpu(5)}),
                   "device does not exist: got cuda:5, expected cuda:0 to cuda:1");
    EXPECT_MESSAGE(parallel::comm::broadcast(x, {gpu(2)}), "got cuda:2");
    EXPECT_EQ(nn::parallel::default_devices(), gpus(2));
  }
  const Gpus none(gpu_settings(0));
  EXPECT_MESSAGE(DataParallel<nn::Linear>(m, {gpu(0)}),
                 "Expected at least one CUDA device to be available: ");
  EXPECT_EQ(nn::parallel::default_devices()[0], kHost);
}

TEST(GpuFailures, TheListOfCards) {
  RAMET_EMULATED_ONLY("a machine with two cards");
  for (const auto& [list, what] :
       {std::pair("0,x", "[RAMET_CUDA_DEVICES] got '0,x', expected numbers of cards with commas"),
        std::pair("0,7", "[RAMET_CUDA_DEVICES] got '0,7', but there is no card 7: 2 cards found"),
        std::pair("0,,1", "[RAMET_CUDA_DEVICES] got '0,,1'")}) {
    const Gpus two(gpu_settings(2), list);
    nn::Linear m(2, 2);
    EXPECT_MESSAGE(DataParallel<nn::Linear>(m, {gpu(0), gpu(1)}), what);
    EXPECT_MESSAGE(nn::parallel::default_devices(), what);
    // The host's devices do not ask.
    EXPECT_EQ(DataParallel<nn::Linear>(m, {kHost, Device(kCPU, 1)})(varied({4, 2}, 1)).size(0), 4);
  }
}

TEST(GpuFailures, OperandsOfTwoDevices) {
  const Gpus two(gpu_settings(2));
  nn::Linear m(2, 2);
  m->to(gpu(1));
  for (const Device other : {kHost, gpu(0)}) {
    const std::string text = message_of([&] { m(varied({4, 2}, 1).to(other)); });
    EXPECT_NE(text.find("cuda:1"), std::string::npos) << text;
    EXPECT_NE(text.find(other.str()), std::string::npos) << text;
  }
}

TEST(GpuFailures, MemoryRunsOut) {
  RAMET_EMULATED_ONLY("cards of 64 and 24 MiB");
  emulated::Settings settings = gpu_settings(2);
  settings.memory = {size_t{64} << 20, size_t{24} << 20};
  const Gpus two(settings);
  Call m([](const Tensor& x) { return x * x; });
  DataParallel<Call> dp(m, gpus(2));
  const Tensor small = varied({8, 4}, 1);
  // A piece of 16 MiB, and next to it its square.
  const std::string text = message_of([&] { dp(filled({8, 1 << 20}, 1)); });
  EXPECT_NE(text.find("in replica 1 on device cuda:1"), std::string::npos) << text;
  EXPECT_NE(text.find("[allocate] out of memory on cuda:1: got a request of 16777216 bytes"),
            std::string::npos)
      << text;
  EXPECT_EQ(values(dp(small)), values(small * small)) << "usable afterwards";

  set_memory_limit(gpu(0), 1 << 20);
  EXPECT_MESSAGE(dp(filled({8, 1 << 17}, 1)), "(set_memory_limit)");
  set_memory_limit(gpu(0), 0);
  EXPECT_EQ(values(dp(small)), values(small * small));
}

TEST(GpuFailures, NoRoomForWhatTheLibraryItselfNeeds) {
  RAMET_EMULATED_ONLY("a card of 2 MiB");
  emulated::Settings settings = gpu_settings(1);
  settings.memory = {size_t{2} << 20};  // one segment of the allocator
  const Gpus one(settings);
  const Tensor x = counting({4}, kFloat, gpu(0)), index = make({1}, kLong, gpu(0));
  const auto small = [] { return empty({1}, TensorOptions(kFloat).device(gpu(0))); };
  std::vector<Tensor> rest;
  EXPECT_THROW(for (;;) rest.push_back(small()), OutOfMemoryError);
  rest.pop_back();  // leaves memory for one thing: the word that records faults, or the result
  EXPECT_THROW(x.index_select(0, index), OutOfMemoryError);
  rest.clear();
  EXPECT_EQ(values(x + x), (Values{0, 2, 4, 6})) << "usable afterwards";
  EXPECT_EQ(values(x.index_select(0, index)), Values{1});
}

TEST(GpuFailures, NoRoomForWhatTheDriverNeeds) {
  RAMET_EMULATED_ONLY("a card of 64 MiB, and a driver that wants one of them");
  const GreedyGpus one(1);
  const Tensor x = counting({4}, kFloat, gpu(0));
  EXPECT_EQ(values(x + x), (Values{0, 2, 4, 6}));
  nearly_all_of(gpu(0));  // cached
  const Tensor y = x + x;
  EXPECT_LT(memory_stats(gpu(0)).cached, int64_t{62} << 20) << "went back for the launch";
  {
    const Tensor all = nearly_all_of(gpu(0));
    EXPECT_MESSAGE(x + x, "[add] out of memory on cuda:0: launch failed");
    EXPECT_THROW(x + x, OutOfMemoryError);
  }
  EXPECT_EQ(values(y + x), (Values{0, 3, 6, 9})) << "usable afterwards";
}

// cuBLASLt's handle and its products. On devices that no other test multiplies on: a handle stays.
// Every other launch finds what it needs in the caches that went.
TEST(GpuFailures, NoRoomForWhatCublasLtNeeds) {
  RAMET_EMULATED_ONLY("cards of 64 MiB, and a library that wants one of them");
  const GreedyGpus four(4);
  const auto expect_room_for = [&](Device d, const auto& f, double value, const char* what) {
    SCOPED_TRACE(what);
    nearly_all_of(d);
    EXPECT_GE(memory_stats(d).cached, int64_t{62} << 20);
    const Tensor out = f();
    EXPECT_LT(memory_stats(d).cached, int64_t{62} << 20);
    EXPECT_EQ(values(out), Values(1024, value));
  };
  const auto square = [](const Tensor& v) { return v.mm(v); };
  // As many products (32^3) as are not left to Ramet's own kernel.
  const auto twos = [](Device d) { return filled({32, 32}, 2, kFloat, d); };

  const Tensor x = twos(gpu(2));
  const uint64_t before = cuda::blas_searches();
  expect_room_for(
      gpu(2), [&] { return square(x); }, 128, "a handle");
  expect_room_for(
      gpu(2), [&] { return square(x); }, 128, "a product");
  {
    const Tensor all = nearly_all_of(gpu(2));
    EXPECT_MESSAGE(square(x), "[matmul] out of memory on cuda:2: cublasLtMatmul failed");
    EXPECT_THROW(square(x), OutOfMemoryError);
  }
  EXPECT_EQ(values(square(x)), Values(1024, 128)) << "usable afterwards";

  // No handle is made while a stream is captured.
  const Tensor y = twos(gpu(3));
  Captured captured(square);
  expect_room_for(
      gpu(3), [&] { return captured(y); }, 128, "a graph");
  y.fill_(1);
  EXPECT_EQ(values(captured(y)), Values(1024, 32));
  EXPECT_EQ(cuda::blas_searches(), before + 2) << "cuBLASLt multiplied on both devices";
}

TEST(GpuFailures, UnequalGpusAreWarnedOf) {
  RAMET_EMULATED_ONLY("cards of unequal memory");
  std::vector<std::string> warnings;
  set_log_handler([&](LogLevel level, const std::string& text) {
    if (level == LogLevel::Warning) warnings.push_back(text);
  });
  emulated::Settings settings = gpu_settings(3);
  settings.memory = {size_t{64} << 20, size_t{32} << 20, size_t{64} << 20};
  {
    const Gpus three(settings);
    nn::Linear m(2, 2);
    DataParallel<nn::Linear> unequal(m, gpus(3));
    ASSERT_EQ(warnings.size(), 1u);
    EXPECT_NE(warnings[0].find("There is an imbalance between your GPUs. You may want to exclude "
                               "GPU 1 which has less than 75% of the memory or cores of GPU 0"),
              std::string::npos)
        << warnings[0];
    DataParallel<nn::Linear> equal(m, {gpu(0), gpu(2)});
    EXPECT_EQ(warnings.size(), 1u);
  }
  set_log_handler(nullptr);
}

// A wrong index in the second replica reaches the loop that reads its loss on the first GPU.
TEST(GpuFailures, ErrorsInAReplicasDataAreToldWithTheLoss) {
  const Gpus two(gpu_settings(2));
  nn::Embedding m(10, 4);
  m->to(gpu(0));
  DataParallel<nn::Embedding> dp(m, gpus(2));
  const auto loss = [&](int64_t last) {
    return dp(tensor({int64_t{0}, int64_t{1}, int64_t{2}, last})).square().mean();
  };
  EXPECT_NO_THROW(loss(3).item<float>());
  for (int step = 0; step < 2; ++step) {
    const Tensor l = loss(77);
    l.backward();
    EXPECT_MESSAGE(l.item<float>(),
                   "[embedding] index out of range: got 77 at position 1, on cuda:1");
    EXPECT_NO_THROW(devices::synchronize());
    EXPECT_NO_THROW(loss(3).item<float>());
  }
}

}  // namespace
}  // namespace ramet::testing
