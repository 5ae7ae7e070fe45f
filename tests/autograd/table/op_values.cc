// The operation table's values: references' arithmetic on indices, inputs, comparison.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autograd/autograd.h"
#include "tests/autograd/table/op_table.h"

namespace ramet {
namespace op_table {

// ---- float64 arrays
// -------------------------------------------------------------------------------------------------

int64_t count(const Index& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}
double Plain::at(const Index& i) const {
  int64_t at = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (i[d] < 0 || i[d] >= sizes[d]) throw std::out_of_range("a reference's index");
    at = at * sizes[d] + i[d];
  }
  return v[static_cast<size_t>(at)];
}
double Plain::broadcast(const Index& i) const {
  Index own(i.end() - rank(), i.end());
  for (size_t d = 0; d < own.size(); ++d)
    if (sizes[d] == 1) own[d] = 0;
  return at(own);
}
Plain made(const Index& sizes, const std::function<double(const Index&)>& f) {
  Plain out{sizes, {}};
  Index i(sizes.size(), 0);
  for (int64_t n = count(sizes); n > 0; --n) {
    out.v.push_back(f(i));
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++i[d] < sizes[d]) break;
      i[d] = 0;
    }
  }
  return out;
}
Index common(const Index& a, const Index& b) {
  if (a.size() < b.size()) return common(b, a);
  Index out = a;
  const size_t missing = a.size() - b.size();
  for (size_t d = 0; d < b.size(); ++d)
    if (b[d] != 1) out[missing + d] = b[d];
  return out;
}
Plain along(const Plain& x, int64_t d, Line way,
            const std::function<std::vector<double>(const std::vector<double>&)>& f) {
  if (x.rank() == 0) return Plain{{}, f(x.v)};
  const size_t dim = static_cast<size_t>(d < 0 ? d + x.rank() : d);
  Index rest = x.sizes;
  rest[dim] = 1;
  int64_t length = 1;
  std::vector<std::vector<double>> lines;
  made(rest, [&](Index i) {
    std::vector<double> line;
    for (i[dim] = 0; i[dim] < x.sizes[dim]; ++i[dim]) line.push_back(x.at(i));
    lines.push_back(f(line));
    length = static_cast<int64_t>(lines.back().size());
    return 0.0;
  });
  if (lines.empty() && way == Line::kResize) length = x.sizes[dim];
  Index full = rest;
  full[dim] = length;
  size_t next = 0;
  Plain out = made(full, [&](const Index& i) {
    size_t line = 0;
    for (size_t k = 0; k < rest.size(); ++k)
      if (k != dim) line = line * static_cast<size_t>(rest[k]) + static_cast<size_t>(i[k]);
    ++next;
    return lines[line][static_cast<size_t>(i[dim])];
  });
  if (way == Line::kDrop) out.sizes.erase(out.sizes.begin() + static_cast<int64_t>(dim));
  return out;
}
Reference as(Index (*sizes)(const Plain&)) {
  return [sizes](P x) { return Plain{sizes(x[0]), x[0].v}; };
}
Reference moved(Index (*sizes)(const Plain&), Index (*from)(const Index& i, const Plain& x)) {
  return [=](P x) {
    return made(sizes(x[0]), [&](const Index& i) { return x[0].at(from(i, x[0])); });
  };
}
Samples shapes(const std::vector<Index>& sizes, double lo, double hi) {
  Samples out;
  for (const Index& s : sizes) out.push_back({real(s, lo, hi)});
  return out;
}

// ---- rows
// -----------------------------------------------------------------------------------------------------------

