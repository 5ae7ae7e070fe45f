#include "tests/autograd/fuzz/fuzz_twin.h"

#include <algorithm>
#include <set>

namespace ramet {
namespace fuzz {

void each(const Shape& sizes, const std::function<void(const Shape&)>& f) {
  Shape index(sizes.size(), 0);
  for (int64_t n = count(sizes); n > 0; --n) {
    f(index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

size_t place(const Shape& sizes, const Shape& index) {
  int64_t p = 0;
  for (size_t d = 0; d < sizes.size(); ++d) p = p * sizes[d] + index[d];
  return static_cast<size_t>(p);
}

bool broadcast(const Shape& a, const Shape& b, Shape* both) {
  const size_t rank = std::max(a.size(), b.size());
  both->assign(rank, 1);
  for (size_t d = 0; d < rank; ++d) {  // from the last dimension
    const int64_t x = d < a.size() ? a[a.size() - 1 - d] : 1,
                  y = d < b.size() ? b[b.size() - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*both)[rank - 1 - d] = x == 1 ? y : x;
  }
  return true;
}

Twin fresh(const Shape& sizes, const std::vector<Dual>& values, bool grad) {
  Twin t{std::make_shared<Memory>(), std::make_shared<History>(), sizes, {}};
  for (const Dual& v : values) {
    t.at.push_back(t.at.size());
    t.memory->value.push_back(v.value);
    t.history->slope.push_back(v.slope);
  }
  t.history->grad = grad;
  return t;
}

Twin view_of(const Twin& x, const Shape& sizes, const std::function<Shape(const Shape&)>& source) {
  Twin t{x.memory, x.history, sizes, {}};
  each(sizes, [&](const Shape& i) { t.at.push_back(x.at[place(x.sizes, source(i))]); });
  return t;
}

std::vector<Dual> read(const Twin& x, const Shape& sizes) {
  std::vector<Dual> out;
  const size_t lead = sizes.size() - x.sizes.size();
  each(sizes, [&](const Shape& i) {
    Shape from(i.begin() + static_cast<std::ptrdiff_t>(lead), i.end());
    for (size_t d = 0; d < from.size(); ++d)
      if (x.sizes[d] == 1) from[d] = 0;
    out.push_back(x[place(x.sizes, from)]);
  });
  return out;
}

void write(const Twin& x, const std::vector<Dual>& values, bool with_slopes) {
  for (size_t i = 0; i < values.size(); ++i) {
    x.memory->value[x.at[i]] = values[i].value;
    if (with_slopes) x.history->slope[x.at[i]] = values[i].slope;
  }
}

bool overlaps_itself(const Twin& x) {
  return std::set<size_t>(x.at.begin(), x.at.end()).size() != x.at.size();
}

Dual operator+(Dual a, const Dual& b) {
  a.value += b.value;
  for (size_t k = 0; k < kSlots; ++k) a.slope[k] += b.slope[k];
  return a;
}
Dual operator-(Dual a, const Dual& b) {
  a.value -= b.value;
  for (size_t k = 0; k < kSlots; ++k) a.slope[k] -= b.slope[k];
  return a;
}
Dual operator*(const Dual& a, const Dual& b) {
  Dual c{a.value * b.value, {}};
  for (size_t k = 0; k < kSlots; ++k) c.slope[k] = a.slope[k] * b.value + a.value * b.slope[k];
  return c;
}
Dual operator/(const Dual& a, const Dual& b) {
  Dual c{a.value / b.value, {}};
  for (size_t k = 0; k < kSlots; ++k)
    c.slope[k] = (a.slope[k] * b.value - a.value * b.slope[k]) / (b.value * b.value);
  return c;
}
Dual chain(const Dual& a, double value, double derivative) {
  Dual c{value, {}};
  for (size_t k = 0; k < kSlots; ++k) c.slope[k] = a.slope[k] * derivative;
  return c;
}

}  // namespace fuzz
}  // namespace ramet
