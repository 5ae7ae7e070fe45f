// Captured data-parallel steps on several GPUs, and on GPUs and CPUs together.
#include "nn/module/sequential.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/nccl.h"
#include "runtime/memory/allocator.h"
#include "tests/capture/training.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet {
namespace capture_tests {
namespace {

using testing::gpu_settings;
using testing::Gpus;

Device gpu(int k) { return Device(kCUDA, static_cast<DeviceIndex>(k)); }
std::vector<Device> gpus(int n) {
  std::vector<Device> out;
  for (int k = 0; k < n; ++k) out.push_back(gpu(k));
  return out;
}

// Nothing is right by luck: streams do nothing until a caller waits, or run in any order.
emulated::Settings settings(int devices, emulated::StreamMode mode = emulated::StreamMode::Lazy) {
  emulated::Settings s = gpu_settings(devices);
  s.streams = mode;
  return s;
}

void expect_same(const DataParallelOptions& options, int steps) {
  const Steps captured =
      expect_same_steps([&] { return Training(options); }, steps, [](int i) { return i == 7; });
  EXPECT_EQ(captured.counters.captures, 3u);
  EXPECT_EQ(captured.counters.replays, static_cast<uint64_t>(steps - 4));
}

TEST(CapturedGpus, SameBitsAsEager) {
  for (const bool peers : {true, false}) {
    for (const int devices : {2, 4}) {
      SCOPED_TRACE(std::to_string(devices) + (peers ? " GPUs" : " GPUs apart"));
      emulated::Settings s = settings(devices);
      s.all_peers = peers;
      const Gpus here(s);
      DataParallelOptions options(gpus(devices));
      options.bucket_bytes = 256;  // several sums, on the communication stream
      expect_same(options, devices == 4 && peers ? kSteps : 10);
    }
  }
}

TEST(CapturedGpus, OtherOrders) {
  const Gpus four(settings(4, emulated::StreamMode::Random));
  DataParallelOptions options(gpus(4));
  options.bucket_bytes = 256;
  options.order = ReduceOrder::tree(4);
  expect_same(options, 10);
  options.order = ReduceOrder::any();
  [[maybe_unused]] const uint64_t before = cuda::nccl_sums();
  expect_same(options, 10);
#if RAMET_GPU_EMULATED  // NCCL wants a GPU for each rank, which logical GPUs of one GPU are not
  EXPECT_GT(cuda::nccl_sums(), before);
#endif
}

TEST(CapturedGpus, WithCpus) {
  const Gpus two(settings(2));
  const Device cpu(kCPU, 1);
  for (const std::vector<Device>& devices :
       {std::vector<Device>{gpu(0), kHost, gpu(1), cpu}, std::vector<Device>{kHost, gpu(0), gpu(1)},
        std::vector<Device>{gpu(1), cpu}}) {
    DataParallelOptions options(devices);
    options.bucket_bytes = 256;
    expect_same(options, devices.size() == 4 ? kSteps : 10);
  }
}

TEST(CapturedGpus, SynchronisedBatchNorm) {
  const Gpus two(settings(2));
  for (const std::vector<Device>& devices : {gpus(2), std::vector<Device>{gpu(0), kHost, gpu(1)}}) {
    const DataParallelOptions options(devices);
    const Steps captured = expect_same_steps([&] { return Training(options, /*sync=*/true); }, 8);
    EXPECT_EQ(captured.counters.captures, 3u);
  }
}

// A graph for each stretch of one GPU's kernels, whichever devices take turns.
TEST(CapturedGpus, OneFunctionOnTwoGpus) {
  const Gpus two(settings(2));
  const Tensor a = arange(1000).to(kFloat).to(gpu(0)), b = ones({1000}).to(gpu(1));
  const auto body = [&](const Tensor& x) {
    const Tensor p = (x + a) * 2;
    const Tensor q = p.to(gpu(1)) * b + 1;
    return q.to(gpu(0)) - p;
  };
  Captured step(body);
  for (const float v : {1.f, 2.f, 3.f}) {
    const Tensor x = full({1000}, v).to(gpu(0));
    EXPECT_EQ(bits(step(x)), bits(body(x)));
    b.fill_(v + 1);
  }
  EXPECT_EQ(step.counters().captures, 1u);
}

TEST(CapturedGpus, NoDeviceMemoryInAReplay) {
  const Gpus two(settings(2));
  DataParallelOptions options(gpus(2));
  options.bucket_bytes = 256;
  expect_no_allocation(Training(options), gpus(2));
}

// Kernels may take memory of their own while they are queued (runtime/cuda/scratch.h): no other
// code gets the memory of a graph's kernels.
TEST(CapturedGpus, ScratchMemoryBelongsToTheCapture) {
  emulated::Settings s = settings(1);
  s.memory = {size_t{256} << 20};
  const Gpus one(s);
  // Large enough to go by columns.
  const Tensor weight = randn({32, 32, 3, 3}).to(gpu(0));
  const auto body = [&](const Tensor& x) { return conv2d(x, weight, {}, 1, 1); };
  const int64_t before = memory_stats(gpu(0)).current;
  {
    Captured step(body);
    const Tensor x = randn({8, 32, 16, 16}).to(gpu(0));
    const std::string expected = bits(body(x));
    EXPECT_EQ(bits(step(x)), expected);
    // Takes memory that is free now: columns are 2.4 MB of it.
    std::vector<Tensor> others;
    for (int i = 0; i < 12; ++i) others.push_back(full({1 << 19}, 7.f).to(gpu(0)));
    const int64_t allocations = memory_stats(gpu(0)).allocations;
    EXPECT_EQ(bits(step(x)), expected);
    EXPECT_EQ(memory_stats(gpu(0)).allocations, allocations);
    for (const Tensor& t : others) ASSERT_EQ(bits(t), bits(full({1 << 19}, 7.f)));
    EXPECT_EQ(step.counters().replays, 1u);
  }
  EXPECT_EQ(memory_stats(gpu(0)).current, before);
}

// What is done with serves again, on the GPU that the kernels run on; the replays' values are right
// in any order of the streams.
TEST(CapturedGpus, MemoryServesAgainInsideACapture) {
  for (const emulated::StreamMode mode :
       {emulated::StreamMode::Lazy, emulated::StreamMode::Random}) {
    const Gpus two(settings(2, mode));
    nn::Sequential net;
    for (int i = 0; i < 8; ++i) net->push_back(nn::Linear(32, 32));
    net->to(gpu(1));
    const auto body = [&](const Tensor& x) {
      net->zero_grad();
      const Tensor there = (x * 2).to(gpu(1));  // a copy in the middle
      const Tensor y = net->forward(there);
      y.sum().backward();
      return y.to(gpu(0)) + x;
    };
    const Tensor x = randn({1024, 32}).to(gpu(0)), other = randn({1024, 32}).to(gpu(0));
    body(x);
    const std::string expected = bits(body(x)), expected_other = bits(body(other));
    net->zero_grad();
    [[maybe_unused]] const int64_t before = memory_stats(gpu(1)).current;
    Captured step(body);
    EXPECT_EQ(bits(step(x)), expected);
#if RAMET_GPU_EMULATED  // a real cuBLASLt works in hundreds of kilobytes of its own choice
    // 8 results and 8 gradients without it; two gradients serve in turn.
    EXPECT_LT(memory_stats(gpu(1)).current - before, 14 * 1024 * 32 * 4);
#endif
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(bits(step(other)), expected_other);
      EXPECT_EQ(bits(step(x)), expected);
    }
    EXPECT_EQ(step.counters().captures, 2u);  // without gradients before, and with
  }
}

// Sums and broadcasts take pointers, not tensors: a capture keeps and watches those, too.
TEST(CapturedGpus, OperandsOfSumsAndBroadcasts) {
  const Gpus two(settings(2));
  for (const std::vector<Device>& on :
       {std::vector<Device>{kHost, Device(kCPU, 1)}, gpus(2), std::vector<Device>{gpu(0), kHost}}) {
    Tensor a = full({1000}, 1.f).to(on[0]), b = full({1000}, 2.f).to(on[1]);
    Captured sum([&] { return parallel::comm::reduce_add({a, b}, on[0]); });
    Captured send([&] { return parallel::comm::broadcast(a, on); });
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(bits(sum()), bits(full({1000}, 3.f)));
      EXPECT_EQ(bits(send()[1]), bits(full({1000}, 1.f)));
    }
    a.set_data(full({1000}, 5.f).to(on[0]));  // elsewhere: noticed
    EXPECT_EQ(bits(sum()), bits(full({1000}, 7.f)));
    EXPECT_EQ(bits(send()[1]), bits(full({1000}, 5.f)));
    EXPECT_EQ(sum.counters().captures, 2u);
    EXPECT_EQ(send.counters().captures, 2u);
    a = b = Tensor();  // gone for the program
    std::vector<Tensor> others;
    for (int i = 0; i < 20; ++i)
      for (const Device& d : on) others.push_back(full({1000}, 9.f).to(d));
    EXPECT_EQ(bits(sum()), bits(full({1000}, 7.f)));
    EXPECT_EQ(bits(send()[1]), bits(full({1000}, 5.f)));
    EXPECT_EQ(sum.counters().captures, 2u);
  }
}

