// How often which numbers are there.
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

/// Of the finite elements, from the smallest to the largest, in equal bins: [a, b), the last with
/// its end. `bins` 0: the square root of their number, 1 to 60; of integers and bool one for each
/// number where that are not more, and else such that each has as many. Without a finite element:
/// one bin of nothing. Every element is counted once.
Histogram histogram_of(const Tensor& x, const Facts& facts, int64_t bins);

}  // namespace see
}  // namespace ramet
