// NCCL's collectives between emulated GPUs.
#include <atomic>
#include <thread>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tests/tools/emulated_gpu/kernels.h"
#include "tools/emulated_gpu/nccl/collective.h"
#include "tools/emulated_gpu/nccl/nccl_control.h"

#define EXPECT_NCCL(call, code) EXPECT_EQ(call, code)

namespace ramet::testing {
namespace {

using emulated::Collective, emulated::CollectiveKind;

constexpr int kRanks = 4;

emulated::Settings four_devices(emulated::Settings s = test_settings()) {
  s.devices = kRanks;
  return s;
}

/// A communicator with one rank, one stream and two buffers a device.
class Clique {
 public:
  explicit Clique(size_t count) : count_(count) {
    EXPECT_NCCL(ncclCommInitAll(comms, kRanks, nullptr), ncclSuccess);
    for (int rank = 0; rank < kRanks; ++rank) {
      EXPECT_CUDA(cudaSetDevice(rank), cudaSuccess);
      EXPECT_CUDA(cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking), cudaSuccess);
      EXPECT_CUDA(cudaMalloc(&send[rank], count * 4), cudaSuccess);
      EXPECT_CUDA(cudaMalloc(&receive[rank], count * 4), cudaSuccess);
      std::vector<float> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = value(rank, i);
      EXPECT_CUDA(cudaMemcpy(send[rank], values.data(), count * 4, cudaMemcpyHostToDevice),
                  cudaSuccess);
    }
  }
  ~Clique() {
    for (ncclComm_t comm : comms) EXPECT_NCCL(ncclCommDestroy(comm), ncclSuccess);
  }

  static float value(int rank, size_t i) { return float(rank + 1) * 0.25f + float(i); }
  std::vector<float> result(int rank) {
    EXPECT_CUDA(cudaSetDevice(rank), cudaSuccess);
    EXPECT_CUDA(cudaStreamSynchronize(streams[rank]), cudaSuccess);
    std::vector<float> host(count_);
    EXPECT_CUDA(cudaMemcpy(host.data(), receive[rank], count_ * 4, cudaMemcpyDeviceToHost),
                cudaSuccess);
    return host;
  }

  ncclComm_t comms[kRanks];
  cudaStream_t streams[kRanks];
  float *send[kRanks], *receive[kRanks];

 private:
  size_t count_;
};

TEST(EmulatedNccl, EveryCollective) {
  for (const Schedule& schedule : schedules()) {
    SCOPED_TRACE(schedule.name);
    Devices devices(four_devices(schedule.settings));
    const size_t n = 8, all = n * kRanks;
    Clique c(all);
    const auto in_group = [&](auto call) {
      EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
      for (int rank = 0; rank < kRanks; ++rank) EXPECT_NCCL(call(rank), ncclSuccess);
      EXPECT_NCCL(ncclGroupEnd(), ncclSuccess);
    };
    in_group([&](int r) {
      return ncclAllReduce(c.send[r], c.receive[r], all, ncclFloat32, ncclSum, c.comms[r],
                           c.streams[r]);
    });
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[9], 4 * 9 + 2.5f);
    in_group([&](int r) {
      return ncclAllReduce(c.send[r], c.receive[r], all, ncclFloat32, ncclAvg, c.comms[r],
                           c.streams[r]);
    });
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[9], 9 + 0.625f);
    in_group([&](int r) {
      return ncclBroadcast(r == 2 ? c.send[r] : nullptr, c.receive[r], all, ncclFloat32, 2,
                           c.comms[r], c.streams[r]);
    });
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[31], Clique::value(2, 31));
    in_group([&](int r) {
      return ncclReduce(c.send[r], r == 1 ? c.receive[r] : nullptr, all, ncclFloat32, ncclMax, 1,
                        c.comms[r], c.streams[r]);
    });
    EXPECT_EQ(c.result(1)[5], Clique::value(3, 5));
    EXPECT_EQ(c.result(0)[5], Clique::value(2, 5));  // from the broadcast
    in_group([&](int r) {
      return ncclAllGather(c.send[r], c.receive[r], n, ncclFloat32, c.comms[r], c.streams[r]);
    });
    for (int r = 0; r < kRanks; ++r)
      for (int from = 0; from < kRanks; ++from)
        EXPECT_EQ(c.result(r)[size_t(from) * n + 3], Clique::value(from, 3));
    in_group([&](int r) {
      return ncclReduceScatter(c.send[r], c.receive[r], n, ncclFloat32, ncclSum, c.comms[r],
                               c.streams[r]);
    });
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[3], 4 * float(size_t(r) * n + 3) + 2.5f);
  }
}

