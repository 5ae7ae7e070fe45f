// Where the parameters of a group lie in flat memory, and which rank has which part of them.
//
// Note [Flat shards]
// The parameters of one dtype are laid out one after the other, each at a multiple of 64 bytes, and
// the whole is cut into equal pieces, one a rank, at multiples of 64 bytes: not every tensor is cut
// along a dimension of its own. So ranks differ by less than a parameter's padding, whatever the
// shapes, nothing else is padded, and a gather or a reduction is one operation without copies
// between layouts. A rank's part of a parameter is a range of its row-major elements, often empty.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramet::distributed::detail {

class ShardLayout {
 public:
  ShardLayout() = default;
  /// Of tensors with `numels` elements of `item` bytes.
  ShardLayout(std::vector<int64_t> numels, int64_t item, int ranks);

  struct Range {
    int64_t begin, length;  // elements of the flattened tensor; length may be 0
  };
  /// What `rank` has of a tensor.
  Range part(size_t tensor, int rank) const;
  /// From the start of the rank's piece to that part.
  int64_t place(size_t tensor, int rank) const {
    return offsets_[tensor] + part(tensor, rank).begin - piece_ * rank;
  }
  /// From the start of the flat memory to a tensor, in elements.
  int64_t offset(size_t tensor) const { return offsets_[tensor]; }
  int64_t numel(size_t tensor) const { return numels_[tensor]; }
  size_t size() const { return numels_.size(); }
  /// Elements of each rank's piece, and of all.
  int64_t piece() const { return piece_; }
  int64_t total() const { return total_; }

 private:
  std::vector<int64_t> numels_, offsets_;
  int64_t piece_ = 0, total_ = 0;
};

}  // namespace ramet::distributed::detail
