// How event times are computed.
//
// Note [Emulated time]: Without link speeds, an operation takes as long as the host needs for it.
// With a speed set (settings.h), only copies take time. Each takes its bytes divided by the speed
// of its link. Copies over one link in one direction take turns. Everything else takes none. Waits
// advance the host's clock. Nothing sleeps and nothing depends on the machine. So a test can ask
// whether two copies overlap and get the same answer everywhere.
#pragma once
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>

#include "tools/emulated_gpu/executor/settings.h"

namespace ramet::emulated {

constexpr int kHost = -1;

/// Bytes that cross a link; none where both ends are one place.
struct Transfer {
  int from = kHost, to = kHost;
  size_t bytes = 0;
};

/// Times are seconds since the engine's start. Not thread-safe: used under the engine's mutex.
class Timeline {
 public:
  explicit Timeline(const Settings& settings)
      : host_speed_(settings.host_gbps * 1e9), peer_speed_(settings.peer_gbps * 1e9) {}

  double now() const {
    if (links_only()) return host_;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// The host has waited for something that was done at `time`.
  void host_waited(double time) {
    if (time > host_) host_ = time;
  }
  /// When an operation that may start at `start` is done.
  double end_of(const Transfer& transfer, double start, double measured) {
    if (!links_only()) return start + measured;
    if (transfer.bytes == 0 || transfer.from == transfer.to) return start;
    const bool host = transfer.from == kHost || transfer.to == kHost;
    const double speed = host ? host_speed_ : peer_speed_;
    if (speed == 0) return start;
    double& free_from = links_[{transfer.from, transfer.to}];
    if (free_from > start) start = free_from;
    return free_from = start + static_cast<double>(transfer.bytes) / speed;
  }

 private:
  bool links_only() const { return host_speed_ > 0 || peer_speed_ > 0; }

  double host_speed_, peer_speed_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double host_ = 0;
  std::map<std::pair<int, int>, double> links_;
};

}  // namespace ramet::emulated
