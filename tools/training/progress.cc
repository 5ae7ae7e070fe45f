#include "tools/training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ramet::training {

std::string clock_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e7) return "?";
  const auto s = static_cast<int64_t>(seconds + 0.5);
  char text[32];
  if (s >= 3600)
    std::snprintf(text, sizeof(text), "%d:%02d:%02d", static_cast<int>(s / 3600),
                  static_cast<int>(s / 60 % 60), static_cast<int>(s % 60));
  else
    std::snprintf(text, sizeof(text), "%d:%02d", static_cast<int>(s / 60),
                  static_cast<int>(s % 60));
  return text;
}

std::string fixed(double v, int decimals) {
  if (std::isnan(v)) return "nan";  // printf says "-nan" of what invalid operations give on x86
  char text[400];
  std::snprintf(text, sizeof(text), "%.*f", decimals, v);
  return text;
}

std::string accuracy_text(double accuracy, int decimals) {
  return std::isnan(accuracy) ? "" : "  accuracy " + fixed(100 * accuracy, decimals) + "%";
}

std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > (n < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), 1, ',');
  return digits;
}

std::string progress_line(const ProgressBar::State& s, int columns) {
  std::string line = "epoch " + std::to_string(s.epoch) + "/" + std::to_string(s.epochs) + " ";
  const std::string tail = " " + std::to_string(s.step) + "/" + std::to_string(s.steps) +
                           "  loss " + fixed(s.loss, 4) + accuracy_text(s.accuracy, 1) + "  " +
                           grouped(std::llround(s.images_per_second)) + " " + s.rows + "/s  " +
                           clock_text(s.seconds_left) + " left";
  const int room = columns - static_cast<int>(line.size() + tail.size()) - 3;
  if (room >= 8) {
    const int width = std::min(room, 40);
    const int full = s.steps > 0 ? static_cast<int>(width * s.step / s.steps) : 0;
    line += "[" + std::string(static_cast<size_t>(full), '=') + (full < width ? ">" : "") +
            std::string(static_cast<size_t>(std::max(0, width - full - 1)), ' ') + "]";
  }
  line += tail;
  return line.substr(0, static_cast<size_t>(std::max(1, columns - 1)));
}

ProgressBar::ProgressBar() : active_(::isatty(STDERR_FILENO) == 1) {}

void ProgressBar::show(const State& s) {
  if (!active_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  winsize size{};
  const int columns =
      ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  std::fprintf(stderr, "\r%s\033[K", progress_line(s, columns).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace ramet::training
