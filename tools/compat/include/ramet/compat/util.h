// c10's small types and functions: irange, make_optional, makeArrayRef, SmallVector, intrusive_ptr,
// ...
#pragma once
#include <algorithm>
#include <complex>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ramet/compat/str.h"

namespace c10 {

// The same entities as in std, so that programs that open both namespaces meet no ambiguity.
// optional, nullopt and nullopt_t come with Ramet's own names.
using std::call_once;
using std::get;
using std::get_if;
using std::holds_alternative;
using std::in_place;
using std::in_place_t;
using std::make_optional;
using std::make_unique;
using std::monostate;
using std::once_flag;
using std::variant;
using std::visit;
using bad_optional_access = std::bad_optional_access;
namespace guts {
using std::conjunction;
using std::disjunction;
using std::is_convertible;
using std::make_unique;
using std::negation;
using std::void_t;
template <class F, class Args> constexpr decltype(auto) apply(F&& f, Args&& args) {
  return std::apply(std::forward<F>(f), std::forward<Args>(args));
}
template <class T> constexpr const T& clamp(const T& value, const T& low, const T& high) {
  return std::clamp(value, low, high);
}
}  // namespace guts

/// [begin, end) for range-for. Empty where end <= begin.
template <class I> class integer_range {
 public:
  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = const I*;
    using reference = I;
    constexpr explicit iterator(I value) : value_(value) {}
    constexpr I operator*() const { return value_; }
    constexpr const I* operator->() const { return &value_; }
    constexpr iterator& operator++() {
      ++value_;
      return *this;
    }
    constexpr iterator operator++(int) {
      const iterator before = *this;
      ++value_;
      return before;
    }
    friend constexpr bool operator==(iterator a, iterator b) { return a.value_ == b.value_; }
    friend constexpr bool operator!=(iterator a, iterator b) { return a.value_ != b.value_; }

   private:
    I value_;
  };

  constexpr integer_range(I begin, I end) : begin_(begin), end_(end < begin ? begin : end) {}
  constexpr iterator begin() const { return begin_; }
  constexpr iterator end() const { return end_; }

 private:
  iterator begin_, end_;
};
/// `for (auto i : c10::irange(n))`: 0 to n-1, of n's type.
template <class I, std::enable_if_t<std::is_integral<I>::value, int> = 0>
constexpr integer_range<I> irange(I end) {
  return {I(), end};
}
/// begin to end-1, of end's type.
template <class I, class J,
          std::enable_if_t<std::is_integral<I>::value && std::is_integral<J>::value, int> = 0>
constexpr integer_range<J> irange(I begin, J end) {
  return {static_cast<J>(begin), end};
}

/// A list of a few elements. Here a std::vector: N is a wish.
template <class T, unsigned N = 4> class SmallVector : public std::vector<T> {
 public:
  using std::vector<T>::vector;
  SmallVector() = default;
  SmallVector(const std::vector<T>& list) : std::vector<T>(list) {}
  SmallVector(std::vector<T>&& list) : std::vector<T>(std::move(list)) {}
  SmallVector(::ramet::ArrayRef<T> list) : std::vector<T>(list.begin(), list.end()) {}
  SmallVector& operator=(std::initializer_list<T> list) {
    this->assign(list);
    return *this;
  }
  template <class Iterator> void append(Iterator begin, Iterator end) {
    this->insert(this->end(), begin, end);
  }
  void append(size_t count, const T& value) { this->insert(this->end(), count, value); }
  void append(std::initializer_list<T> list) { this->insert(this->end(), list); }
  T pop_back_val() {
    T last = std::move(this->back());
    this->pop_back();
    return last;
  }
};
/// "[2, 3]"
template <class T, unsigned N>
std::ostream& operator<<(std::ostream& out, const SmallVector<T, N>& list) {
  return out << ::ramet::ArrayRef<T>(list.data(), list.size());
}
template <class T> using SmallVectorImpl = SmallVector<T>;
using DimVector = SmallVector<int64_t, 5>;

template <class T>::ramet::ArrayRef<T> makeArrayRef(const T& one) { return one; }
template <class T>::ramet::ArrayRef<T> makeArrayRef(const T* data, size_t size) {
  return {data, size};
}
template <class T>::ramet::ArrayRef<T> makeArrayRef(const T* begin, const T* end) {
  return {begin, end};
}
template <class T>::ramet::ArrayRef<T> makeArrayRef(const std::vector<T>& list) { return list; }
template <class T, unsigned N>::ramet::ArrayRef<T> makeArrayRef(const SmallVector<T, N>& list) {
  return {list.data(), list.size()};
}
template <class T, size_t N>::ramet::ArrayRef<T> makeArrayRef(const std::array<T, N>& list) {
  return list;
}
template <class T, size_t N>::ramet::ArrayRef<T> makeArrayRef(const T (&list)[N]) { return list; }
template <class T>::ramet::ArrayRef<T> makeArrayRef(::ramet::ArrayRef<T> list) { return list; }

/// Base of what LibTorch keeps in an intrusive_ptr.
class RAMET_API intrusive_ptr_target {
 public:
  virtual ~intrusive_ptr_target() = default;

