// One draw of a case, compiled once for each arm (RAMET_COMPARE_API is ramet or torch). It makes
// inputs, collects results and computes gradients. Every choice comes from the draw's source, in an
// order that the language fixes (never two in one argument list). So both arms choose alike.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tools/compare/arm.h"
#include "tools/compare/source.h"

namespace {
namespace api = RAMET_COMPARE_API;
namespace ops = RAMET_COMPARE_OPS;  // what torch has in namespace at only
using api::Scalar;
using api::ScalarType;
using api::Tensor;
using Sizes = std::vector<int64_t>;
using Tensors = std::vector<Tensor>;
template <class T> using Opt = RAMET_COMPARE_OPTIONAL<T>;

struct DTypeName {
  ScalarType type;
  const char* name;
};
const DTypeName kDTypes[] = {{api::kFloat, "float32"}, {api::kDouble, "float64"},
                             {api::kHalf, "float16"},  {api::kBFloat16, "bfloat16"},
                             {api::kLong, "int64"},    {api::kInt, "int32"},
                             {api::kShort, "int16"},   {api::kChar, "int8"},
                             {api::kByte, "uint8"},    {api::kBool, "bool"}};
const char* dtype_name(ScalarType t) {
  for (const DTypeName& d : kDTypes)
    if (d.type == t) return d.name;
  return "?";
}
bool floating(ScalarType t) {
  return t == api::kFloat || t == api::kDouble || t == api::kHalf || t == api::kBFloat16;
}
size_t bytes_of(ScalarType t) {
  return t == api::kDouble || t == api::kLong                         ? 8
         : t == api::kFloat || t == api::kInt                         ? 4
         : t == api::kHalf || t == api::kBFloat16 || t == api::kShort ? 2
                                                                      : 1;
}
void store(char* p, ScalarType t, double x) {
  const auto put = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  if (t == api::kFloat) put(static_cast<float>(x));
  else if (t == api::kDouble) put(x);
  else if (t == api::kHalf) put(compare::half_bits(static_cast<float>(x)));
  else if (t == api::kBFloat16) put(compare::bfloat16_bits(static_cast<float>(x)));
  else if (t == api::kLong) put(static_cast<int64_t>(x));
  else if (t == api::kInt) put(static_cast<int32_t>(x));
  else if (t == api::kShort) put(static_cast<int16_t>(x));
  else if (t == api::kChar) put(static_cast<int8_t>(x));
  else if (t == api::kByte) put(static_cast<uint8_t>(x));
  else put(static_cast<uint8_t>(x != 0));
}
double load_real(const char* p, ScalarType t) {
  const auto get = [p](auto v) { return std::memcpy(&v, p, sizeof v), v; };
  if (t == api::kFloat) return get(0.f);
  if (t == api::kDouble) return get(0.);
  return t == api::kHalf ? compare::half_value(get(uint16_t{0}))
                         : compare::bfloat16_value(get(uint16_t{0}));
}
int64_t load_whole(const char* p, ScalarType t) {
  const auto get = [p](auto v) { return std::memcpy(&v, p, sizeof v), int64_t{v}; };
  if (t == api::kLong) return get(int64_t{0});
  if (t == api::kInt) return get(int32_t{0});
  if (t == api::kShort) return get(int16_t{0});
  return t == api::kChar ? get(int8_t{0}) : get(uint8_t{0});
}
template <class F> void each_offset(const Sizes& sizes, const Sizes& strides, F f) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  Sizes at(sizes.size(), 0);
  for (int64_t i = 0, offset = 0; i < n; ++i) {
    f(offset);
    for (size_t d = sizes.size(); d-- > 0;) {
      offset += strides[d];
      if (++at[d] < sizes[d]) break;
      offset -= at[d] * strides[d];
      at[d] = 0;
    }
  }
}

/// The kinds of numbers in an input.
enum class Values {
  Any,       // mostly between -3 and 3; sometimes halves (ties and kinks), seldom inf, NaN and such
  Finite,    // as Any without the last
  Positive,  // 0.1 to 3
  Unit,      // 0.02 to 0.98
  Distinct,  // no two alike
};

