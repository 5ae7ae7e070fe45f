// The bucket plan: which tensors move together. Its functions are pure, from sizes to groups: the
// answer is the same on every device and in every process.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/dtype.h"

namespace ramet {
namespace parallel {

/// How groups are closed and listed.
///   ours      a group is closed before a tensor would exceed the limit, unless it is empty; groups
///             are listed by their first tensor
///   upstream  a group is closed after it has reached the limit, so it may exceed it by one tensor;
///             groups are listed as they close, then the rest by type (PyTorch's broadcast and
///             DistributedDataParallel)
enum class GroupRule : uint8_t { ours, upstream };

/// An item of a bucket: one tensor's size and kind.
struct BucketItem {
  /// Its size.
  int64_t bytes;
  /// Items of different dtypes share no bucket.
  ScalarType dtype;
  int device = 0;  // Device::ordinal(), or any other number that separates items
};

/// Returns the indices of `items` by group. A group has one (device, dtype), in the order of
/// `items`. `limits` in bytes: the k-th group of a (device, dtype) has the k-th limit, and further
/// groups have the last one. An Error if there is no limit, or a negative one.
RAMET_API std::vector<std::vector<size_t>> plan_buckets(const std::vector<BucketItem>& items,
                                                        ArrayRef<int64_t> limits,
                                                        GroupRule rule = GroupRule::ours);

/// PyTorch's default buffer size of the coalesced movements.
inline constexpr int64_t kDefaultBufferSize = 10485760;

}  // namespace parallel
}  // namespace ramet
