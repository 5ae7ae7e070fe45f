// How pieces are cut, whether they share memory, and in which order sums are formed: arguments
// common to all rings.
//
// Note [Order of sums]
// The order in which contributions are added is part of the interface, because floating-point
// addition is not associative:
//   fixed     from left to right, by index; the same bits from run to run for one number of
//             contributions
//   tree(V)   a balanced binary tree over V leaves, whatever device holds them: the same bits for
//             1, 2, ... V devices
//   any       whatever is fastest
// A missing contribution is skipped, not replaced by zeros: its sibling goes up alone.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace parallel {

/// `upstream`: where PyTorch's rule differs from this library's, use PyTorch's.
enum class Parity : uint8_t { ours, upstream };

/// What a piece on the input's own device is. `view`: the input's memory, copied at the first
/// in-place operation on the piece, so that the input never changes. `copy`: separate memory from
/// the start.
enum class Alias : uint8_t { view, copy };

/// How an extent is cut into one piece for each device.
class RAMET_API Split {
 public:
  /// Pieces of ceil(extent / devices). There may be fewer pieces than devices. PyTorch's rule.
  static Split chunk() { return Split(Rule::kChunk); }
  /// Sizes differ by at most one, larger ones first; min(extent, devices) pieces.
  static Split balanced() { return Split(Rule::kBalanced); }
  /// The given sizes, one for each device; they must sum to the extent.
  static Split sizes(std::vector<int64_t> sizes) {
    Split s(Rule::kSizes);
    s.sizes_ = std::move(sizes);
    return s;
  }
  /// Proportional to the devices' speeds, by largest remainders (the first wins a tie). One piece
  /// for each device, possibly empty.
  static Split weights(std::vector<double> weights) {
    Split s(Rule::kWeights);
    s.weights_ = std::move(weights);
    return s;
  }

  /// The sizes of the pieces. An extent of 0 gives one empty piece. Under Parity::upstream and with
  /// given sizes, it gives one empty piece for each device.
  std::vector<int64_t> cut(const char* op, int64_t extent, size_t devices,
                           Parity parity = Parity::ours) const;

 private:
  enum class Rule : uint8_t { kChunk, kBalanced, kSizes, kWeights };
  explicit Split(Rule rule) : rule_(rule) {}
  Rule rule_;
  std::vector<int64_t> sizes_;
  std::vector<double> weights_;
};

/// Note [Order of sums].
class RAMET_API ReduceOrder {
 public:
  /// In the inputs' order; along one tree; in any order.
  enum class Kind : uint8_t { kFixed, kTree, kAny };
  ReduceOrder() = default;
  /// In the order of the inputs.
  static ReduceOrder fixed() { return ReduceOrder(Kind::kFixed, 0); }
  /// `leaves` is a power of two.
  static ReduceOrder tree(int leaves);
  /// In whichever order is fastest.
  static ReduceOrder any() { return ReduceOrder(Kind::kAny, 0); }

  /// Which of the three.
  Kind kind() const { return kind_; }
  /// Is it tree(V)?
  bool is_tree() const { return kind_ == Kind::kTree; }
  /// V of tree(V), 0 otherwise.
  int leaves() const { return leaves_; }
  friend bool operator==(ReduceOrder a, ReduceOrder b) {
    return a.kind_ == b.kind_ && a.leaves_ == b.leaves_;
  }
  friend bool operator!=(ReduceOrder a, ReduceOrder b) { return !(a == b); }

 private:
  ReduceOrder(Kind kind, int leaves) : kind_(kind), leaves_(leaves) {}
  Kind kind_ = Kind::kFixed;
  int leaves_ = 0;
};

struct ScatterOptions {
  /// How the extent is cut.
  Split split = Split::chunk();
  int64_t dim = 0;  // negative counts from the end
  /// What the piece on the input's own device is.
  Alias alias = Alias::view;
  Parity parity = Parity::ours;  // upstream: an empty batch gives one empty piece for each device
};

struct ReduceOptions {
  // tree(V): inputs are leaves 0, 1, ...; there may be fewer than V
  ReduceOrder order;
  bool wide = false;  // float accumulates in double
  // a single input that is already in place may be returned as it is
  bool may_alias = false;
};

/// The largest number of contributions to one sum.
inline constexpr int kMaxLeaves = 16;

}  // namespace parallel
}  // namespace ramet
