#include "parallel/move/options.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/array_ref.h"
#include "runtime/base/checked_size.h"

namespace ramet {
namespace parallel {

ReduceOrder ReduceOrder::tree(int leaves) {
  RAMET_CHECK(leaves > 0 && (leaves & (leaves - 1)) == 0 && leaves <= kMaxLeaves,
              "ReduceOrder::tree", "leaves: got ", leaves, ", expected a power of two of at most ",
              kMaxLeaves);
  return ReduceOrder(Kind::kTree, leaves);
}

namespace {

std::vector<int64_t> by_weight(const char* op, int64_t extent, const std::vector<double>& weights) {
  double total = 0;
  for (double w : weights) {
    RAMET_CHECK(std::isfinite(w) && w >= 0, op, "weights: got ", w,
                ", expected finite numbers of 0 or more");
    total += w;
  }
  RAMET_CHECK(total > 0, op, "weights: got a sum of ", total, ", expected more than 0");
  std::vector<int64_t> sizes;
  std::vector<double> rest;
  for (double w : weights) {
    const double share = static_cast<double>(extent) * (w / total);
    sizes.push_back(static_cast<int64_t>(std::floor(share)));
    rest.push_back(share - std::floor(share));
  }
  for (int64_t left = extent - std::accumulate(sizes.begin(), sizes.end(), int64_t{0}); left > 0;
       --left) {
    const auto at = static_cast<size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
    ++sizes[at];
    rest[at] = -1;
  }
  return sizes;
}

}  // namespace

std::vector<int64_t> Split::cut(const char* op, int64_t extent, size_t devices,
                                Parity parity) const {
  const auto n = static_cast<int64_t>(devices);
  if (rule_ == Rule::kSizes) {
    RAMET_CHECK(sizes_.size() == devices, op,
                "Expected devices and chunk_sizes to be of same length, but got len(devices) = ",
                devices, " and len(chunk_sizes) = ", sizes_.size());
    int64_t sum = 0;
    for (int64_t s : sizes_) {
      RAMET_CHECK(s >= 0, op, "chunk_sizes: got ", IntArrayRef(sizes_),
                  ", expected sizes of 0 or more");
      sum = checked_add(op, "sum of chunk_sizes", sum, s);
    }
    RAMET_CHECK(sum == extent, op,
                "chunk_sizes must sum exactly to the extent of the scattered dimension: got ",
                IntArrayRef(sizes_), " with the sum ", sum, ", expected ", extent);
    return sizes_;
  }
  if (rule_ == Rule::kWeights) {
    RAMET_CHECK(weights_.size() == devices, op,
                "Expected devices and weights to be of same length, but got len(devices) = ",
                devices, " and len(weights) = ", weights_.size());
    return by_weight(op, extent, weights_);
  }
  if (extent == 0) return std::vector<int64_t>(parity == Parity::upstream ? devices : 1, 0);
  std::vector<int64_t> sizes;
  if (rule_ == Rule::kChunk) {
    const int64_t each = ceil_div(extent, n);
    for (int64_t left = extent; left > 0; left -= sizes.back())
      sizes.push_back(std::min(each, left));
  } else {
    const int64_t pieces = std::min(extent, n);
    for (int64_t i = 0; i < pieces; ++i)
      sizes.push_back(extent / pieces + (i < extent % pieces ? 1 : 0));
  }
  return sizes;
}

}  // namespace parallel
}  // namespace ramet
