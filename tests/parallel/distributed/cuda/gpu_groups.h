// Groups of ranks with a GPU each, an emulated or a real one, by every way that their tensors may
// travel.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/devices/gpu_link.h"
#include "tests/parallel/cuda/gpu_models.h"
#include "tests/parallel/distributed/groups.h"

#if RAMET_GPU_EMULATED
#include "tools/emulated_gpu/nccl/nccl_control.h"
/// In a build for real GPUs, where each rank has a GPU: skips the test where there are fewer than n
/// GPUs, with the reason.
#define RAMET_NEEDS_CARDS(n) (void)0
/// The same where there is no NCCL, for tests that check nothing without it; others call ways().
#define RAMET_NEEDS_NCCL(n) (void)0
#else
#define RAMET_NEEDS_CARDS(n)                                    \
  if (const int found = ::ramet::testing::cards(); found < (n)) \
  GTEST_SKIP() << "needs " << (n) << " cards, one for each rank: " << found << " here"
#define RAMET_NEEDS_NCCL(n) \
  RAMET_NEEDS_CARDS(n);     \
  if (const std::string why = gpu::why_no_links(); !why.empty()) GTEST_SKIP() << why

// What tests after RAMET_EMULATED_ONLY call of the emulated NCCL alone.
enum EmulatedNcclResult { ncclSuccess, ncclInternalError, ncclRemoteError };
namespace ramet::emulated {
inline void report_nccl_error(EmulatedNcclResult) {}
inline void hold_nccl_messages(bool) {}
}  // namespace ramet::emulated
#endif

namespace ramet::testing {

using distributed::Body;
using distributed::CollectiveOptions;
using distributed::CommError;
using distributed::Group;
using distributed::GroupOptions;
using distributed::Milliseconds;
using distributed::ProcessGroup;
using distributed::ReduceOp;
using distributed::summed;
using distributed::Work;
using std::chrono::seconds;

struct Way {
  bool gloo;  // else threads
  const char* backend;
  bool nccl() const { return std::string(backend).find("nccl") != std::string::npos; }
};
inline std::ostream& operator<<(std::ostream& out, const Way& w) {
  return out << (w.gloo ? "Gloo" : "threads") << ", backend \"" << w.backend << '"';
}
inline const Way kStagedThreads{false, ""}, kStagedGloo{true, "gloo"}, kNcclThreads{false, "nccl"},
    kNcclGloo{true, "cpu:gloo,cuda:nccl"};
/// Leaves out the ways over NCCL on a machine that has none.
inline std::vector<Way> ways(std::vector<Way> all) {
#if !RAMET_GPU_EMULATED
  if (!gpu::why_no_links().empty())
    all.erase(std::remove_if(all.begin(), all.end(), [](const Way& w) { return w.nccl(); }),
              all.end());
#endif
  return all;
}
inline std::vector<Way> all_ways() {
  return ways({kStagedThreads, kStagedGloo, kNcclThreads, kNcclGloo});
}

inline void with_gpu_groups(const Way& way, int ranks, Milliseconds timeout, const Body& body) {
  GroupOptions o;
  o.timeout = timeout;
  o.backend = way.backend;
  if (way.gloo) {
    const auto store = std::make_shared<distributed::MemoryStore>();
    return distributed::as_ranks(ranks, [&](int rank) {
      body(distributed::make_group({store, rank, ranks, rank, "127.0.0.1"}, o));
    });
  }
  auto groups = distributed::make_local_groups(ranks, o);
  distributed::as_ranks(ranks, [&](int rank) {
    const Group mine = std::move(groups[static_cast<size_t>(rank)]);
    body(mine);
  });
}

/// GPUs that report a wait for ever only after a long time: ranks wait for each other here.
inline emulated::Settings rank_gpus(int n, emulated::StreamMode mode = emulated::StreamMode::Async,
                                    bool driver_waits = false) {
  emulated::Settings s = gpu_settings(n);
  s.streams = mode;
  s.driver_waits = driver_waits;
  s.timeout_ms = 60000;
  return s;
}

/// While it lives, messages between GPUs stop half-way, as those of a GPU that hangs.
struct Held {
  Held() { emulated::hold_nccl_messages(true); }
  ~Held() { emulated::hold_nccl_messages(false); }
};

/// [n] numbers of a rank that differ in magnitude, so that the order of a sum shows. On the host.
inline Tensor numbers(int rank, int64_t n, ScalarType dtype) {
  const Tensor t = empty({n}, TensorOptions(kDouble));
  double* p = t.data_ptr<double>();
  for (int64_t i = 0; i < n; ++i)
    p[i] = std::sin(0.37 * static_cast<double>(i + 1) * (rank + 1)) *
           std::pow(10.0, (i * 7 + rank * 3) % 9 - 4);
  return dtype == kBool ? t.gt(0) : t.to(dtype);
}

inline bool same(const Tensor& on_gpu, const Tensor& expected) {
  return on_gpu.is_cuda() && distributed::same_bits(on_gpu.to(kHost), expected);
}

}  // namespace ramet::testing
