// How often each range of numbers occurs.
#pragma once
#include <vector>

#include "tools/see/pictures/values.h"

namespace ramet {
namespace see {

struct Histogram {
  std::vector<double> edges;  // one more than counts
  std::vector<int64_t> counts;
  bool whole = false;  // the bins are of whole numbers: the edges lie between them
};

/// Counts the finite elements in equal bins from the smallest to the largest: [a, b), the last with
/// its end. `bins` 0 means the square root of their number, 1 to 60. Integers and bool then get one
/// bin for each number where these are not more bins. Otherwise each bin has equally many numbers.
/// Without a finite element there is one empty bin. Every finite element is counted once.
Histogram histogram_of(const Tensor& x, const Facts& facts, int64_t bins);

}  // namespace see
}  // namespace ramet