 protected:
  intrusive_ptr_target() = default;
  intrusive_ptr_target(const intrusive_ptr_target&) = default;
  intrusive_ptr_target& operator=(const intrusive_ptr_target&) = default;
};

/// Here a shared_ptr, which it also converts to and from: Ramet's process groups and stores are
/// kept in one. There is no release() to a raw pointer.
template <class T> class intrusive_ptr : public std::shared_ptr<T> {
 public:
  using element_type = T;
  using std::shared_ptr<T>::shared_ptr;
  intrusive_ptr() = default;
  template <class U, std::enable_if_t<std::is_convertible<U*, T*>::value, int> = 0>
  intrusive_ptr(const std::shared_ptr<U>& o) : std::shared_ptr<T>(o) {}
  template <class U, std::enable_if_t<std::is_convertible<U*, T*>::value, int> = 0>
  intrusive_ptr(std::shared_ptr<U>&& o) : std::shared_ptr<T>(std::move(o)) {}
  /// From what converts to a shared_ptr: grad_fn().
  template <class From,
            std::enable_if_t<std::is_class<From>::value &&
                                 !std::is_base_of<std::shared_ptr<T>, From>::value &&
                                 std::is_convertible<From, std::shared_ptr<T>>::value,
                             int> = 0>
  intrusive_ptr(const From& from) : intrusive_ptr(static_cast<std::shared_ptr<T>>(from)) {}
  template <class... Args> static intrusive_ptr make(Args&&... args) {
    return std::make_shared<T>(std::forward<Args>(args)...);
  }
  /// Takes over what `new` has made.
  static intrusive_ptr reclaim(T* owned) { return intrusive_ptr(std::shared_ptr<T>(owned)); }
  static intrusive_ptr unsafe_steal_from_new(T* owned) { return reclaim(owned); }
  bool defined() const noexcept { return *this != nullptr; }
  bool unique() const noexcept { return this->use_count() == 1; }
};
template <class T, class... Args> intrusive_ptr<T> make_intrusive(Args&&... args) {
  return intrusive_ptr<T>::make(std::forward<Args>(args)...);
}
template <class T> class weak_intrusive_ptr : public std::weak_ptr<T> {
 public:
  using std::weak_ptr<T>::weak_ptr;
  intrusive_ptr<T> lock() const noexcept { return std::weak_ptr<T>::lock(); }
};
template <class To, class From>
intrusive_ptr<To> static_intrusive_pointer_cast(const intrusive_ptr<From>& p) {
  return std::static_pointer_cast<To>(p);
}
template <class To, class From>
intrusive_ptr<To> dynamic_intrusive_pointer_cast(const intrusive_ptr<From>& p) {
  return std::dynamic_pointer_cast<To>(p);
}

/// Calls `f` at the end of the scope unless release() came before.
template <class F> class ScopeExit {
 public:
  explicit ScopeExit(F f) : f_(std::move(f)) {}
  ScopeExit(ScopeExit&& o) noexcept : f_(std::move(o.f_)), engaged_(o.engaged_) { o.release(); }
  ScopeExit& operator=(ScopeExit&&) = delete;
  ~ScopeExit() {
    if (engaged_) f_();
  }
  void release() { engaged_ = false; }

 private:
  F f_;
  bool engaged_ = true;
};
template <class F> [[nodiscard]] ScopeExit<std::decay_t<F>> make_scope_exit(F&& f) {
  return ScopeExit<std::decay_t<F>>(std::forward<F>(f));
}

template <class Iterator> int64_t sum_integers(Iterator begin, Iterator end) {
  return std::accumulate(begin, end, int64_t{0});
}
template <class Container> int64_t sum_integers(const Container& list) {
  return sum_integers(list.begin(), list.end());
}
template <class Iterator> int64_t multiply_integers(Iterator begin, Iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<int64_t>());
}
template <class Container> int64_t multiply_integers(const Container& list) {
  return multiply_integers(list.begin(), list.end());
}

/// Do the operands overflow T? The result, wrapped around, goes to `out` either way.
template <class T> bool add_overflows(T a, T b, T* out) {
  return __builtin_add_overflow(a, b, out);
}
template <class T> bool mul_overflows(T a, T b, T* out) {
  return __builtin_mul_overflow(a, b, out);
}

/// T, or the T of a complex<T>: `std::numeric_limits<typename scalar_value_type<T>::type>`.
template <class T> struct scalar_value_type { using type = T; };
template <class T> struct scalar_value_type<std::complex<T>> { using type = T; };

inline size_t hash_combine(size_t seed, size_t value) {
  return seed ^ (value + 0x9e3779b9u + (seed << 6) + (seed >> 2));
}
template <class... T> size_t get_hash(const T&... values) {
  size_t seed = 0;
  ((seed = hash_combine(seed, std::hash<T>()(values))), ...);
  return seed;
}

/// Dict<IValue, IValue> and List<IValue>.
namespace impl {
using ::ramet::impl::GenericDict;
using ::ramet::impl::GenericList;
}  // namespace impl
}  // namespace c10

namespace torch {
/// Base of LibTorch's custom classes.
using CustomClassHolder = c10::intrusive_ptr_target;
}  // namespace torch
