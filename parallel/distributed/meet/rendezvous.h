// How the processes (or threads) of a run find each other.
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
// A rank or world size that the address does not give comes from RendezvousOptions, else from the
// environment. (inproc:// never reads the environment: a process has only one.) RAMET_RUN_ID, which
// tools/launch sets, names one start of all ranks. Without it, that is the job in which mpirun or
// srun numbered the ranks. A store or file of another start is refused. RAMET_STORE is an address
// that env:// uses instead of MASTER_*.
//
// Ranks listen at the address by which their host reached the store. If that is loopback and there
// are other hosts, they listen at the address on the way to those. (Rank 0's own name may mean
// loopback.) RAMET_SOCKET_ADDR, this host's address, and RAMET_SOCKET_IFNAME, an interface, choose
// another address.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

struct RendezvousOptions {
  /// Used if the address does not give them. If neither gives them, the environment does.
  std::optional<int> rank, world_size;
  /// The time in which all ranks must come.
  Milliseconds timeout = kDefaultTimeout;
  /// Reads an environment variable; by default getenv.
  std::function<std::optional<std::string>(const std::string&)> environment;
  /// Replaces this library's version, for tests of a version mismatch.
  std::string version;
};

/// What a rank knows after the ranks have met.
struct Rendezvous {
  /// The store that all ranks share.
  std::shared_ptr<Store> store;
  /// This rank's number, and the number of ranks:
  int rank = 0, world_size = 1;
  int local_rank = 0;    // On this host; equal to `rank` if nothing gives it.
  std::string address;   // Of this host, as the other ranks reach it.
  bool threads = false;  // the ranks are threads of this process: groups need no connections
};

/// How rendezvous() handles addresses of one scheme. The handler gets the whole address, and the
/// options as the caller gave them.
using RendezvousHandler =
    std::function<Rendezvous(const std::string& url, const RendezvousOptions& options)>;

/// From now on rendezvous(), and thus init_process_group(), calls the handler for addresses
/// scheme://. The handler returns when all ranks are there. It returns a store that they share,
/// each rank's number, and the address at which the others reach this host (empty: by the host's
/// name). It throws at the deadline of its options. Several threads may call it. Errors: a scheme
/// that already has a handler (LibTorch's rule; the built-in ones above have one), an invalid
/// scheme, an empty handler.
RAMET_API void register_rendezvous_handler(const std::string& scheme, RendezvousHandler handler);

/// Makes the ranks of a run meet; all ranks are there when it returns. Errors that it finds before
/// it opens anything:
/// - an unknown scheme ("No rendezvous handler for x://")
/// - a missing part of the address
/// - a variable that is missing ("environment variable RANK expected, but not set") or not a number
/// - a rank outside the world
///
/// Further errors come from the stores, from ranks that do not come by the deadline, and from the
/// scheme's handler. If a rank cannot belong to the run, all ranks get the same error, also those
/// that come later. Over TCP this lasts until the deadline, as long as rank 0's process lives. If
/// that process ends by exit() or by the return of main, it lasts two seconds more. The name of an
/// inproc:// run denotes these ranks while they hold the store (groups hold it). A rank that has
/// released the store may come again, for another run.
RAMET_API Rendezvous rendezvous(const std::string& url = "env://",
                                const RendezvousOptions& options = {});

}  // namespace distributed
}  // namespace ramet
