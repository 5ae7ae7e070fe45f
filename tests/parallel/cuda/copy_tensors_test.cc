// Lists of tensors that are no neighbours: one kernel call, or one copy of what was packed.
#include "kernels/copy/copy_tensors.h"

#include <gtest/gtest.h>

#include "nn/module/sequential.h"
#include "parallel/move/comm.h"
#include "parallel/move/counters.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "runtime/cuda/copies.h"
#include "runtime/cuda/device_state.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

using namespace parallel;

uint64_t launches(int k) { return cuda::device_state(k, "test").launches().count; }

// Every pair of places within 16 bytes, sizes around the 16-byte pieces and the tiles.
TEST(CopyTensorsOnGpu, AnyPlaceAndSize) {
  const Gpus one(gpu_settings(1));
  constexpr int64_t kEach = 40'000;
  const Tensor in = counting({kEach}, kFloat).remainder(251).to(kByte).to(gpu(0));
  const Values expected = values(in);
  kernels::CopyTensorsArgs a{};
  std::vector<int64_t> sizes;
  const Tensor out = zeros({kernels::kCopiedTensors, kEach}, TensorOptions(kByte).device(gpu(0)));
  std::vector<std::pair<int64_t, int64_t>> at;
  for (int t = 0; t < kernels::kCopiedTensors; ++t) {
    const int64_t n = t % 8 == 7 ? 16'384 * 2 + t : t % 3 ? t : 16'384 - 8 + t % 17;
    at.emplace_back(t % 16, (t * 5 + t / 16) % 16);
    sizes.push_back(n);
    a.tensors[t] = {static_cast<char*>(in.ptr()) + at.back().first,
                    static_cast<char*>(out.ptr()) + t * kEach + at.back().second, n};
  }
  a.count = kernels::kCopiedTensors;
  const uint64_t before = launches(0);
  kernels::copy_tensors(out.stream(), a);
  EXPECT_EQ(launches(0) - before, 1u);
  const Tensor got = out.to(kHost);
  const auto* byte = got.data_ptr<uint8_t>();
  for (int64_t t = 0; t < kernels::kCopiedTensors; ++t) {
    const auto [from, to] = at[static_cast<size_t>(t)];
    const int64_t n = sizes[static_cast<size_t>(t)];
    for (int64_t i = 0; i < kEach; ++i)
      ASSERT_EQ(byte[t * kEach + i],
                i < to || i >= to + n ? 0 : expected[static_cast<size_t>(from + i - to)])
          << "tensor " << t << ", byte " << i;
  }
}

// Between any two devices, with and without peers, in streams where nothing is right by luck.
TEST(CopyTensorsOnGpu, BroadcastsOfAnyTensors) {
  for (const bool peers : {true, false}) {
    emulated::Settings settings = gpu_settings(2);
    settings.all_peers = peers;
    settings.streams = emulated::StreamMode::Lazy;
    const Gpus two(settings);
    for (const Device home : {kHost, gpu(0)}) {
      std::vector<Tensor> list;
      for (int64_t i = 0; i < 40; ++i) {
        list.push_back(varied({i % 9, 11}, static_cast<uint64_t>(i + 1)).to(home));
      }
      list.push_back(varied({300'000}, 90).to(home));            // travels by itself
      list.push_back(varied({5, 7}, 91).to(home).t());           // lies otherwise
      list.push_back(varied({8, 3}, 92).to(home).select(1, 1));  // with gaps
      const auto rows = comm::broadcast_coalesced(list, {kHost, gpu(0), gpu(1)}, 64 << 20);
      for (const auto& row : rows)
        for (size_t i = 0; i < list.size(); ++i)
          EXPECT_EQ(values(row[i]), values(list[i])) << row[i].device() << " " << i;
      for (const Tensor& t : list) t.zero_();  // runs after what reads it
      EXPECT_EQ(values(rows[2][5]), values(varied({5, 11}, 6)));
    }
  }
}

TEST(CopyTensorsOnGpu, FewLaunchesAndCopies) {
  const Gpus two(gpu_settings(2));
  const auto list_on = [](Device home) {
    std::vector<Tensor> list;
    for (int64_t i = 0; i < 200; ++i) {
      list.push_back(varied({3 + i % 4}, static_cast<uint64_t>(i + 1)).to(home));
    }
    return list;
  };
  // GPU to GPU: a kernel for each kCopiedTensors, which reads its peer.
  const std::vector<Tensor> on_gpu = list_on(gpu(0));
  (void)comm::broadcast_coalesced(on_gpu, {gpu(1)});
  uint64_t before = launches(1), copies = cuda::copy_counts().direct;
  reset_counters();
  auto rows = comm::broadcast_coalesced(on_gpu, {gpu(1)});
  EXPECT_LE(launches(1) - before, 2u);
  EXPECT_LE(counters().comm_launches, 2u);
  EXPECT_EQ(cuda::copy_counts().direct, copies);
  EXPECT_EQ(values(rows[0][199]), values(on_gpu[199]));
  // The host to a GPU: packed there, one copy.
  const std::vector<Tensor> on_host = list_on(kHost);
  copies = cuda::copy_counts().to_device;
  before = launches(1);
  rows = comm::broadcast_coalesced(on_host, {gpu(1)});
  EXPECT_EQ(cuda::copy_counts().to_device - copies, 1u);
  EXPECT_EQ(launches(1), before) << "they lie as they are to";
  EXPECT_EQ(values(rows[0][199]), values(on_host[199]));
  // And back.
  copies = cuda::copy_counts().to_host;
  rows = comm::broadcast_coalesced(on_gpu, {kHost});
  EXPECT_EQ(cuda::copy_counts().to_host - copies, 1u);
  EXPECT_EQ(values(rows[0][7]), values(on_gpu[7]));
}

// Buffers of replicas, which lie anywhere, follow in one call a device.
TEST(CopyTensorsOnGpu, BuffersOfReplicas) {
  const Gpus two(gpu_settings(2));
  nn::Sequential net(nn::BatchNorm1d(4), nn::BatchNorm1d(4), nn::BatchNorm1d(4));
  net->to(gpu(0));
  nn::parallel::DataParallel<nn::Sequential> dp(
      net, nn::parallel::DataParallelOptions({gpu(0), gpu(1)}));
  const Tensor x = varied({8, 4}, 1, kFloat, gpu(0));
  net->eval();
  (void)dp(x);
  {
    const NoGradGuard off;
    for (Tensor& b : net->buffers())
      if (b.is_floating_point()) b.add_(1);
  }
  const uint64_t direct = cuda::copy_counts().direct;
  reset_counters();
  const Tensor parallel = dp(x);
  EXPECT_LE(cuda::copy_counts().direct - direct, 2u) << "the pieces of x and of the result";
  EXPECT_EQ(counters().replica_refresh_bytes, 6u * 4 * 4);
  EXPECT_EQ(values(parallel), values(net->forward(x)));
}

}  // namespace
}  // namespace ramet::testing