Row& Table::row(const char* name, uint16_t dtypes, Samples samples, Calls calls,
                Reference reference) {
  Row r;
  r.name = name;
  r.dtypes = dtypes;
  r.samples = std::move(samples);
  r.call = std::move(calls.call);
  r.in_place = std::move(calls.in_place);
  r.out = std::move(calls.out);
  r.reference = std::move(reference);
  rows_.push_back(std::move(r));
  return rows_.back();
}
Row& Table::pointwise(const char* name, uint16_t dtypes, Sample sample, Calls calls, Point point) {
  // Empty, 0-dim, of extent 1; and each input in the place of each other in a broadcast.
  Samples samples = {sample};
  const std::vector<Index> single = {{}, {0}, {3, 0, 2}, {1, 1}}, mixed = {{2, 1, 3}, {4, 1}, {3}};
  for (const Index& sizes : single) {
    samples.push_back(sample);
    for (Input& in : samples.back()) in.sizes = sizes;
  }
  for (size_t shift = 0; sample.size() > 1 && shift < sample.size(); ++shift) {
    samples.push_back(sample);
    for (size_t i = 0; i < sample.size(); ++i)
      samples.back()[i].sizes = mixed[(i + shift) % mixed.size()];
  }
  Row& r = row(name, dtypes, std::move(samples), std::move(calls), nullptr);
  r.point = std::move(point);
  r.large = std::move(sample);
  for (Input& in : r.large) in.sizes = {97, 131};
  r.slices.assign(r.large.size(), 0);
  return r;
}
Row& Table::unary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
                  double (*point)(double)) {
  return unary(name, dtypes, lo, hi, std::move(calls), Point([point](D x) { return point(x[0]); }));
}
Row& Table::unary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
                  Point point) {
  return pointwise(name, dtypes, {real({3, 4}, lo, hi)}, std::move(calls), std::move(point));
}
Row& Table::binary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
                   double (*point)(double, double)) {
  return binary(name, dtypes, lo, hi, std::move(calls),
                Point([point](D x) { return point(x[0], x[1]); }));
}
Row& Table::binary(const char* name, uint16_t dtypes, double lo, double hi, Calls calls,
                   Point point) {
  return pointwise(name, dtypes, {real({2, 3}, lo, hi), real({3}, lo, hi)}, std::move(calls),
                   std::move(point));
}
Row& Table::operator[](const std::string& name) {
  for (Row& row : rows_)
    if (row.name == name) return row;
  throw std::out_of_range(name);
}
Row& Row::big(Sample inputs, uint32_t batch) {
  large = std::move(inputs);
  slices.clear();
  for (size_t k = 0; k < large.size() && batch != 0; ++k) slices.push_back(batch >> k & 1 ? 0 : -1);
  return *this;
}
Row& Row::alike() {
  Samples kept;
  for (Sample& sample : samples) {
    bool same = true;
    for (const Input& in : sample) same &= in.sizes == sample.front().sizes;
    if (!same && !kept.empty()) continue;
    for (Input& in : sample) in.sizes = sample.front().sizes;
    kept.push_back(sample);
  }
  samples = std::move(kept);
  return *this;
}
Plain expected(const Row& row, P in) {
  if (!row.point) return row.reference(in);
  Index sizes;
  for (const Plain& p : in) sizes = common(sizes, p.sizes);
  std::vector<double> arguments(in.size());
  return made(sizes, [&](const Index& i) {
    for (size_t k = 0; k < in.size(); ++k) arguments[k] = in[k].broadcast(i);
    return row.point(arguments.data());
  });
}

// ---- inputs
// ---------------------------------------------------------------------------------------------------------

namespace {

// A fixed sequence in [0, 1).
double unit(uint64_t i, uint64_t seed) {
  uint64_t h = (i + 1) * 0x9E3779B97F4A7C15u + (seed + 1) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 29)) * 0x94D049BB133111EBu;
  return static_cast<double>(h >> 11) * 0x1p-53;
}
double value_of(const Input& in, ScalarType dtype, double u, uint64_t at) {
  if (in.kind == Kind::kDistinct) return static_cast<double>((at * 3 + 1) % uint64_t(in.hi));
  if (in.kind == Kind::kMask) return u < 0.5;
  if (in.kind == Kind::kIndex) return std::floor(in.lo + u * (in.hi - in.lo));
  if (is_floating(dtype)) return in.lo + u * (in.hi - in.lo);
  if (dtype == kBool) return in.lo > 0 || u < 0.5;
  const double lo = std::max(std::ceil(in.lo), is_unsigned(dtype) ? 0.0 : -128.0);
  return lo + std::floor(u * std::max(1.0, std::floor(in.hi) - lo + 1));
}

