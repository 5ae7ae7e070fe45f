// Where the parameters of a group are in flat memory, and which rank has which part of them.
//
// Note [Flat shards]
// The parameters of one dtype are laid out one after the other, each at a multiple of 64 bytes. The
// whole is cut into equal pieces, one for each rank, at multiples of 64 bytes. No tensor is cut
// along a dimension of its own. So ranks differ by less than a parameter's padding, whatever the
// shapes, and nothing else is padded. A gather or a reduction is one operation without copies
// between layouts. A rank's part of a parameter is a range of its row-major elements, often empty.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ramet::distributed::detail {

class ShardLayout {
 public:
  ShardLayout() = default;
  /// For tensors with `numels` elements of `item` bytes.
  ShardLayout(std::vector<int64_t> numels, int64_t item, int ranks);

  struct Range {
    int64_t begin, length;  // elements of the flattened tensor; length may be 0
  };
  /// The part of a tensor that `rank` has.
  Range part(size_t tensor, int rank) const;
  /// The distance from the start of the rank's piece to that part, in elements.
  int64_t place(size_t tensor, int rank) const {
    return offsets_[tensor] + part(tensor, rank).begin - piece_ * rank;
  }
  /// The distance from the start of the flat memory to a tensor, in elements.
  int64_t offset(size_t tensor) const { return offsets_[tensor]; }
  int64_t numel(size_t tensor) const { return numels_[tensor]; }
  size_t size() const { return numels_.size(); }
  /// The number of elements of each rank's piece, and of all pieces.
  int64_t piece() const { return piece_; }
  int64_t total() const { return total_; }

 private:
  std::vector<int64_t> numels_, offsets_;
  int64_t piece_ = 0, total_ = 0;
};

}  // namespace ramet::distributed::detail
