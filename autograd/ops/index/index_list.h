// What x.index({...}) and x.index_put_({...}, v) take: LibTorch's namespace `indexing`.
//
//   using namespace ramet::indexing;
//   x.index({Slice(1, None, 2), "...", 0, None})   a view: integers, slices, None (a new dimension)
//                                                  and Ellipsis
//   x.index({rows, cols})                          a copy: index tensors broadcast together and
//                                                  take the place of their dimensions
//   x.index({x > 0})                               a copy: a bool mask counts as the index tensors
//                                                  of its true elements
//   x.index_put_({Slice(), 2}, 7.0)                in place; values broadcast
//
// Where index tensors are not neighbours, their common dimensions come first, as in NumPy and
// LibTorch. Of several values for one element the last one stays. All is differentiable to any
// order; an in-place write keeps the histories of base and views right.
#pragma once
#include <iosfwd>
#include <optional>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace indexing {

/// The kind of an index. (Before the constants of the same names, which g++ 12 would call
/// shadowed.)
enum class TensorIndexType { None, Ellipsis, Integer, Boolean, Slice, Tensor };

/// Stands for a new dimension of extent 1, or for the open end of a Slice.
inline constexpr std::nullopt_t None = std::nullopt;

/// The type of Ellipsis: all dimensions that the other indices leave. Also "...".
struct EllipsisIndexType final {};
/// "...": as many ":" as dimensions are left.
inline constexpr EllipsisIndexType Ellipsis{};

/// start:stop:step, clamped as in Python; step is positive.
class RAMET_API Slice final {
 public:
  Slice(std::optional<int64_t> start = std::nullopt, std::optional<int64_t> stop = std::nullopt,
        std::optional<int64_t> step = std::nullopt);
  /// The given values; an open end is 0 or INT64_MAX, an omitted step is 1:
  int64_t start() const { return start_; }
  int64_t stop() const { return stop_; }
  int64_t step() const { return step_; }

 private:
  int64_t start_, stop_, step_;
};

/// One entry of an index list; converts from everything above, integers, bool and tensors.
class RAMET_API TensorIndex final {
 public:
  TensorIndex(std::nullopt_t) : type_(TensorIndexType::None) {}
  TensorIndex(EllipsisIndexType) : type_(TensorIndexType::Ellipsis) {}
  TensorIndex(const char* text);  ///< "..." only
  template <class T, std::enable_if_t<std::is_integral<T>::value, int> = 0>
  TensorIndex(T value)
      : type_(std::is_same<T, bool>::value ? TensorIndexType::Boolean : TensorIndexType::Integer),
        integer_(static_cast<int64_t>(value)) {}
  TensorIndex(Slice slice) : type_(TensorIndexType::Slice), slice_(slice) {}
  TensorIndex(Tensor tensor) : type_(TensorIndexType::Tensor), tensor_(std::move(tensor)) {}
  TensorIndex(const Scalar& value);  ///< an integer or a bool

  /// The kind of this entry, and questions about it:
  TensorIndexType type() const { return type_; }
  bool is_none() const { return type_ == TensorIndexType::None; }
  bool is_ellipsis() const { return type_ == TensorIndexType::Ellipsis; }
  bool is_integer() const { return type_ == TensorIndexType::Integer; }
  bool is_boolean() const { return type_ == TensorIndexType::Boolean; }
  bool is_slice() const { return type_ == TensorIndexType::Slice; }
  bool is_tensor() const { return type_ == TensorIndexType::Tensor; }
  /// The value, of the kind that type() says:
  int64_t integer() const { return integer_; }
  bool boolean() const { return integer_ != 0; }
  const Slice& slice() const { return slice_; }
  const Tensor& tensor() const { return tensor_; }

 private:
  TensorIndexType type_;
  int64_t integer_ = 0;
  Slice slice_;
  Tensor tensor_;
};

/// Prints "start:stop:step".
RAMET_API std::ostream& operator<<(std::ostream& out, const Slice& slice);
/// Prints "None", "...", or the value that it holds.
RAMET_API std::ostream& operator<<(std::ostream& out, const TensorIndex& index);
/// Prints "(1, None, 0:2:1)".
RAMET_API std::ostream& operator<<(std::ostream& out, const std::vector<TensorIndex>& indices);

}  // namespace indexing

}  // namespace ramet
