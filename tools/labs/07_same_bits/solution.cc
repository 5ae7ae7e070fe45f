// Lab 7: the same bits with any number of threads. task.md says what to do.
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tools/labs/07_same_bits/lab.h"

namespace lab {
using ramet::labs::Team;

// x[0] + ... + x[n - 1]. The work is shared: team.run(parts, f) calls f(0) to f(parts - 1) on
// team.threads() threads.
float sum(Team& team, const float* x, int64_t n) {
  // HOLE 1: the same bits for every number of threads and for every order in which parts run. Where
  // n is large, there are enough parts that 8 threads have something to do.
  //| std::mutex mutex;
  //| float total = 0;
  //| team.run(team.threads(), [&](int64_t part) {
  //|   const int64_t from = n * part / team.threads(), to = n * (part + 1) / team.threads();
  //|   float own = 0;
  //|   for (int64_t i = from; i < to; ++i) own += x[i];
  //|   const std::lock_guard<std::mutex> lock(mutex);
  //|   total += own;
  //| });
  //| return total;
  constexpr int64_t kPart = 1024;
  const int64_t parts = (n + kPart - 1) / kPart;
  std::vector<float> sums(static_cast<size_t>(parts));
  team.run(parts, [&](int64_t part) {
    const int64_t from = part * kPart, to = std::min(n, from + kPart);
    float own = 0;
    for (int64_t i = from; i < to; ++i) own += x[i];
    sums[static_cast<size_t>(part)] = own;
  });
  float total = 0;
  for (const float s : sums) total += s;
  return total;
  // END 1
}

}  // namespace lab
