// LibTorch's ProcessGroupGloo, ProcessGroupNCCL and ProcessGroupMPI: how a group's ranks meet.
#pragma once
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/meet/own_address.h"
#include "ramet/compat/c10d.h"

namespace c10d {

/// Where a rank listens. LibTorch's is a class of Gloo's, which programs only hand on.
struct GlooDevice {
  std::string address;
};

/// Its ranks meet at a store. The first of the options' devices counts; without one it is
/// createDefaultDevice(), where LibTorch has an Error. `threads` means nothing here.
class ProcessGroupGloo : public ProcessGroup {
 public:
  struct Options : Backend::Options {
    explicit Options(std::chrono::milliseconds time = kBackendDefaultTimeout)
        : Backend::Options("gloo", time) {}
    static c10::intrusive_ptr<Options> create(
        std::chrono::milliseconds time = kBackendDefaultTimeout) {
      return c10::make_intrusive<Options>(time);
    }
    static c10::intrusive_ptr<Options> create_default(
        std::chrono::milliseconds time = kBackendDefaultTimeout) {
      auto o = create(time);
      o->devices.push_back(createDefaultDevice());
      return o;
    }
    std::vector<std::shared_ptr<GlooDevice>> devices;
    int threads = 2;
  };

  explicit ProcessGroupGloo(const c10::intrusive_ptr<Store>& store, int rank, int size,
                            c10::intrusive_ptr<Options> options = Options::create())
      : ProcessGroup(meet("ProcessGroupGloo", store, rank, size, options->timeout, "gloo",
                          options->devices.empty() ? createDefaultDevice()->address
                                                   : options->devices[0]->address),
                     GLOO, store),
        options_(std::move(options)) {}
  /// LibTorch's older form.
  ProcessGroupGloo(const c10::intrusive_ptr<Store>& store, int rank, int size,
                   const Options& options)
      : ProcessGroupGloo(store, rank, size, c10::make_intrusive<Options>(options)) {}

  c10::intrusive_ptr<Options> getOptions() { return options_; }
  int getNumThreads() const { return options_->threads; }

  /// By the interface's first address.
  static std::shared_ptr<GlooDevice> createDeviceForInterface(const std::string& name,
                                                              bool /*lazyInit*/ = false) {
    return at_address(::ramet::distributed::address_of_interface(name));
  }
  static std::shared_ptr<GlooDevice> createDeviceForHostname(const std::string& host,
                                                             bool /*lazyInit*/ = false) {
    RAMET_CHECK(::ramet::distributed::is_own_address(host), "createDeviceForHostname", "got \"",
                host, "\", expected a name or address of this host");
    return at_address(host);
  }
  /// By the host's name; loopback where that leads nowhere.
  static std::shared_ptr<GlooDevice> createDefaultDevice(bool /*lazyInit*/ = false) {
    return at_address(::ramet::distributed::own_address());
  }

 private:
  static std::shared_ptr<GlooDevice> at_address(std::string address) {
    auto device = std::make_shared<GlooDevice>();
    device->address = std::move(address);
    return device;
  }
  c10::intrusive_ptr<Options> options_;
};

/// Tensors of GPUs go from GPU to GPU, those of the host over Gloo. Errors: Note [Tensors of
/// GPUs] in process_group.h.
class ProcessGroupNCCL : public ProcessGroup {
 public:
  struct Options : Backend::Options {
    explicit Options(bool high_priority = false)
        : Backend::Options("nccl", kBackendDefaultTimeout),
          is_high_priority_stream(high_priority) {}
    static c10::intrusive_ptr<Options> create(bool high_priority = false) {
      return c10::make_intrusive<Options>(high_priority);
    }
    bool is_high_priority_stream;  // kept, and means nothing here
  };
  explicit ProcessGroupNCCL(c10::intrusive_ptr<Store> store, int rank, int size,
                            c10::intrusive_ptr<Options> options = Options::create())
      : ProcessGroup(meet("ProcessGroupNCCL", store, rank, size, options->timeout, "nccl",
                          ProcessGroupGloo::createDefaultDevice()->address),
                     NCCL, store),
        options_(std::move(options)) {}
  c10::intrusive_ptr<Options> getOptions() { return options_; }

 private:
  c10::intrusive_ptr<Options> options_;
};

/// There is no MPI here: the ranks communicate over Gloo. They are those of env:// (RANK,
/// WORLD_SIZE, MASTER_ADDR, MASTER_PORT from the environment). Or they are those that OpenMPI's
/// mpirun, srun or another mpiexec has numbered (OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK). The
/// last needs MASTER_PORT, and over several hosts MASTER_ADDR. A process without a number is the
/// only one. The end of the process waits for the others', as MPI_Finalize does, for the group's
/// timeout.
class ProcessGroupMPI : public ProcessGroup {
 public:
  /// Of all ranks, or of these: all ranks call it with the same list, and get null where they are
  /// not in it. Errors: those of rendezvous().
  static c10::intrusive_ptr<ProcessGroupMPI> createProcessGroupMPI(std::vector<int> ranks = {}) {
    GroupPtr group = world();
    if (!ranks.empty()) {
      ::ramet::distributed::GroupOptions o;
      o.timeout = group->timeout();
      group = group->subgroup(ranks, o);
    }
    if (!group) return {};
    return c10::intrusive_ptr<ProcessGroupMPI>::reclaim(new ProcessGroupMPI(std::move(group)));
  }

 private:
  explicit ProcessGroupMPI(GroupPtr group) : ProcessGroup(std::move(group), MPI) {}

  static std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  }
  // Ramet knows the others' names.
  static std::optional<std::string> numbered(const std::string& name) {
    if (auto given = variable(name.c_str())) return given;
    if (variable("OMPI_COMM_WORLD_RANK")) return std::nullopt;
    if (name == "RANK") return variable("PMI_RANK");
    if (name == "WORLD_SIZE") return variable("PMI_SIZE");
    if (name == "LOCAL_RANK") return variable("MPI_LOCALRANKID");
    if (name == "LOCAL_WORLD_SIZE") return variable("MPI_LOCALNRANKS");
    return std::nullopt;
  }
  static GroupPtr meet_all() {
    ::ramet::distributed::GroupOptions o;
    o.timeout = kBackendDefaultTimeout;
    bool alone = true;
    for (const char* name :
         {"RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RAMET_STORE"})
      alone = alone && !variable(name);
    if (alone) return ::ramet::distributed::make_local_groups(1, o)[0];
    ::ramet::distributed::RendezvousOptions how;
    how.timeout = o.timeout;
    how.environment = numbered;
    return ::ramet::distributed::init_process_group("env://", o, how);
  }
  struct World {
    GroupPtr group = meet_all();
    ~World() {
      try {
        group->barrier("the end of the process").wait();
      } catch (const std::exception&) {}  // it failed before, or a rank ended without this
    }
  };
  static GroupPtr world() {
    static World world;
    return world.group;
  }
};

}  // namespace c10d
