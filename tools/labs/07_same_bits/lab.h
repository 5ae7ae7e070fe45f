// Lab 7: threads that share work, and what the grader calls.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/labs/grader.h"

namespace ramet::labs {

/// Threads that do the parts of some work, each the next one that is left. Which thread that is,
/// and in which order parts begin and end, is different every time. Here `seed` decides; on a real
/// machine its load does.
class Team {
 public:
  Team(int threads, uint64_t seed) : threads_(threads), seed_(seed) {}
  int threads() const { return threads_; }
  /// Calls part(0) to part(parts - 1), once each, and returns when all are done.
  void run(int64_t parts, const std::function<void(int64_t)>& part);

  /// The grader's: how many parts all runs had.
  int64_t parts = 0;

 private:
  int threads_;
  uint64_t seed_;
};

struct SameBitsLab {
  /// The sum of x[0] to x[n - 1].
  float (*sum)(Team& team, const float* x, int64_t n);
};
void grade(const SameBitsLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::SameBitsLab { &space::sum }
