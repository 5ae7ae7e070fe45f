// A view of a list that another object owns, as LibTorch's ArrayRef. It is made from one element, a
// braced list, a vector or an array. Never store one.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {

template <class T> class ArrayRef {
 public:
  /// As a container's:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const T*;

  constexpr ArrayRef() : data_(nullptr), size_(0) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  ArrayRef(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N> constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
  template <size_t N> constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
#endif
  constexpr ArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin() == list.end() ? nullptr : list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  /// As std::vector's:
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  /// Not checked, as LibTorch's; at() is.
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  /// Checked: an Error outside the list.
  const T& at(size_t i) const {
    RAMET_CHECK(i < size_, "ArrayRef", "index: got ", i, ", expected less than ", size_);
    return data_[i];
  }
  /// The first; an Error of an empty list.
  const T& front() const {
    RAMET_CHECK(size_ > 0, "ArrayRef", "front() of an empty list");
    return data_[0];
  }
  /// The last; an Error of an empty list.
  const T& back() const {
    RAMET_CHECK(size_ > 0, "ArrayRef", "back() of an empty list");
    return data_[size_ - 1];
  }
  /// `count` elements from number `start` on, or all from there. An Error outside the list.
  ArrayRef slice(size_t start, size_t count) const {
    RAMET_CHECK(start <= size_ && count <= size_ - start, "ArrayRef", "slice: got ", count,
                " from ", start, ", expected a part of ", size_);
    return {data_ + start, count};
  }
  ArrayRef slice(size_t start) const {
    RAMET_CHECK(start <= size_, "ArrayRef", "slice: got a start at ", start, ", expected at most ",
                size_);
    return {data_ + start, size_ - start};
  }
  /// A copy.
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }
  /// The same length and equal elements?
  bool equals(ArrayRef o) const {
    if (size_ != o.size_) return false;
    for (size_t i = 0; i < size_; ++i)
      if (!(data_[i] == o.data_[i])) return false;
    return true;
  }

 private:
  const T* data_;
  size_t size_;
};

template <class T> bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T> bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T> bool operator==(const std::vector<T>& a, ArrayRef<T> b) { return b.equals(a); }
template <class T> bool operator==(ArrayRef<T> a, const std::vector<T>& b) { return a.equals(b); }
template <class T> bool operator!=(ArrayRef<T> a, const std::vector<T>& b) { return !a.equals(b); }

/// "[2, 3]"
template <class T> std::ostream& operator<<(std::ostream& out, ArrayRef<T> list) {
  const detail::ClassicScope classic(out);
  out << '[';
  for (size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  return out << ']';
}

/// Sizes, strides, dimensions: a view of a list of int64.
using IntArrayRef = ArrayRef<int64_t>;

/// "No list" or a list: LibTorch's OptionalIntArrayRef (`x.sum({})`, `x.mean(std::nullopt)`).
class OptionalIntArrayRef {
 public:
  OptionalIntArrayRef() = default;
  OptionalIntArrayRef(std::nullopt_t) {}
  OptionalIntArrayRef(IntArrayRef list) : list_(list), given_(true) {}
  OptionalIntArrayRef(const std::vector<int64_t>& list) : list_(list), given_(true) {}
  OptionalIntArrayRef(const std::initializer_list<int64_t>& list) : list_(list), given_(true) {}
  OptionalIntArrayRef(const int64_t& one) : list_(one), given_(true) {}
  /// Is there a list?
  bool has_value() const { return given_; }
  explicit operator bool() const { return given_; }
  /// The list; an Error where there is none.
  IntArrayRef value() const {
    RAMET_CHECK(given_, "OptionalIntArrayRef", "value() where there is none");
    return list_;
  }
  /// Not checked: an empty list where there is none.
  IntArrayRef operator*() const { return list_; }

 private:
  IntArrayRef list_;
  bool given_ = false;
};

}  // namespace ramet