TEST(EmulatedNccl, InPlace) {
  Devices devices(four_devices());
  Clique c(8);
  EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_NCCL(
        ncclAllReduce(c.send[r], c.send[r], 8, ncclFloat32, ncclSum, c.comms[r], c.streams[r]),
        ncclSuccess);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_NCCL(ncclAllGather(c.send[r], c.receive[r], 2, ncclFloat32, c.comms[r], c.streams[r]),
                ncclSuccess);
  EXPECT_NCCL(ncclGroupEnd(), ncclSuccess);
  for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[7], 4 + 2.5f);
}

// Runs f(rank, id, check) on a thread for each rank, under every schedule. Each check must hold.
template <class F> void on_rank_threads(F f) {
  for (const Schedule& schedule : schedules()) {
    emulated::Settings settings = four_devices(schedule.settings);
    settings.timeout_ms = 60000;
    Devices devices(settings);
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const auto check = [&](bool right) { wrong += !right; };
        check(cudaSetDevice(rank) == cudaSuccess);
        f(rank, id, check);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0) << schedule.name;
  }
}

// Without groups, as real programs do.
TEST(EmulatedNccl, AThreadForEachRank) {
  on_rank_threads([](int rank, ncclUniqueId id, auto check) {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    check(ncclCommInitRank(&comm, kRanks, id, rank) == ncclSuccess);
    int count = 0, device = -1, mine = -1;
    check(ncclCommCount(comm, &count) == ncclSuccess && count == kRanks);
    check(ncclCommCuDevice(comm, &device) == ncclSuccess && device == rank);
    check(ncclCommUserRank(comm, &mine) == ncclSuccess && mine == rank);
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    DeviceArray<float> x(std::vector<float>(100, float(rank + 1)));
    for (int i = 0; i < 3; ++i)
      check(ncclAllReduce(x, x, 100, ncclFloat32, ncclSum, comm, stream) == ncclSuccess);
    check(cudaStreamSynchronize(stream) == cudaSuccess);
    check(x.host() == std::vector<float>(100, 160.0f));  // 10 * 4 * 4
    check(ncclCommDestroy(comm) == ncclSuccess);
  });
}

