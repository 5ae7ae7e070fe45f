// How the processes of a run find each other, or the threads.
//
//   env://                          RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT from the
//                                   environment, or what mpirun (OMPI_*) and srun (SLURM_*) set;
//                                   rank 0 serves a TcpStore there
//   tcp://HOST:PORT?rank=R&world_size=N
//   file://PATH?rank=R&world_size=N
//   inproc://NAME?rank=R&world_size=N
//                                   ranks that are threads of this process; inproc://N?rank=R:
//                                   N of them
//   what register_rendezvous_handler() was given
//
// A rank or world size that the address does not give comes from RendezvousOptions, else (not for
// inproc://: a process has one environment) from the environment. RAMET_RUN_ID (set by
// tools/launch), or the job in which mpirun or srun numbered the ranks, names one start of all of
// them: a store or file of another one is refused. RAMET_STORE is an address that env:// takes
// instead of MASTER_*.
//
// Ranks listen at the address by which their host reached the store; where that is loopback's and
// there are other hosts (rank 0's own name may lead there), at the one that leads to these.
// RAMET_SOCKET_ADDR, this host's address, and RAMET_SOCKET_IFNAME, an interface, choose another.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

struct RendezvousOptions {
  /// Where the address does not say them; what neither says comes from the environment.
  std::optional<int> rank, world_size;
  /// Until when all ranks have to be there.
  Milliseconds timeout = kDefaultTimeout;
  /// Looks up an environment variable; by default getenv.
  std::function<std::optional<std::string>(const std::string&)> environment;
  /// Instead of this library's version, for tests of what happens when they differ.
  std::string version;
};

/// What ranks know once they have met.
struct Rendezvous {
  /// Which all of them share.
  std::shared_ptr<Store> store;
  /// This one's number, and how many there are:
  int rank = 0, world_size = 1;
  int local_rank = 0;    // on this host; the rank where nobody says
  std::string address;   // of this host, as the other ranks reach it
  bool threads = false;  // the ranks are threads of this process: groups need no connections
};

/// What rendezvous() does with addresses of one scheme. It gets all of the address, and the options
/// as they were given.
using RendezvousHandler =
    std::function<Rendezvous(const std::string& url, const RendezvousOptions& options)>;

/// From now on rendezvous(), and with it init_process_group(), calls the handler for addresses
/// scheme://. It returns when all ranks are there, with a store that they share, each rank's
/// number, and the address where the others reach this host (empty: by the host's name); it throws
/// at the deadline of its options. May be called by several threads. Errors: a scheme that has a
/// handler already (LibTorch's rule; those above have), one that is no scheme, an empty handler.
RAMET_API void register_rendezvous_handler(const std::string& scheme, RendezvousHandler handler);

/// Errors, before anything is opened: an unknown scheme ("No rendezvous handler for x://"), a
/// missing part of the address, a variable that is missing ("environment variable RANK expected,
/// but not set") or no number, a rank outside the world. Then those of the stores, of the ranks
/// that do not come until the deadline, or of the scheme's handler. Where a rank cannot belong to
/// the run, all ranks get one error, those that come later too: over TCP, until the deadline, as
/// long as rank 0's process lives, and for two seconds more where that ends by exit() or main's
/// return. All ranks are there when it returns. The name of an inproc:// run stands for these ranks
/// while they hold the store (groups do); one that has let go of it may come again, for another
/// run.
RAMET_API Rendezvous rendezvous(const std::string& url = "env://",
                                const RendezvousOptions& options = {});

}  // namespace distributed
}  // namespace ramet
