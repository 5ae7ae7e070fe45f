// Tensors of the host and of several GPUs in one call, and what read a GPU's memory on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "nn/utils/clip_grad.h"
#include "parallel/move/counters.h"
#include "parallel/nodes/broadcast_reduce.h"
#include "parallel/nodes/scatter_gather.h"
#include "runtime/base/logging.h"
#include "runtime/devices/devices.h"
#include "runtime/memory/allocator.h"
#include "runtime/observe/observer.h"
#include "tests/parallel/cuda/gpu_models.h"

namespace ramet::testing {
namespace {

using namespace parallel;
using nn::parallel::DataParallel;
using nn::parallel::DataParallelOptions;

const Device kOther(kCPU, 3);

TEST(MixedDevices, SumsToEveryDestination) {
  for (const bool peers : {true, false}) {
    emulated::Settings settings = gpu_settings(3);
    settings.all_peers = peers;
    settings.streams = emulated::StreamMode::Lazy;  // nothing is right by luck
    const Gpus three(settings);
    std::vector<Tensor> in;
    Values expected(1001, 0);
    int k = 0;
    for (const Device device : {kHost, gpu(0), gpu(2), kOther, gpu(1)}) {
      in.push_back(varied({7, 11, 13}, static_cast<uint64_t>(++k), kFloat, device));
      const Values v = values(in.back());
      // Left to right in float, as the order says.
      for (size_t i = 0; i < v.size(); ++i)
        expected[i] =
            k == 1
                ? v[i]
                : static_cast<double>(static_cast<float>(expected[i]) + static_cast<float>(v[i]));
    }
#if RAMET_GPU_EMULATED
    const comm::Route peer = peers ? comm::Route::peer : comm::Route::staged;
#else
    const comm::Route peer = comm::plan({gpu(2)}, gpu(0))[0];  // depends on the GPUs
    EXPECT_TRUE(peer == comm::Route::peer || peer == comm::Route::staged);
#endif
    EXPECT_EQ(comm::plan({kHost, gpu(0), gpu(2), kOther}, gpu(0)),
              (std::vector{comm::Route::staged, comm::Route::local, peer, comm::Route::staged}));
    EXPECT_EQ(comm::plan({kHost, gpu(0), kOther}, kHost, ReduceOrder::any()),
              (std::vector{comm::Route::local, comm::Route::staged, comm::Route::local}));
    in[2] = in[2].transpose(0, 2).contiguous().transpose(0, 2);  // another layout
    for (const Device to : {kHost, kOther, gpu(0), gpu(1), gpu(2)}) {
      EXPECT_EQ(values(comm::reduce_add(in, to)), expected) << to << peers;
      std::vector<std::vector<Tensor>> lists;
      for (const Tensor& t : in) lists.push_back({t, t.narrow(0, 0, 1).contiguous()});
      const auto sums = comm::reduce_add_coalesced(lists, to);
      EXPECT_EQ(values(sums[0]), expected) << to << peers;
      EXPECT_EQ(values(sums[1]), Values(expected.begin(), expected.begin() + 143));
      EXPECT_EQ(sums[1].device(), to);
    }
  }
}

TEST(MixedDevices, ScatterGatherAndBroadcast) {
  const Gpus two(gpu_settings(2));
  const Tensor x = counting({9, 4});
  const std::vector<Device> on = {gpu(1), kHost, gpu(0), kOther};
  for (const Device source : {kHost, gpu(0)}) {
    const Tensor from = x.to(source);
    const auto pieces = comm::scatter(from, on, {Split::balanced()});
    ASSERT_EQ(pieces.size(), 4u);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pieces[i].device(), on[i]);
    for (const Device to : {kHost, gpu(1)})
      EXPECT_EQ(values(comm::gather(pieces, 0, to)), values(x));
    for (const Tensor& t : comm::broadcast(from.t(), on)) EXPECT_EQ(values(t), values(x.t()));
    const auto rows = comm::broadcast_coalesced({from, from.narrow(0, 2, 3).contiguous()}, on);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(rows[i][1].device(), on[i]);
      EXPECT_EQ(values(rows[i][0]), values(x));
      EXPECT_EQ(values(rows[i][1]), values(x.narrow(0, 2, 3)));
    }
    // A piece in place is the input's memory until it is written.
    const Tensor view = comm::scatter(from, {source, gpu(1)})[0];
    EXPECT_EQ(view->data, from->data);
    view.zero_();
    EXPECT_EQ(values(from), values(x));
    EXPECT_EQ(values(view), Values(static_cast<size_t>(view.numel()), 0));
  }
}

