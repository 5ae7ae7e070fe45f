// What becomes of a buffer's value in the replicas of a data-parallel step.
#pragma once
#include <cstdint>

namespace ramet {
namespace nn {

/// Declared per buffer (`Module::register_buffer(name, tensor, policy)`), applied to the source
/// after all replicas succeeded.
enum class BufferPolicy : uint8_t {
  first,  // replica 0's value: the default
  // left to Module::merge_replicas, which combines the replicas' statistics exactly (the batch-norm
  // family)
  merge_stats,
  mean,
  sum,
  max,
  all_equal,    // an Error where two replicas differ.
  sync,         // the module itself makes its replicas agree during forward.
  per_replica,  // each replica keeps its own value from step to step; the source's is not changed.
};

}  // namespace nn
}  // namespace ramet
