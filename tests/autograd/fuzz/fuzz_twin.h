// A slow reference for tensors of float64. Memory is a list of numbers, a view is a list of places
// in it. A history is the derivative of every number by every element of every leaf (forward mode).
// It has no strides, no graph and no saved values, so it cannot fail in the ways of a runtime.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace ramet {
namespace fuzz {

using Shape = std::vector<int64_t>;
/// Elements of leaves that require grad, of all leaves of a program together.
inline constexpr size_t kSlots = 24;
using Slope = std::array<double, kSlots>;

struct Dual {
  double value = 0;
  Slope slope{};
};

struct Memory {
  std::vector<double> value;
  bool saved = false;  // a recorded operation needs these values in backward
};
/// Tensors of one memory that detach separates have a history each.
struct History {
  std::vector<Slope> slope;  // one a place of the memory
  bool leaf = false;         // of a leaf that requires grad
  bool grad = false;
  bool overlaps = false;  // elements of its first tensor share memory
};

struct Twin {
  std::shared_ptr<Memory> memory;
  std::shared_ptr<History> history;
  Shape sizes;
  std::vector<size_t> at;  // where each element lies, row by row

  int64_t numel() const { return static_cast<int64_t>(at.size()); }
  bool grad() const { return history->grad; }
  Dual operator[](size_t i) const { return {memory->value[at[i]], history->slope[at[i]]}; }
};

inline int64_t count(const Shape& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
/// Calls f(multi-index) for every element of a shape, row by row.
void each(const Shape& sizes, const std::function<void(const Shape&)>& f);
/// The place of a multi-index among the elements of a shape, row by row.
size_t place(const Shape& sizes, const Shape& index);
/// Both shapes broadcast; false where they do not.
bool broadcast(const Shape& a, const Shape& b, Shape* both);

/// New memory with these values. Only the slopes connect it with other memory.
Twin fresh(const Shape& sizes, const std::vector<Dual>& values, bool grad);
/// x's memory and history: element i of the view is the element of x at source(i).
Twin view_of(const Twin& x, const Shape& sizes, const std::function<Shape(const Shape&)>& source);
/// The elements of x under a larger shape.
std::vector<Dual> read(const Twin& x, const Shape& sizes);
/// Replaces x's values, and their slopes unless only the values are `seen` (under no_grad).
void write(const Twin& x, const std::vector<Dual>& values, bool with_slopes);

bool overlaps_itself(const Twin& x);

Dual operator+(Dual a, const Dual& b);
Dual operator-(Dual a, const Dual& b);
Dual operator*(const Dual& a, const Dual& b);
Dual operator/(const Dual& a, const Dual& b);
/// f(a) with its derivative there.
Dual chain(const Dual& a, double value, double derivative);
inline Dual number(double v) { return {v, {}}; }

}  // namespace fuzz
}  // namespace ramet