// Calls f(pointer to the elements, as their C++ type).
template <class F> void with_elements(const Tensor& t, F&& f) {
  switch (t.scalar_type()) {
    case kDouble: return f(static_cast<double*>(t.ptr()));
    case kFloat: return f(static_cast<float*>(t.ptr()));
    case kHalf: return f(static_cast<Half*>(t.ptr()));
    case kBFloat16: return f(static_cast<BFloat16*>(t.ptr()));
    case kLong: return f(static_cast<int64_t*>(t.ptr()));
    case kInt: return f(static_cast<int32_t*>(t.ptr()));
    case kShort: return f(static_cast<int16_t*>(t.ptr()));
    case kUInt16: return f(static_cast<uint16_t*>(t.ptr()));
    case kUInt32: return f(static_cast<uint32_t*>(t.ptr()));
    case kChar: return f(static_cast<int8_t*>(t.ptr()));
    case kByte: return f(static_cast<uint8_t*>(t.ptr()));
    case kBool: return f(static_cast<bool*>(t.ptr()));
    default: FAIL() << "dtype";
  }
}
// A GPU's tensor as the host sees it.
Tensor on_host(const Tensor& t) { return t.is_cpu() ? t : t.detach().to(Device(kCPU, 0)); }
// What an integer type makes of a whole number: its lowest bits.
template <class T> double stored(double v) {
  if constexpr (std::is_same_v<T, bool>) return v != 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<double>(static_cast<T>(static_cast<int64_t>(v)));
  else return v;
}

}  // namespace

ScalarType dtype_of(Kind kind, ScalarType real) {
  return kind == Kind::kReal ? real : kind == Kind::kMask ? kBool : kLong;
}
Tensor tensor_of(const Plain& p, ScalarType dtype) {
  Tensor t(TensorBase::empty(IntArrayRef(p.sizes), dtype, Device(kCPU, 0)));
  with_elements(t, [&](auto* e) {
    using T = std::decay_t<decltype(*e)>;
    for (size_t i = 0; i < p.v.size(); ++i) {
      if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) e[i] = T(static_cast<float>(p.v[i]));
      else e[i] = static_cast<T>(p.v[i]);
    }
  });
  return t;
}
Plain plain_of(const Tensor& any) {
  const Tensor t = on_host(any);
  Plain out;
  const Index strides = t.strides().vec();
  with_elements(t, [&](auto* e) {
    out = made(t.sizes().vec(), [&](const Index& i) {
      int64_t at = 0;
      for (size_t d = 0; d < i.size(); ++d) at += i[d] * strides[d];
      return static_cast<double>(e[at]);
    });
  });
  return out;
}
Operands operands(const Sample& sample, ScalarType dtype, uint64_t seed) {
  Operands o;
  for (size_t k = 0; k < sample.size(); ++k) {
    const Input& in = sample[k];
    const ScalarType own = dtype_of(in.kind, dtype);
    uint64_t n = 0;
    const Plain wanted = made(in.sizes, [&](const Index&) {
      const uint64_t at = n++;
      return value_of(in, own, unit(at, seed + k), at);
    });
    o.tensors.push_back(tensor_of(wanted, own));
    o.plain.push_back(plain_of(o.tensors.back()));
  }
  return o;
}

// ---- comparison
// -----------------------------------------------------------------------------------------------------