struct Result {
  std::string label;
  ScalarType dtype;
  int stage;
  Sizes sizes, strides;
  bool with_strides;
  std::vector<double> reals;
  std::vector<int64_t> wholes;
};

class Draw {
 public:
  Draw(uint64_t seed, const char* name, uint64_t draw) : source_(seed, name, draw) {}

  // ---- choices
  bool flag(double p = 0.5) { return source_.unit() < p; }
  int64_t integer(int64_t low, int64_t high) { return source_.integer(low, high); }
  double real(double low, double high) {
    return std::round((low + (high - low) * source_.unit()) * 64) / 64;
  }
  /// One of the names, written into the draw's text; its position.
  int form(std::initializer_list<const char*> names) {
    const int64_t i = integer(0, static_cast<int64_t>(names.size()) - 1);
    say(names.begin()[i]);
    return static_cast<int>(i);
  }
  template <class T> T pick(std::initializer_list<T> values) {
    return values.begin()[integer(0, static_cast<int64_t>(values.size()) - 1)];
  }
  template <class T> void say(const T& what) { text_ << what << ' '; }
  template <class T> void say(const char* name, const T& value) {
    text_ << name << '=' << value << ' ';
  }
  void say(const char* name, const Sizes& values) {
    text_ << name << "=[";
    for (size_t i = 0; i < values.size(); ++i) text_ << (i ? "," : "") << values[i];
    text_ << "] ";
  }
  bool said(const char* name, double p = 0.5) {
    const bool is = flag(p);
    say(name, is);
    return is;
  }
  int64_t said(const char* name, int64_t low, int64_t high) {
    const int64_t is = integer(low, high);
    say(name, is);
    return is;
  }
  /// A shape; extents are small, seldom 0, and seldom one is large enough for vectors and chunks.
  Sizes shape(int64_t low_rank, int64_t high_rank, double empty = 0.04) {
    Sizes s(static_cast<size_t>(integer(low_rank, high_rank)));
    for (int64_t& e : s) e = flag(empty) ? 0 : integer(1, 5);
    if (!s.empty() && flag(.06))
      s[static_cast<size_t>(integer(0, int64_t(s.size()) - 1))] = integer(30, 90);
    return s;
  }
  /// float32 most often, every other type sometimes.
  ScalarType any_type() {
    if (flag(.35)) return api::kFloat;
    return kDTypes[integer(0, 9)].type;
  }
  ScalarType floating_type() {
    if (flag(.4)) return api::kFloat;
    return kDTypes[integer(0, 3)].type;
  }
  /// A floating type nearly always.
  ScalarType mostly_floating() { return flag(.9) ? floating_type() : any_type(); }
  /// A dimension, counted from either end, seldom one that is not there.
  int64_t dim(int64_t rank, double wrong = .02) {
    int64_t d;
    if (flag(wrong)) d = flag() ? rank + 1 : -rank - 2;
    else if (rank == 0) d = flag() ? 0 : -1;
    else d = integer(-rank, rank - 1);
    say("dim", d);
    return d;
  }
  /// Some of the dimensions, in random order and from either end.
  Sizes dims(int64_t rank) {
    Sizes all;
    for (int64_t d = 0; d < rank; ++d) all.push_back(flag() ? d : d - rank);
    shuffle(all);
    all.resize(static_cast<size_t>(integer(0, rank)));
    if (!all.empty() && flag(.02)) all.push_back(all[0]);
    say("dims", all);
    return all;
  }
  void shuffle(Sizes& v) {
    for (size_t i = v.size(); i > 1; --i)
      std::swap(v[i - 1], v[static_cast<size_t>(integer(0, int64_t(i) - 1))]);
  }
  /// A number as an argument: whole, floating or bool.
  Scalar number(bool with_bool = true) {
    const int64_t kind = integer(0, with_bool && flag(.2) ? 2 : 1);
    if (kind == 0) {
      const int64_t i = integer(-3, 3);
      return say("number", i), Scalar(i);
    }
    if (kind == 1) {
      const double x = real(-3, 3);
      return text_ << "number=" << x << "f ", Scalar(x);
    }
    const bool b = flag();
    return say("number", b ? "true" : "false"), Scalar(b);
  }
  double positive(double low = .25, double high = 3) {
    const double x = real(low, high);
    return say("number", x), x;
  }

