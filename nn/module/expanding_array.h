// ExpandingArray: D values, or one value that stands for D equal ones. `Conv2dOptions(1, 32, 3)`
// means a 3 x 3 kernel.
#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <vector>

#include "runtime/base/array_ref.h"

namespace ramet {

template <size_t D, class T = int64_t> class RAMET_API ExpandingArray {
 public:
  /// An Error unless there are D values.
  ExpandingArray(std::initializer_list<T> list) : ExpandingArray(ArrayRef<T>(list)) {}
  ExpandingArray(const std::vector<T>& values) : ExpandingArray(ArrayRef<T>(values)) {}
  ExpandingArray(ArrayRef<T> values) {
    RAMET_CHECK(values.size() == D, "ExpandingArray", "Expected ", D, " values, but instead got ",
                values.size());
    std::copy(values.begin(), values.end(), values_.begin());
  }
  ExpandingArray(T single_size) { values_.fill(single_size); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return values_; }
  /// D.
  size_t size() const noexcept { return D; }

 protected:
  std::array<T, D> values_;
};

/// "3" for D = 1, else "[3, 3]".
template <size_t D, class T>
std::ostream& operator<<(std::ostream& stream, const ExpandingArray<D, T>& array) {
  const detail::ClassicScope classic(stream);
  if (D == 1) return stream << array->front();
  return stream << static_cast<ArrayRef<T>>(array);
}

/// Some of the values may be nullopt: `AdaptiveAvgPool2dOptions({7, nullopt})` keeps the input's
/// width.
template <size_t D, class T = int64_t>
class RAMET_API ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
  using Base = ExpandingArray<D, std::optional<T>>;

 public:
  using Base::Base;
  ExpandingArrayWithOptionalElem(std::initializer_list<T> list)
      : ExpandingArrayWithOptionalElem(ArrayRef<T>(list)) {}
  ExpandingArrayWithOptionalElem(const std::vector<T>& values)
      : ExpandingArrayWithOptionalElem(ArrayRef<T>(values)) {}
  ExpandingArrayWithOptionalElem(ArrayRef<T> values) : Base(std::optional<T>(0)) {
    RAMET_CHECK(values.size() == D, "ExpandingArray", "Expected ", D, " values, but instead got ",
                values.size());
    std::copy(values.begin(), values.end(), this->values_.begin());
  }
  ExpandingArrayWithOptionalElem(T single_size) : Base(std::optional<T>(single_size)) {}
  ExpandingArrayWithOptionalElem(const std::array<T, D>& values)
      : ExpandingArrayWithOptionalElem(ArrayRef<T>(values)) {}
};

template <size_t D, class T>
std::ostream& operator<<(std::ostream& stream, const ExpandingArrayWithOptionalElem<D, T>& array) {
  const detail::ClassicScope classic(stream);
  if (D > 1) stream << '[';
  for (size_t i = 0; i < D; ++i) {
    if (i) stream << ", ";
    if ((*array)[i]) stream << *(*array)[i];
    else stream << "None";
  }
  if (D > 1) stream << ']';
  return stream;
}

}  // namespace ramet
