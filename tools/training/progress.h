// A progress bar on a terminal, nothing elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ramet::training {

class Progress {
 public:
  /// `steps` in this epoch.
  Progress(int epoch, int epochs, int64_t steps);
  ~Progress() { finish(); }
  /// Redrawn at most ten times a second.
  void step(int64_t done, double loss, double accuracy, double images_per_second);
  void finish();

 private:
  const bool shown_;
  const std::string label_;
  const int64_t steps_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point drawn_;
  bool dirty_ = false;
};

}  // namespace ramet::training
