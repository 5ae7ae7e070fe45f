// The line that shows how far a run is.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ramet::training {

/// Drawn over itself on standard error, some ten times a second; silent where standard error is no
/// terminal.
class ProgressBar {
 public:
  ProgressBar();
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  struct State {
    int64_t epoch, epochs, step, steps;  // of this epoch
    double loss, accuracy, images_per_second, seconds_left;
    const char* rows = "images";  // what they are
  };
  void show(const State& s);
  /// Removes the line, so that others can be printed.
  void clear();

 private:
  bool active_, drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

/// The line itself, `columns` wide at most. For tests.
std::string progress_line(const ProgressBar::State& s, int columns);
/// "0:07", "1:02:03".
std::string clock_text(double seconds);
/// "0.3123"; "nan" of either sign.
std::string fixed(double v, int decimals);
/// "  accuracy 93.1%"; empty where there is none (NaN).
std::string accuracy_text(double accuracy, int decimals);
/// "12,345".
std::string grouped(int64_t n);

}  // namespace ramet::training