// The calls of a group reach their streams at its end: work that is queued before the end comes
// first.
TEST(EmulatedNccl, GroupsWaitForTheirEnd) {
  emulated::Settings s = four_devices();
  s.streams = emulated::StreamMode::Eager;
  Devices devices(s);
  Clique c(8);
  EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
  for (int r = 0; r < kRanks; ++r)
    EXPECT_NCCL(
        ncclAllReduce(c.send[r], c.receive[r], 8, ncclFloat32, ncclSum, c.comms[r], c.streams[r]),
        ncclSuccess);
  EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
  EXPECT_CUDA(increment(c.send[0], 8, c.streams[0]), cudaSuccess);
  EXPECT_NCCL(ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(c.result(1)[0], 2.5f + 1.0f);
  EXPECT_NCCL(ncclGroupEnd(), ncclInvalidUsage);
}

TEST(EmulatedNccl, WhatNcclWouldHangOn) {
  Devices devices(four_devices());
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  const auto reported = [](const char* text) {
    EXPECT_NE(emulated::last_report().find(text), std::string::npos) << emulated::last_report();
  };
  EXPECT_NCCL(ncclCommInitRank(&comm, 2, id, 0), ncclSystemError);  // no other rank comes
  reported("[emulated CUDA] ncclCommInitRank: 1 of 2 ranks have called");
  EXPECT_NCCL(ncclCommDestroy(comm), ncclSuccess);
  Clique c(8);
  const auto reduce = [&](int r, size_t count) {
    return ncclAllReduce(c.send[r], c.receive[r], count, ncclFloat32, ncclSum, c.comms[r],
                         c.streams[r]);
  };
  EXPECT_NCCL(reduce(0, 8), ncclSuccess);
  EXPECT_NCCL(reduce(1, 8), ncclInvalidUsage);  // one thread, two ranks, no group
  reported("ncclAllReduce of 8 elements by rank 1: one thread calls for several ranks outside");
  EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
  EXPECT_NCCL(reduce(2, 7), ncclSuccess);
  EXPECT_NCCL(ncclGroupEnd(), ncclInvalidUsage);  // other numbers of elements
  reported(
      "MISMATCHED COLLECTIVE number 0: ncclAllReduce of 7 elements by rank 2, but ncclAllReduce");
  // Ranks 1 to 3 never join: the wait reports it.
  EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
  EXPECT_CUDA(cudaStreamSynchronize(c.streams[0]), cudaErrorLaunchFailure);
  EXPECT_NE(emulated::last_report().find("ncclAllReduce (1 of 4 members are there)"),
            std::string::npos)
      << emulated::last_report();
}

// A data-parallel step in one graph: streams of all devices forked from one, and joined again.
TEST(EmulatedNccl, Captured) {
  for (const Schedule& schedule : schedules()) {
    SCOPED_TRACE(schedule.name);
    Devices devices(four_devices(schedule.settings));
    Clique c(8);
    cudaEvent_t fork = nullptr, join[kRanks];
    EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
    EXPECT_CUDA(cudaEventCreate(&fork), cudaSuccess);
    EXPECT_CUDA(cudaStreamBeginCapture(c.streams[0], cudaStreamCaptureModeRelaxed), cudaSuccess);
    EXPECT_CUDA(cudaEventRecord(fork, c.streams[0]), cudaSuccess);
    for (int r = 1; r < kRanks; ++r)
      EXPECT_CUDA(cudaStreamWaitEvent(c.streams[r], fork), cudaSuccess);
    EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_CUDA(cudaSetDevice(r), cudaSuccess);
      EXPECT_CUDA(increment(c.send[r], 8, c.streams[r]), cudaSuccess);
      EXPECT_NCCL(
          ncclAllReduce(c.send[r], c.receive[r], 8, ncclFloat32, ncclSum, c.comms[r], c.streams[r]),
          ncclSuccess);
    }
    EXPECT_NCCL(ncclGroupEnd(), ncclSuccess);
    for (int r = 0; r < kRanks; ++r) {
      EXPECT_CUDA(cudaSetDevice(r), cudaSuccess);
      EXPECT_CUDA(increment(c.receive[r], 8, c.streams[r]), cudaSuccess);
      EXPECT_CUDA(cudaEventCreate(&join[r]), cudaSuccess);
      EXPECT_CUDA(cudaEventRecord(join[r], c.streams[r]), cudaSuccess);
      EXPECT_CUDA(cudaStreamWaitEvent(c.streams[0], join[r]), cudaSuccess);
    }
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
    EXPECT_CUDA(cudaStreamEndCapture(c.streams[0], &graph), cudaSuccess);
    EXPECT_CUDA(cudaGraphInstantiate(&executable, graph), cudaSuccess);
    for (int i = 0; i < 3; ++i) EXPECT_CUDA(cudaGraphLaunch(executable, c.streams[0]), cudaSuccess);
    EXPECT_CUDA(cudaStreamSynchronize(c.streams[0]), cudaSuccess);
    for (int r = 0; r < kRanks; ++r) EXPECT_EQ(c.result(r)[1], 4 * (1 + 3) + 2.5f + 1);
    // A collective that not all ranks have called is no graph.
    EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
    EXPECT_CUDA(cudaStreamBeginCapture(c.streams[0], cudaStreamCaptureModeRelaxed), cudaSuccess);
    EXPECT_NCCL(
        ncclAllReduce(c.send[0], c.receive[0], 8, ncclFloat32, ncclSum, c.comms[0], c.streams[0]),
        ncclSuccess);
    EXPECT_CUDA(cudaStreamEndCapture(c.streams[0], &graph), cudaErrorStreamCaptureInvalidated);
  }
}

