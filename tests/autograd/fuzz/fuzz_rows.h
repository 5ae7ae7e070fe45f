// Rows of random sizes in columns: the function, its arguments, the right shape, the call.
//
//   VIEW(narrow, (Far<> x, Dim<> dim, Number start, Number length),
//        narrowed(x, dim, start, length), narrow(x, dim, start, length))
//
// The types of the arguments say how they are drawn, in their order. The shape is a formula of them
// in 128 bits, and may call d.may_refuse(). Where the arguments depend on each other in another way,
// the row draws them itself: {"view", [](SizeDraw& d) {...}}.
#pragma once
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/autograd/fuzz/fuzz_sizes.h"

// A column may need a part of the arguments.
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace ramet {
namespace fuzz {

/// Draws the arguments of one call. Their names are in a list as above.
class Arguments {
 public:
  Arguments(SizeDraw& d, const char* list) : draw(d), list_(list) {}
  /// The next argument's name.
  std::string next();
  SizeDraw& draw;
  int64_t rank = 0;  ///< of the last tensor

 private:
  std::string list_;
  size_t at_ = 1;
};

/// A tensor of these ranks, with extents from `smallest` on.
template <int64_t least = 0, int64_t most = 4, int64_t smallest = 0> struct Some : Tensor {
  static Some take(Arguments& a) {
    (void)a.next();
    const Tensor x = a.draw.tensor(least, most, smallest);
    a.rank = x.dim();
    return {x};
  }
};
using Any = Some<>;
/// One that may be expanded to more elements than a loop could visit.
template <int64_t least = 0> struct Far : Tensor {
  static Far take(Arguments& a) {
    (void)a.next();
    const Tensor x = a.draw.view_source(least);
    a.rank = x.dim();
    return {x};
  }
};

struct Integer {
  int64_t value;
  operator int64_t() const { return value; }
};
/// Any number.
struct Number : Integer {
  static Number take(Arguments& a) { return {{a.draw.number(a.next().c_str())}}; }
};
/// Mostly one from low to high.
template <int64_t low, int64_t high> struct Mostly : Integer {
  static Mostly take(Arguments& a) { return {{a.draw.mostly(a.next().c_str(), low, high)}}; }
};
/// Always one from low to high.
template <int64_t low, int64_t high> struct Within : Integer {
  static Within take(Arguments& a) {
    return {{a.draw.note(a.next().c_str(), a.draw.tape().between(low, high))}};
  }
};
/// Mostly a dimension of the last tensor, which may be given `more` of them.
template <int64_t more = 0> struct Dim : Integer {
  static Dim take(Arguments& a) { return {{a.draw.dim(a.next().c_str(), a.rank + more)}}; }
};
/// Nothing, or what T draws.
template <class T> struct Maybe : std::optional<int64_t> {
  static Maybe take(Arguments& a) {
    if (!a.draw.tape().one_in(4)) return {T::take(a).value};
    (void)a.next();
    return {std::nullopt};
  }
};
/// Any numbers, so many of them.
template <size_t least, size_t most> struct Numbers : std::vector<int64_t> {
  static Numbers take(Arguments& a) { return {a.draw.numbers(a.next().c_str(), least, most)}; }
};
/// Mostly dimensions of the last tensor.
struct Dims : std::vector<int64_t> {
  static Dims take(Arguments& a) { return {a.draw.dims(a.next().c_str(), a.rank)}; }
};

template <class T> T take(Arguments& a) {
  if constexpr (std::is_same_v<T, bool>) return a.draw.flag(a.next().c_str());
  else return T::take(a);
}

using Tensors = std::vector<Tensor>;
inline Tensors listed(const Tensor& t) { return {t}; }
inline Tensors listed(Tensors list) { return list; }
inline Tensors listed(const std::tuple<Tensor, Tensor>& t) {
  return {std::get<0>(t), std::get<1>(t)};
}

template <class... A>
SizeRow row(const char* name, const char* list, double cost, Right (*shape)(SizeDraw&, A...),
            Tensors (*call)(A...)) {
  return {name, [=](SizeDraw& d) {
            Arguments a(d, list);
            const std::tuple<A...> drawn{take<A>(a)...};
            const Right right = std::apply([&](const A&... v) { return shape(d, v...); }, drawn);
            d.expect(
                right, [&] { return std::apply(call, drawn); }, cost);
          }};
}

// ---- formulas of several files

inline Right refused() { return std::nullopt; }
inline Right right_if(bool fine, WideShape shape) {
  return fine ? one(std::move(shape)) : refused();
}
/// x's own shape, if the arguments are right.
inline Right as(const Tensor& x, bool fine = true) { return right_if(fine, wide(x.sizes())); }
/// x's own shape, if this is one of its dimensions.
inline Right kept(const Tensor& x, int64_t dim) {
  return as(x, place_of(dim, x.dim()).has_value());
}
/// An Error is allowed as well if `large`.
inline Right lenient(SizeDraw& d, bool large, Right right) {
  if (large) d.may_refuse();
  return right;
}
/// With one extent replaced.
Right with(WideShape shape, size_t at, Wide extent);
/// Two tensors of that shape.
Right twice(Right right);
/// Without these dimensions, each of which occurs once; with 1 for them where they are kept. No
/// dimensions are all of them if `all_of_none`.
Right reduced(const Tensor& x, const std::vector<int64_t>& dims, bool keep,
              bool all_of_none = true);
/// The same of what must have elements along these dimensions.
Right reduced_some(const Tensor& x, const std::vector<int64_t>& dims, bool keep);
/// A diagonal of a matrix, after the other dimensions.
Right diagonal_of(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2);

}  // namespace fuzz
}  // namespace ramet

/// One row. COSTLY: the call takes `cost` times the memory of its result. VIEW: it takes none.
#define ROW_OF(name, cost, arguments, shape, ...)                              \
  row(                                                                         \
      #name, #arguments, cost,                                                 \
      +[](SizeDraw& d, SPREAD_ARGUMENTS arguments) -> Right { return shape; }, \
      +[] arguments -> Tensors { return listed(__VA_ARGS__); })
#define SPREAD_ARGUMENTS(...) __VA_ARGS__
#define ROW(name, arguments, shape, ...) ROW_OF(name, 1, arguments, shape, __VA_ARGS__)
#define VIEW(name, arguments, shape, ...) ROW_OF(name, 0, arguments, shape, __VA_ARGS__)
#define COSTLY(name, cost, arguments, shape, ...) ROW_OF(name, cost, arguments, shape, __VA_ARGS__)