  // ---- inputs
  /// A tensor; where its type is floating it most often requires grad and is an input of the
  /// gradients. `grad` false: never.
  Tensor tensor(const Sizes& sizes, ScalarType t, Values values = Values::Any, bool grad = true,
                bool overlaps = true) {
    if (floating(t) && coarseness(t) > coarseness(coarsest_)) coarsest_ = t;
    const Sizes strides = drawn_strides(sizes, overlaps);
    int64_t room = 1;
    for (size_t d = 0; d < sizes.size(); ++d)
      room = sizes[d] == 0 ? room : room + (sizes[d] - 1) * strides[d];
    buffers_.emplace_back(static_cast<size_t>(room) * bytes_of(t));
    char* data = buffers_.back().data();
    const int manner = static_cast<int>(integer(0, 19));
    const bool special = values == Values::Any && specials && manner == 19;
    int64_t rank_of_value = integer(0, 1000);
    each_offset(sizes, strides, [&](int64_t offset) {
      store(data + static_cast<size_t>(offset) * bytes_of(t), t,
            value(t, values, manner, special, rank_of_value++));
    });
    if (special) special_ = true;
    const bool needs = grad && floating(t) && flag(.8);
    text_ << dtype_name(t) << '[';
    for (size_t d = 0; d < sizes.size(); ++d) text_ << (d ? "," : "") << sizes[d];
    text_ << ']';
    if (strides != row_major(sizes)) {
      text_ << '(';
      for (size_t d = 0; d < sizes.size(); ++d) text_ << (d ? "," : "") << strides[d];
      text_ << ')';
    }
    text_ << (special ? "!" : "") << (needs ? "' " : " ");
    Tensor x = api::from_blob(data, sizes, strides, api::TensorOptions().dtype(t));
    if (strides == row_major(sizes)) x = x.clone();  // memory of the library's own
    if (needs) {
      x.requires_grad_();
      inputs_.push_back(x);
    }
    return x;
  }
  Tensor indices(const Sizes& sizes, int64_t low, int64_t high, ScalarType t = api::kLong) {
    std::vector<int64_t> v;
    int64_t n = 1;
    for (int64_t s : sizes) n *= s;
    for (int64_t i = 0; i < n; ++i) v.push_back(high < low ? 0 : integer(low, high));
    say("index", v);
    Tensor x = api::empty({n}, api::kLong);
    std::copy(v.begin(), v.end(), x.data_ptr<int64_t>());
    return x.view(sizes).to(t);
  }
  /// Adds a leaf that the case made itself to the inputs of the gradients.
  void adopt(const Tensor& leaf) { inputs_.push_back(leaf); }
  Tensor mask(const Sizes& sizes) { return tensor(sizes, api::kBool, Values::Finite, false); }
  /// A shape that broadcasts with `full`, seldom one that does not.
  Sizes broadcast(const Sizes& full) {
    Sizes s = full;
    const int64_t kind = integer(0, 9);
    if (kind < 5) return s;
    if (kind < 7 && !s.empty()) s.erase(s.begin(), s.begin() + integer(1, int64_t(s.size())));
    for (int64_t& e : s)
      if (flag(.3)) e = 1;
    if (flag(.04) && !s.empty()) s.back() += 1;
    return s;
  }
  /// Tensors for in-place writes: `view` is a copy of x, or a view of a larger tensor of copies. In
  /// the second case `base` is the larger tensor, and its history shows the write.
  struct Place {
    Tensor base, view;
  };
  Place place(const Tensor& x) {
    Place p;
    if (flag(.65)) {
      p.view = x.clone();
      return p;
    }
    say("view");
    const int64_t d = integer(0, x.dim()), i = integer(0, 1);
    p.base = api::stack({x, x}, d);
    p.view = p.base.select(d, i);
    return p;
  }
  void out(const Place& p) {
    out(p.view);
    if (p.base.defined()) out(p.base, "base");
  }