// An index out of range is raised when a caller waits, as by an eager step.
TEST(CapturedGpus, IndicesAreChecked) {
  const Gpus one(settings(1));
  const Tensor w = randn({4, 2}).to(gpu(0));
  Captured step([&](const Tensor& i) { return embedding(w, i); });
  const auto rows = [&](int64_t at) { return full({3}, at, kLong).to(gpu(0)); };
  EXPECT_EQ(bits(step(rows(1))), bits(embedding(w, rows(1))));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(bits(step(rows(4))), IndexError);
    EXPECT_EQ(bits(step(rows(3))), bits(embedding(w, rows(3))));
  }
  EXPECT_EQ(step.counters().captures, 1u);
}

// A host's number of no dimensions among a GPU's tensors is read at each replay.
TEST(CapturedGpus, NumbersOfTheHost) {
  const Gpus one(settings(1));
  const Tensor scale = tensor(2.f);
  Captured step([&](const Tensor& x) { return x * scale; });
  for (const float v : {2.f, 3.f}) {
    scale.fill_(v);
    EXPECT_EQ(bits(step(ones({3}).to(gpu(0)))), bits(full({3}, v)));
  }
  EXPECT_EQ(step.counters().captures, 1u);
}

}  // namespace
}  // namespace capture_tests
}  // namespace ramet
