// What the NCCL double wants of communicators that do not block, and of their ends.
#include <thread>

#include "tests/tools/emulated_gpu/emulated_devices.h"
#include "tools/emulated_gpu/nccl/nccl_control.h"

#define EXPECT_NCCL(call, code) EXPECT_EQ(call, code)

namespace ramet::testing {
namespace {

ncclConfig_t not_blocking() {
  ncclConfig_t config{};
  config.size = sizeof config;
  config.magic = 0xcafebeef;
  config.version = 21400;
  config.blocking = 0;
  return config;
}

void expect_report(const std::string& text) {
  EXPECT_NE(emulated::last_report().find(text), std::string::npos)
      << "no \"" << text << "\" in: " << emulated::last_report();
}

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  EXPECT_NCCL(ncclCommGetAsyncError(comm, &state), ncclSuccess);
  return state;
}
ncclResult_t settled(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) state = state_of(comm);
  return state;
}

/// One rank of two non-blocking ones; the other comes when the test says so.
class NotBlocking : public ::testing::Test {
 protected:
  NotBlocking() : stream(new_stream()), x(std::vector<float>(8, 1.0f)) {
    EXPECT_NCCL(ncclGetUniqueId(&id), ncclSuccess);
    make(0);
  }
  ~NotBlocking() override {
    for (ncclComm_t comm : comms) {
      if (comm) { EXPECT_NCCL(ncclCommAbort(comm), ncclSuccess); }
    }
  }
  void make(int rank) {
    ncclConfig_t config = not_blocking();
    EXPECT_CUDA(cudaSetDevice(rank), cudaSuccess);
    EXPECT_NCCL(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config), ncclInProgress);
    EXPECT_CUDA(cudaSetDevice(0), cudaSuccess);
  }
  ncclResult_t sum() { return ncclAllReduce(x, x, 8, ncclFloat32, ncclSum, comms[0], stream); }
  void expect_busy(ncclResult_t result, const std::string& call) {
    EXPECT_NCCL(result, ncclInvalidArgument);
    expect_report(call + " by rank 0: the communicator is still in progress");
  }

  Devices devices_;
  ncclUniqueId id;
  ncclComm_t comms[2] = {};
  const cudaStream_t stream;
  DeviceArray<float> x;
};

// Planted: the next call before the last one was taken over, of every kind.
TEST_F(NotBlocking, NothingElseWhileInProgress) {
  int number = 0;
  const auto nothing_else = [&] {
    expect_busy(sum(), "ncclAllReduce");
    expect_busy(ncclSend(x, 8, ncclFloat32, 1, comms[0], stream), "ncclSend");
    expect_busy(ncclRecv(x, 8, ncclFloat32, 1, comms[0], stream), "ncclRecv");
    expect_busy(ncclCommCount(comms[0], &number), "ncclCommCount");
    expect_busy(ncclCommUserRank(comms[0], &number), "ncclCommUserRank");
    expect_busy(ncclCommCuDevice(comms[0], &number), "ncclCommCuDevice");
    expect_busy(ncclCommFinalize(comms[0]), "ncclCommFinalize");
    expect_busy(ncclCommDestroy(comms[0]), "ncclCommDestroy");
  };
  EXPECT_EQ(state_of(comms[0]), ncclInProgress);
  nothing_else();  // the other rank is not there
  make(1);
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
  EXPECT_NCCL(ncclCommCount(comms[0], &number), ncclSuccess);
  EXPECT_EQ(number, 2);
  EXPECT_NCCL(sum(), ncclInProgress);
  nothing_else();
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
  // The calls of one group are one.
  EXPECT_NCCL(ncclGroupStart(), ncclSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_NCCL(sum(), ncclSuccess);
  EXPECT_NCCL(ncclGroupEnd(), ncclInProgress);
  nothing_else();
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
}

// Planted: a communicator that is destroyed before its end is over, one that ends twice, and a call
// after the end.
TEST_F(NotBlocking, FinalizeTakesItsTime) {
  make(1);
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
  EXPECT_NCCL(ncclCommFinalize(comms[0]), ncclInProgress);
  expect_busy(ncclCommDestroy(comms[0]), "ncclCommDestroy");
  EXPECT_EQ(state_of(comms[0]), ncclInProgress);
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
  EXPECT_NCCL(sum(), ncclInvalidUsage);
  expect_report("ncclAllReduce of 8 elements by rank 0: the communicator is finalized");
  EXPECT_NCCL(ncclCommFinalize(comms[0]), ncclInvalidArgument);
  EXPECT_NCCL(ncclCommDestroy(comms[0]), ncclSuccess);
  comms[0] = nullptr;
}

// After an error of another rank every call answers with it.
TEST_F(NotBlocking, AnErrorStays) {
  make(1);
  EXPECT_EQ(settled(comms[0]), ncclSuccess);
  emulated::report_nccl_error(ncclRemoteError);
  EXPECT_EQ(settled(comms[0]), ncclRemoteError);
  EXPECT_NCCL(sum(), ncclRemoteError);
  EXPECT_NCCL(ncclCommFinalize(comms[0]), ncclRemoteError);
  emulated::report_nccl_error(ncclSuccess);
  EXPECT_NCCL(sum(), ncclInProgress);
}

TEST(EmulatedNcclConfig, SizeAndVersion) {
  Devices devices;
  ncclUniqueId id;
  ncclComm_t comm = nullptr;
  const auto make = [&](const ncclConfig_t& given) {
    struct {
      ncclConfig_t config;
      char more[128];
    } room{given, {}};
    EXPECT_NCCL(ncclGetUniqueId(&id), ncclSuccess);
    const ncclResult_t result = ncclCommInitRankConfig(&comm, 1, id, 0, &room.config);
    if (result == ncclSuccess || result == ncclInProgress) {
      EXPECT_EQ(settled(comm), ncclSuccess);
      EXPECT_NCCL(ncclCommDestroy(comm), ncclSuccess);
    }
    return result;
  };
  const auto refused = [&](const ncclConfig_t& config, const std::string& text) {
    EXPECT_NCCL(make(config), ncclInvalidArgument);
    expect_report("[emulated CUDA] ncclCommInitRankConfig: " + text);
  };
  EXPECT_NCCL(make(not_blocking()), ncclInProgress);
  ncclConfig_t config = not_blocking();
  config.blocking = 1;
  EXPECT_NCCL(make(config), ncclSuccess);
  config.blocking = 5;
  refused(config, "blocking is neither 0 nor 1");
  config = not_blocking();
  config.magic = 0;
  refused(config, "the configuration was not made by NCCL_CONFIG_INITIALIZER");
  config = not_blocking();
  config.version = 0;
  refused(config, "a configuration of version 0, of which NCCL takes no attribute");
  config = not_blocking();
  config.size = 0;
  refused(config, "a configuration of 0 bytes, and that of version 21400 has 24");
  // The version of another header than the size.
  config = not_blocking();
  config.version = 22800;
  refused(config, "a configuration of 24 bytes, and that of version 22800 has 80");
  for (const auto& [version, size] :
       {std::pair(21400u, 24u), {21700u, 40u}, {21800u, 48u}, {22700u, 72u}, {22809u, 80u}}) {
    config = not_blocking();
    config.version = version;
    config.size = size;
    EXPECT_NCCL(make(config), ncclInProgress) << version;
  }
}

}  // namespace
}  // namespace ramet::testing