TEST(EmulatedNccl, BadArguments) {
  Devices devices(four_devices());
  Clique c(8);
  float host[8] = {};
  const auto reduce = [&](const void* send, void* receive, size_t count, ncclDataType_t type) {
    return ncclAllReduce(send, receive, count, type, ncclSum, c.comms[0], c.streams[0]);
  };
  EXPECT_NCCL(reduce(c.send[0], c.receive[0], 9, ncclFloat32), ncclInvalidArgument);
  EXPECT_NCCL(reduce(host, c.receive[0], 8, ncclFloat32), ncclInvalidArgument);
  EXPECT_NCCL(reduce(c.send[1], c.receive[0], 8, ncclFloat32), ncclInvalidArgument);
  EXPECT_NCCL(reduce(c.send[0], c.receive[0], 8, ncclDataType_t(15)), ncclInvalidArgument);
  EXPECT_NCCL(ncclBroadcast(c.send[0], c.receive[0], 8, ncclFloat32, 4, c.comms[0], c.streams[0]),
              ncclInvalidArgument);
  ncclComm_t comms[3];
  const int twice[2] = {1, 1}, absent[2] = {0, 9};
  EXPECT_NCCL(ncclCommInitAll(comms, 2, twice), ncclInvalidUsage);
  EXPECT_NCCL(ncclCommInitAll(comms, 2, absent), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetErrorString(ncclInvalidUsage), "invalid usage");
}

/// Waits until a communicator that does not block is ready, or has failed.
ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT_NCCL(ncclCommGetAsyncError(comm, &state), ncclSuccess);
    std::this_thread::yield();
  }
  return state;
}

ncclConfig_t not_blocking() {
  ncclConfig_t config{};
  config.size = sizeof config;
  config.magic = 0xcafebeef;
  config.version = 21400;
  return config;
}

// Every rank sends to every rank, each with its calls in an order of its own, on communicators that
// do not block.
TEST(EmulatedNccl, Messages) {
  on_rank_threads([](int rank, ncclUniqueId id, auto check) {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    ncclConfig_t config = not_blocking();
    check(ncclCommInitRankConfig(&comm, kRanks, id, rank, &config) == ncclInProgress);
    check(settled(comm) == ncclSuccess);
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    const DeviceArray<float> out(std::vector<float>(40, float(rank + 1)));
    DeviceArray<float> in(std::vector<float>(40, 0.0f));
    for (int round = 0; round < 3; ++round) {
      check(ncclGroupStart() == ncclSuccess);
      for (int i = 0; i < kRanks; ++i) {
        const int peer = (rank * 3 + i) % kRanks;
        if (rank % 2)
          check(ncclSend(out + 10 * peer, 10, ncclFloat32, peer, comm, stream) == ncclSuccess);
        check(ncclRecv(in + 10 * peer, 10, ncclFloat32, peer, comm, stream) == ncclSuccess);
        if (rank % 2 == 0)
          check(ncclSend(out + 10 * peer, 10, ncclFloat32, peer, comm, stream) == ncclSuccess);
      }
      check(ncclGroupEnd() == ncclInProgress);
      check(settled(comm) == ncclSuccess);
    }
    check(cudaStreamSynchronize(stream) == cudaSuccess);
    const std::vector<float> got = in.host();
    for (int i = 0; i < 40; ++i) check(got[size_t(i)] == float(i / 10 + 1));
    check(ncclCommFinalize(comm) == ncclInProgress && settled(comm) == ncclSuccess);
    check(ncclCommDestroy(comm) == ncclSuccess);
  });
}