void expect_close(const Tensor& got, const Plain& want, double slack) {
  ASSERT_EQ(got.sizes().vec(), want.sizes);
  const ScalarType dtype = got.scalar_type();
  // Half a unit in the last place of the 16-bit types, which are rounded once.
  const double tolerance = slack * (dtype == kDouble  ? 1e-12
                                    : dtype == kFloat ? 2e-6
                                    : dtype == kHalf  ? 5e-4
                                                      : 4e-3);
  const Tensor near = on_host(got);
  const Plain g = plain_of(near);
  with_elements(near, [&](auto* e) {
    using T = std::decay_t<decltype(*e)>;
    for (size_t i = 0; i < g.v.size() && !::testing::Test::HasFailure(); ++i) {
      const double w = stored<T>(want.v[i]);
      if (!is_floating(dtype)) EXPECT_EQ(g.v[i], w) << "element " << i;
      else if (std::isnan(w)) EXPECT_TRUE(std::isnan(g.v[i])) << "element " << i << ": " << g.v[i];
      else if (std::isinf(w)) EXPECT_EQ(g.v[i], w) << "element " << i;
      else EXPECT_NEAR(g.v[i], w, tolerance * std::max(1.0, std::fabs(w))) << "element " << i;
    }
  });
}
std::string text_of(const Sample& sample) {
  std::string out;
  for (const Input& in : sample) {
    out += "[";
    for (int64_t s : in.sizes) out += " " + std::to_string(s);
    out += " ]";
  }
  return out;
}
bool has_real(const Row& row) {
  for (const Input& in : row.samples.front())
    if (in.kind == Kind::kReal) return true;
  return false;
}
std::vector<ScalarType> compared_types(const Row& row) {
  std::vector<ScalarType> types = {row.own_type()};
  for (ScalarType t : {kDouble, kBFloat16})
    if (has_real(row) && row.takes(t)) types.push_back(t);
  return types;
}

void require_grad(V tensors) {
  for (const Tensor& t : tensors)
    if (is_floating(t.scalar_type())) t.requires_grad_();
}
Tensor seed_like(const Tensor& y) {
  return operands({real(y.sizes().vec(), 0.5, 1.5)}, y.scalar_type(), 40).tensors[0].to(y.device());
}
std::vector<Tensor> gradients(const Call& call, V tensors) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : tensors) leaves.push_back(t.clone());
  require_grad(leaves);
  const Tensor y = call(leaves);
  if (y.requires_grad()) y.backward(seed_like(y));
  std::vector<Tensor> out;
  for (const Tensor& leaf : leaves) out.push_back(leaf.grad());
  return out;
}
std::vector<Tensor> second_gradients(const Call& call, V tensors) {
  return gradients(
      [&call](V leaves) {
        std::vector<Tensor> inputs;
        for (const Tensor& t : leaves)
          if (t.requires_grad()) inputs.push_back(t);
        const Tensor y = call(leaves);
        Tensor sum;
        for (const Tensor& g : autograd::grad({y}, inputs, {seed_like(y)}, true, true, true)) {
          if (!g.defined()) continue;
          const Tensor part = g.mul(seed_like(g)).sum();
          sum = sum.defined() ? sum.add(part) : part;
        }
        return sum.defined() ? sum : y.detach().sum();
      },
      tensors);
}
std::string bits(const Tensor& t) {
  const Tensor c = on_host(t).contiguous();
  return std::string(static_cast<const char*>(c.data_ptr()),
                     static_cast<size_t>(c.numel()) * c.element_size());
}
Tensor relaid(const Tensor& t, int way) {
  const Index sizes = t.sizes().vec();
  // A 0-dim tensor can only have an offset.
  Index room = sizes.empty() ? Index{1} : sizes;
  if (way == 0) std::reverse(room.begin(), room.end());
  else if (way == 1) room.back() *= 2;
  else room.back() += 3;
  Tensor memory(TensorBase::empty(IntArrayRef(room), t.scalar_type(), t.device()));
  memory.zero_();
  Tensor view = memory;
  if (way == 0) {
    Index order;
    for (size_t d = room.size(); d-- > 0;) order.push_back(static_cast<int64_t>(d));
    view = memory.permute(IntArrayRef(order));
  } else {
    view = way == 1 ? memory.slice(-1, 0, std::nullopt, 2) : memory.narrow(-1, 1, room.back() - 3);
  }
  if (sizes.empty()) view = view.select(0, 0);
  view.copy_(t);
  return view;
}

}  // namespace op_table
}  // namespace ramet
