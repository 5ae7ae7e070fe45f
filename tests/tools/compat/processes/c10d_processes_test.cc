// LibTorch's process groups between processes, which this forks: over TCPStore, FileStore, and
// numbered by the environment as for MPI.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupMPI.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "tests/tools/compat/processes/group_cases.h"

namespace {

using c10d_cases::error_of;

// Rank r is a child that runs f(r) and then ends as a program does.
void in_processes(int n, const std::function<void(int)>& f) {
  std::vector<pid_t> children;
  for (int r = 0; r < n; ++r) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(100);
      try {
        f(r);
      } catch (const std::exception& e) { ADD_FAILURE() << "rank " << r << ": " << e.what(); }
      std::exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (int r = 0; r < n; ++r) {
    int status = 0;
    waitpid(children[static_cast<size_t>(r)], &status, 0);
    EXPECT_EQ(status, 0) << "rank " << r;
  }
}

// A port without a listener, until another caller asks for one.
std::string free_port() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  return std::to_string(c10d::TCPStore("127.0.0.1", options).getPort());
}

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> over_loopback() {
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface("lo"));
  return options;
}

TEST(C10dProcesses, EveryOperationOverATcpStore) {
  const auto port = static_cast<uint16_t>(std::stoi(free_port()));
  in_processes(3, [port](int r) {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", port, 3, r == 0);
    auto prefixed = c10::make_intrusive<c10d::PrefixStore>("run", store);
    c10d::ProcessGroupGloo pg(prefixed, r, 3, over_loopback());
    c10d_cases::all(pg);
    pg.barrier()->wait();
  });
}

TEST(C10dProcesses, TwoGroupsOverAFileStore) {
  const std::string path = ::testing::TempDir() + "/c10d_processes";
  in_processes(2, [path](int r) {
    c10::intrusive_ptr<c10d::Store> store = c10::make_intrusive<c10d::FileStore>(path, 2);
    c10d::ProcessGroupGloo first(store, r, 2, over_loopback());
    std::shared_ptr<c10d::ProcessGroup> second =
        std::make_shared<c10d::ProcessGroupGloo>(store, 1 - r, 2, over_loopback());
    std::vector<torch::Tensor> t = {c10d_cases::ramp(r)};
    first.allreduce(t)->wait();
    EXPECT_EQ(c10d_cases::list(t[0]), (std::vector<float>{3, 5, 7}));
    t = {c10d_cases::ramp(r)};
    second->broadcast(t)->wait();  // from its rank 0, which is the first's 1
    EXPECT_EQ(c10d_cases::list(t[0]), (std::vector<float>{2, 3, 4}));
    second->barrier()->wait();
  });
}

// A program that ends after its last operation: the other rank has all of it, however late.
TEST(C10dProcesses, NobodyWaitsForTheOthersAtTheEnd) {
  for (int late : {0, 1}) {
    const std::string path = ::testing::TempDir() + "/c10d_end" + std::to_string(late);
    in_processes(2, [&](int r) {
      auto store = c10::make_intrusive<c10d::FileStore>(path, 2);
      c10d::ProcessGroupGloo pg(store, r, 2, over_loopback());
      std::vector<torch::Tensor> t = {torch::full({300000}, r + 1, torch::kFloat)};
      auto work = pg.allreduce(t);
      if (r == late) usleep(200000);
      work->wait();
      EXPECT_EQ(t[0].sum().item<float>(), 900000);
    });
  }
}

void as_mpiexec(const std::string& port, int r, int n, bool openmpi) {
  const std::string rank = std::to_string(r), size = std::to_string(n);
  setenv(openmpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK", rank.c_str(), 1);
  setenv(openmpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE", size.c_str(), 1);
  setenv(openmpi ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS", size.c_str(), 1);
  setenv("MASTER_PORT", port.c_str(), 1);
}

TEST(C10dProcesses, RanksThatMpiexecNumbers) {
  for (bool openmpi : {false, true}) {
    const std::string port = free_port();
    in_processes(3, [&](int r) {
      as_mpiexec(port, r, 3, openmpi);
      std::shared_ptr<c10d::ProcessGroupMPI> pg = c10d::ProcessGroupMPI::createProcessGroupMPI();
      EXPECT_EQ(pg->getRank(), r);
      EXPECT_EQ(pg->getSize(), 3);
      EXPECT_EQ(pg->getBackendName(), "mpi");
      c10d_cases::reductions(*pg);

      auto some = c10d::ProcessGroupMPI::createProcessGroupMPI({2, 0});
      EXPECT_EQ(some == nullptr, r == 1);
      if (!some) return;
      EXPECT_EQ(some->getRank(), r == 2 ? 0 : 1);
      std::vector<torch::Tensor> t = {c10d_cases::ramp(r)};
      some->allreduce(t)->wait();
      EXPECT_EQ(c10d_cases::list(t[0]), (std::vector<float>{4, 6, 8}));
    });
  }
}

TEST(C10dProcesses, WithoutMpiexecAProcessIsTheOnlyOne) {
  in_processes(1, [](int) {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RAMET_STORE"})
      unsetenv(name);
    auto pg = c10d::ProcessGroupMPI::createProcessGroupMPI();
    EXPECT_EQ(pg->getSize(), 1);
    c10d_cases::all(*pg);
  });
  in_processes(1, [](int) {
    setenv("RANK", "0", 1);
    unsetenv("WORLD_SIZE");
    EXPECT_EQ(error_of([] { (void)c10d::ProcessGroupMPI::createProcessGroupMPI(); }),
              "[rendezvous] environment variable WORLD_SIZE expected, but not set");
  });
}

TEST(C10dProcesses, DevicesAndWhatCannotBeMade) {
  using Gloo = c10d::ProcessGroupGloo;
  EXPECT_EQ(Gloo::createDeviceForInterface("lo")->address, "127.0.0.1");
  EXPECT_EQ(Gloo::createDeviceForHostname("127.0.0.1")->address, "127.0.0.1");
  EXPECT_FALSE(Gloo::createDefaultDevice()->address.empty());
  EXPECT_EQ(error_of([] { (void)Gloo::createDeviceForInterface("none0"); }),
            "[address_of_interface] got \"none0\", expected an interface of this host that has an "
            "address");
  EXPECT_EQ(error_of([] { (void)Gloo::createDeviceForHostname("192.0.2.1"); }),
            "[createDeviceForHostname] got \"192.0.2.1\", expected a name or address of this host");
  class Own : public c10d::Store {};
  EXPECT_EQ(error_of([] { Gloo(c10::make_intrusive<Own>(), 0, 1); }),
            "[ProcessGroupGloo] store: got one of the program's own, expected a TCPStore, "
            "FileStore, HashStore or PrefixStore");
  EXPECT_EQ(error_of([] { (void)Own().add("k", 1); }),
            "[add] the store is one of the program's own that does not override this");
}

}  // namespace