TEST(MixedDevices, BucketsAreSummedOnTheCommunicationStream) {
  const Gpus two(gpu_settings(2));
  SmallConv m;
  m->to(gpu(0));
  DataParallelOptions options(gpus(2));
  options.bucket_bytes = 256;
  DataParallel<SmallConv> dp(m, options);
  const Tensor x = varied({8, 1, 6, 6}, 1);
  const auto sums = [&] {
    std::vector<uint32_t> streams;
    std::mutex mutex;
    Observer o;
    o.kernel_begin = [&](const KernelCall& call) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (std::string(call.name) == "nary_sum") streams.push_back(call.stream.id);
    };
    const uint64_t number = add_observer(o);
    dp(x).sum().backward();
    remove_observer(number);
    return streams;
  };
  const auto beside = sums();
  EXPECT_GE(beside.size(), dp.replicas().buckets().size());
  EXPECT_EQ(beside, std::vector<uint32_t>(beside.size(), gpu::kCommunication));
  const Values once = all_gradients(*m);
  // Gradients that are there are added to, which follows the sums.
  sums();
  Values twice = all_gradients(*m);
  for (size_t i = 0; i < once.size(); ++i)
    if (once[i] != 1) { EXPECT_NEAR(twice[i], 2 * once[i], 1e-4) << i; }
}

TEST(MixedDevices, WhatReadsValuesOnTheHost) {
  const Gpus one(gpu_settings(1));
  std::ostringstream text;
  text << make({1, 2.5, -3}).to(gpu(0));
  EXPECT_EQ(text.str(), " 1.0000\n 2.5000\n-3.0000\n[ CUDAFloatType{3} ]");
  std::ostringstream turned;
  turned << counting({2, 3}).to(gpu(0)).t();
  EXPECT_EQ(turned.str(), " 0  3\n 1  4\n 2  5\n[ CUDAFloatType{3,2} ]");

  for (const double p : {2.0, 1.0, HUGE_VAL}) {
    nn::Linear host(30, 20), there(30, 20);
    there->to(gpu(0));
    for (auto* m : {&host, &there}) {
      set_parameters(*m->ptr(), 3);
      (*m)(varied({5, 30}, 4).to((*m)->weight.device())).pow(2).sum().backward();
    }
    const double expected = nn::utils::clip_grad_norm_(host->parameters(), 0.5, p);
    EXPECT_NEAR(nn::utils::clip_grad_norm_(there->parameters(), 0.5, p), expected, 1e-5 * expected);
    expect_close(all_gradients(*there), all_gradients(*host), 1e-6);
  }
}

TEST(MixedDevices, ParametersOfAGpuShareOneStore) {
  const Gpus one(gpu_settings(1));
  nn::Linear m(4, 4);
  m->to(gpu(0));
  optim::SGD sgd(m->parameters(), 0.1);
  EXPECT_EQ(m->weight.storage_impl()->memory_of, m->bias.storage_impl()->memory_of);
  EXPECT_NE(m->weight.storage_impl()->memory_of, nullptr);
}

TEST(MixedDevices, GeneratorsOfGpus) {
  const Gpus two(gpu_settings(2));
  manual_seed(11);
  EXPECT_EQ(default_generator(gpu(1)).get_state(), (GeneratorState{11, 0}));
  const auto states = generator_states();
  EXPECT_EQ(states.size(), static_cast<size_t>(cpu_device_count()) + 8);
  const Tensor first = rand({4}, gpu(1));
  set_generator_states(states);
  EXPECT_EQ(values(rand({4}, gpu(1))), values(first));
  const GeneratorState before = default_generator(gpu(0)).get_state();
  nn::Linear m(3, 3);
  m->to(gpu(0));
  nn::parallel::replicate(m, gpus(2));
  EXPECT_EQ(default_generator(gpu(0)).get_state(), before);
}

TEST(MixedDevices, ThreadsOfReplicasLeaveNothingBehind) {
  const Gpus two(gpu_settings(2));
  std::vector<Device> seen(2, kHost);
  Call m([&](const Tensor& x) {
    seen[static_cast<size_t>(nn::parallel::replica_index())] = zeros({1}, kCUDA).device();
    return x;
  });
  DataParallel<Call> dp(m, gpus(2));
  for (int i = 0; i < 2; ++i) {
    dp(counting({4}));
    EXPECT_EQ(seen, gpus(2));
    EXPECT_EQ(resolve(Device(kCUDA)), gpu(0));
  }
  // A worker's own tasks find its device, too.
  Device there = kHost;
  devices::wait(devices::post(gpu(1), [&] { there = resolve(Device(kCUDA)); }));
  EXPECT_EQ(there, gpu(1));
}

}  // namespace
}  // namespace ramet::testing