  // ---- results
  void out(const Tensor& t, const char* label = "result") { outputs_.push_back({t, label, false}); }
  /// And its strides.
  void out_view(const Tensor& t) { outputs_.push_back({t, "result", true}); }
  void out(const Tensors& ts) {
    outputs_.push_back({api::scalar_tensor(static_cast<int64_t>(ts.size())), "count", false});
    for (const Tensor& t : ts) out(t, "piece");
  }
  void out(const std::tuple<Tensor, Tensor>& both) {
    out(std::get<0>(both), "first");
    out(std::get<1>(both), "second");
  }
  void out_number(double x, const char* label = "number") {
    outputs_.push_back({api::scalar_tensor(x, api::kDouble), label, false});
  }
  /// This draw may show a deliberate difference: a name from known.h.
  void known(const char* name) { known_ += (known_.empty() ? "" : "|") + std::string(name); }

  std::string text() const { return text_.str(); }
  const Tensors& inputs() const { return inputs_; }
  bool special() const { return special_; }

  // ---- for cases to set before they draw
  bool specials = true;   // inf, NaN, huge and tiny numbers among inputs.
  bool second = true;     // gradients of gradients.
  bool strict = false;    // elements do not mix: compare each relative to itself
  bool gradients = true;  // any gradients
  double slack = 1;       // a factor on the tolerance, with a reason where it is set

  std::set<std::string>* offered = nullptr;  // takes the functions that the forms of a draw call

 private:
  friend struct Runner;
  struct Output {
    Tensor tensor;
    const char* label;
    bool with_strides;
  };

  static int coarseness(ScalarType t) {
    return t == api::kBFloat16 ? 3 : t == api::kHalf ? 2 : t == api::kFloat ? 1 : 0;
  }
  static Sizes row_major(const Sizes& sizes) {
    Sizes strides(sizes.size());
    int64_t n = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      strides[d] = n;
      n *= std::max<int64_t>(sizes[d], 1);
    }
    return strides;
  }
  /// Row-major most often; otherwise permuted, with gaps, or with repeated elements.
  Sizes drawn_strides(const Sizes& sizes, bool overlaps) {
    const int64_t kind = integer(0, overlaps ? 9 : 8);
    if (kind < 6 || sizes.empty()) return row_major(sizes);
    Sizes order;
    for (int64_t d = 0; d < static_cast<int64_t>(sizes.size()); ++d) order.push_back(d);
    if (kind < 9) shuffle(order);
    Sizes strides(sizes.size());
    int64_t n = kind == 8 ? 2 : 1;
    for (size_t k = order.size(); k-- > 0;) {
      const size_t d = static_cast<size_t>(order[k]);
      strides[d] = n;
      n *= std::max<int64_t>(sizes[d], 1) + (kind == 8 ? 1 : 0);
    }
    if (kind == 9) strides[static_cast<size_t>(integer(0, int64_t(sizes.size()) - 1))] = 0;
    return strides;
  }
  double value(ScalarType t, Values values, int manner, bool special, int64_t order) {
    if (t == api::kBool) return static_cast<double>(integer(0, 1));
    const bool is_unsigned = t == api::kByte;
    if (values == Values::Distinct) {
      // A permutation of 0..1023, in steps that 16-bit types hold.
      const int64_t k = order * 389 % 1024;
      return floating(t) ? static_cast<double>(k - 512) / 64 : static_cast<double>(k % 128);
    }
    if (!floating(t))
      return static_cast<double>(values == Values::Positive || values == Values::Unit
                                     ? integer(1, 6)
                                     : integer(is_unsigned ? 0 : -5, is_unsigned ? 9 : 5));
    const double u = source_.unit();
    if (values == Values::Unit) return .02 + .96 * u;
    if (values == Values::Positive) return .1 + 2.9 * u;
    if (special && flag(.3)) {
      const double list[] = {INFINITY, -INFINITY, NAN, 0., -0., 1e4, -1e4, 1e-4, 1, -1};
      return list[integer(0, 9)];
    }
    return manner >= 14 && manner < 19 ? std::round(u * 8 - 4) / 2 : u * 6 - 3;
  }

  compare::Source source_;
  std::ostringstream text_;
  std::deque<std::vector<char>> buffers_;
  Tensors inputs_;
  std::vector<Output> outputs_;
  std::string known_;
  bool special_ = false;
  ScalarType coarsest_ = api::kDouble;
};

}  // namespace