// A rank that aborts goes on; its queued work never ran.
TEST(EmulatedNccl, Abort) {
  Devices devices(four_devices());
  Clique c(8);
  emulated::hold_nccl_messages(true);
  EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
  for (int r : {0, 1})
    for (int other : {0, 1}) {
      if (r == other) continue;
      EXPECT_NCCL(ncclSend(c.send[r], 8, ncclFloat32, other, c.comms[r], c.streams[r]),
                  ncclSuccess);
      EXPECT_NCCL(ncclRecv(c.receive[r], 8, ncclFloat32, other, c.comms[r], c.streams[r]),
                  ncclSuccess);
    }
  EXPECT_NCCL(ncclGroupEnd(), ncclSuccess);
  emulated::hold_nccl_messages(false);
  for (int r : {0, 1}) {
    EXPECT_CUDA(cudaSetDevice(r), cudaSuccess);
    EXPECT_CUDA(cudaStreamQuery(c.streams[r]), cudaErrorNotReady);
  }
  // And a collective that one rank alone has begun.
  EXPECT_NCCL(
      ncclAllReduce(c.send[2], c.receive[2], 8, ncclFloat32, ncclSum, c.comms[2], c.streams[2]),
      ncclSuccess);
  for (int r : {0, 1, 2}) {
    EXPECT_NCCL(ncclCommAbort(c.comms[r]), ncclSuccess);
    c.comms[r] = nullptr;
    (void)c.result(r);  // waits for the stream
  }
  const auto is_nan = [](float x) { return x != x; };
  for (float x : c.result(0)) EXPECT_TRUE(is_nan(x)) << "nobody has written it";
  ASSERT_EQ(ncclCommInitAll(c.comms, 3, nullptr), ncclSuccess);
  emulated::report_nccl_error(ncclRemoteError);
  EXPECT_EQ(settled(c.comms[0]), ncclRemoteError);
  emulated::report_nccl_error(ncclSuccess);
  EXPECT_EQ(settled(c.comms[0]), ncclSuccess);
}

/// One reduction of two ranks' values in a type.
template <class T> float reduced(ncclDataType_t type, ncclRedOp_t op, T a, T b) {
  T result{};
  const Collective what{CollectiveKind::Reduce, 1, type, op, 0};
  emulated::run_collective(what, {&a, &b}, {&result, nullptr});
  return float(result);
}

TEST(EmulatedNccl, TypesAndOperations) {
  EXPECT_EQ(reduced<int8_t>(ncclInt8, ncclSum, 100, 100), -56);
  EXPECT_EQ(reduced<uint8_t>(ncclUint8, ncclMax, 3, 200), 200);
  EXPECT_EQ(reduced<int32_t>(ncclInt32, ncclMin, -5, 7), -5);
  EXPECT_EQ(reduced<uint32_t>(ncclUint32, ncclProd, 6, 7), 42);
  EXPECT_EQ(reduced<int64_t>(ncclInt64, ncclAvg, 10, 20), 15);
  EXPECT_EQ(reduced<uint64_t>(ncclUint64, ncclSum, 1, 2), 3);
  EXPECT_EQ(reduced<double>(ncclFloat64, ncclProd, 0.5, 3), 1.5f);
  EXPECT_EQ(reduced<__half>(ncclFloat16, ncclSum, 1.0f, 0x1p-11f), 1.0f);
  EXPECT_EQ(reduced<__nv_bfloat16>(ncclBfloat16, ncclAvg, 1.0f, 2.0f), 1.5f);
}

}  // namespace
}  // namespace ramet::testing
