// The bucket plan: which tensors travel together. Pure: sizes in, groups out; the same answer on
// every device and process.
#pragma once
#include <cstdint>
#include <vector>

#include "runtime/base/array_ref.h"
#include "runtime/base/dtype.h"

namespace ramet {
namespace parallel {

/// ours      a group is closed before a tensor would take it over the limit, unless it is empty;
/// groups are listed by their
///           first tensor
/// upstream  a group is closed after it has reached the limit, so it may exceed it by one tensor;
/// groups are listed as they
///           close, what is left over by type (PyTorch's broadcast and DistributedDataParallel)
enum class GroupRule : uint8_t { ours, upstream };

/// What goes into a bucket: one tensor's size and kind.
struct BucketItem {
  /// Its size.
  int64_t bytes;
  /// Items of several dtypes share no bucket.
  ScalarType dtype;
  int device = 0;  // Device::ordinal(), or any other number that keeps items apart
};

/// Indices of `items` by group: one (device, dtype) a group, in the order of `items`. `limits` in
/// bytes: the k-th group of a (device, dtype) has the k-th limit, the last one holds from there on.
/// An Error for no or a negative limit.
RAMET_API std::vector<std::vector<size_t>> plan_buckets(const std::vector<BucketItem>& items,
                                                        ArrayRef<int64_t> limits,
                                                        GroupRule rule = GroupRule::ours);

/// PyTorch's default buffer size of the coalesced movements.
inline constexpr int64_t kDefaultBufferSize = 10485760;

}  // namespace parallel
}  // namespace ramet
