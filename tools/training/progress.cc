#include "tools/training/progress.h"

#include <unistd.h>

#include <cstdio>

namespace ramet::training {

using Clock = std::chrono::steady_clock;

Progress::Progress(int epoch, int epochs, int64_t steps)
    : shown_(isatty(STDOUT_FILENO) == 1),
      label_("epoch " + std::to_string(epoch) + "/" + std::to_string(epochs)),
      steps_(steps),
      start_(Clock::now()),
      drawn_(start_ - std::chrono::seconds(1)) {}

void Progress::step(int64_t done, double loss, double accuracy, double images_per_second) {
  const auto now = Clock::now();
  if (!shown_ || (now - drawn_ < std::chrono::milliseconds(100) && done < steps_)) return;
  drawn_ = now;
  constexpr int kWidth = 28;
  const int filled = static_cast<int>(kWidth * done / steps_);
  std::string bar(static_cast<size_t>(filled), '=');
  bar.resize(kWidth, ' ');
  if (filled < kWidth) bar[static_cast<size_t>(filled)] = '>';
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double left = spent / static_cast<double>(done) * static_cast<double>(steps_ - done);
  std::printf("\r%s [%s] loss %.4f  acc %.1f %%  %.0f images/s  %.0f s left \033[K", label_.c_str(), bar.c_str(), loss, accuracy * 100,
              images_per_second, left);
  std::fflush(stdout);
  dirty_ = true;
}

void Progress::finish() {
  if (dirty_) std::printf("\r\033[K");
  dirty_ = false;
}

}  // namespace ramet::training
