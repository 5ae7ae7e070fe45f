// The properties of the emulated GPUs: how many, how large, how they are linked, and in which order
// their threads, blocks and streams run. Read once from the environment; tests set them directly.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ramet::emulated {

/// The order of the blocks of a grid, the warps of a block and the lanes of a warp.
enum class ThreadOrder : uint8_t { Forward, Reverse, Random };

/// When queued work runs.
/// - Async: one executor thread a device.
/// - Eager: at once, on the caller's thread (for debuggers).
/// - Lazy: only work that a thread waits for and what that needs, so that a missing dependency is
///   never satisfied by luck.
/// - Random: during each wait, any operation that may run.
enum class StreamMode : uint8_t { Async, Eager, Lazy, Random };

/// The version of CUDA that is emulated.
constexpr int kRuntimeVersion = 13000;

struct Settings {
  /// RAMET_EMULATED_DEVICES=4: 0 to 64. 0 means a machine without a GPU.
  int devices = 1;
  /// RAMET_EMULATED_MEMORY=64M or 1G,256M: bytes of each device, the last value for the rest.
  std::vector<size_t> memory = {size_t(1) << 30};
  /// RAMET_EMULATED_DRIVER_MEMORY=1M: free memory that a device needs for some calls of the driver.
  /// It needs it to pin memory, to make streams, events and graphs, to launch, for cuBLASLt and for
  /// NCCL. The calls do not use the memory up.
  size_t driver_memory = 0;
  /// RAMET_EMULATED_DRIVER_WAITS=1: some calls wait for all work of the device, as drivers may.
  /// They are cudaMalloc(), cudaHostAlloc(), cudaGraphInstantiate() and the first launch of each
  /// kernel. Sources: Programming Guide, "Lazy Loading"; NCCL's documentation, "Using multiple
  /// communicators concurrently". A program then stands still if the device waits for the program's
  /// own work, and a report says so.
  bool driver_waits = false;
  /// RAMET_EMULATED_FREE_IN_CAPTURE=0: cudaFree() and cudaFreeHost() of a thread that captures are
  /// refused, and break the capture, in relaxed mode too: they wait for the device.
  bool free_in_capture = true;
  /// RAMET_EMULATED_DRIVER=13000: the version of CUDA that the driver is for; 0: there is no
  /// driver. Where it is older than the runtime's there are no devices.
  int driver_version = kRuntimeVersion;
  /// RAMET_EMULATED_SMS=4: multiprocessors of each device, as its properties report them.
  int multiprocessors = 4;
  /// RAMET_EMULATED_PEER=all, none or 0-1,2-3: which devices can reach each other's memory.
  bool all_peers = true;
  std::vector<std::pair<int, int>> peers;
  /// RAMET_EMULATED_BROKEN_PEER=0-1: pairs of devices that report peer access, but the bytes of
  /// their copies arrive wrong. Some boards do this, so a program should test a copy between
  /// devices once.
  std::vector<std::pair<int, int>> broken_peers;
  /// RAMET_EMULATED_POOLS=0: there is no cudaMallocAsync().
  bool memory_pools = true;
  /// RAMET_EMULATED_LOST_PEER=0-1: pairs of devices that report peer access, but their copies never
  /// end.
  std::vector<std::pair<int, int>> lost_peers;
  /// RAMET_EMULATED_HOST_GBPS, RAMET_EMULATED_PEER_GBPS: 10^9 bytes a second of the link between
  /// the host and each device, and of each pair of devices. 0: a copy takes the time that the host
  /// needs. Only event times show the speed, nothing sleeps (timeline.h).
  double host_gbps = 0, peer_gbps = 0;
  /// RAMET_EMULATED_THREADS=forward, reverse or random:SEED.
  ThreadOrder threads = ThreadOrder::Forward;
  uint64_t thread_seed = 1;
  /// RAMET_EMULATED_STREAMS=async, eager, lazy or random:SEED.
  StreamMode streams = StreamMode::Async;
  uint64_t stream_seed = 1;
  /// RAMET_EMULATED_WORKERS=2: host threads that run the blocks of one grid. 0: one for each core.
  int workers = 0;
  /// RAMET_EMULATED_STACK_KB: stack of one CUDA thread. 0: 64, under sanitizers 256.
  int stack_kb = 0;
  /// RAMET_EMULATED_TIMEOUT_MS: a wait with nothing to run is a deadlock after this long.
  int timeout_ms = 5000;
  /// RAMET_EMULATED_NCCL=22800: the version that NCCL says it has; 0: it cannot be used.
  int nccl_version = 22800;
  /// RAMET_EMULATED_CUBLASLT=130000: the version that cuBLASLt says it has; 0: it cannot be used.
  int cublaslt_version = 130000;
  /// RAMET_EMULATED_BLAS_ALGORITHMS: it has algorithms for all products (2), for those without bias
  /// and ReLU (1), for none (0).
  int blas_algorithms = 2;
  /// RAMET_EMULATED_HOST_GUARD=1: the host cannot access device memory while nothing runs on a
  /// device. So code that uses a device's pointer as a host pointer crashes at that place.
  bool guard_host = false;
  /// RAMET_EMULATED_REPORTS=1: faults are printed to the standard error stream; 0: only
  /// last_report().
  bool print_reports = true;
  /// RAMET_EMULATED_ABORT=1: stop the program at a fault, for a debugger.
  bool abort_on_fault = false;

  /// `devices`, where the driver can be used.
  int usable_devices() const { return driver_version < kRuntimeVersion ? 0 : devices; }
  /// Bytes of device `index`.
  size_t memory_of(int index) const;
  /// Whether `from` can reach the memory of `to`.
  bool can_access_peer(int from, int to) const;
  bool peer_is_broken(int from, int to) const;
  bool peer_is_lost(int from, int to) const;
};

/// The settings that the environment asks for. Throws Error naming the variable and its value when
/// one of them is not understood.
Settings settings_from_environment();

/// The settings in force. Read from the environment at first use.
const Settings& settings();
/// For restart() only: nothing may be running.
void replace_settings(const Settings& next);

}  // namespace ramet::emulated
