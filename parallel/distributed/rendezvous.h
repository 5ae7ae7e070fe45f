// How the processes of a run find each other.
//
//   env://                          RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT from the
//                                   environment, or what mpirun (OMPI_*) and srun (SLURM_*) set;
//                                   rank 0 serves a TcpStore there
//   tcp://HOST:PORT?rank=R&world_size=N
//   file://PATH?rank=R&world_size=N
//
// A rank or world size that the address does not give comes from RendezvousOptions, else from the
// environment. RAMET_RUN_ID (set by tools/launch), or the job in which mpirun or srun numbered the
// ranks, names one start of all of them: a store or file of another one is refused. RAMET_STORE is
// an address that env:// takes instead of MASTER_*.
//
// Ranks listen at the address by which their host reached the store; where that is loopback's and
// there are other hosts (rank 0's own name may lead there), at the one that leads to these.
// RAMET_SOCKET_ADDR, this host's address, and RAMET_SOCKET_IFNAME, an interface, choose another.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "parallel/distributed/store.h"

namespace ramet {
namespace distributed {

struct RendezvousOptions {
  std::optional<int> rank, world_size;
  Milliseconds timeout = kDefaultTimeout;
  /// Looks up an environment variable; by default getenv.
  std::function<std::optional<std::string>(const std::string&)> environment;
  /// Instead of this library's version, for tests of what happens when they differ.
  std::string version;
};

struct Rendezvous {
  std::shared_ptr<Store> store;
  int rank = 0, world_size = 1;
  int local_rank = 0;   // on this host; the rank where nobody says
  std::string address;  // of this host, as the other ranks reach it
};

/// Errors, before anything is opened: an unknown scheme ("No rendezvous handler for x://"), a
/// missing part of the address, a variable that is missing ("environment variable RANK expected,
/// but not set") or no number, a rank outside the world. Then those of the stores. All ranks are
/// there when it returns.
RAMET_API Rendezvous rendezvous(const std::string& url = "env://",
                                const RendezvousOptions& options = {});

}  // namespace distributed
}  // namespace ramet
