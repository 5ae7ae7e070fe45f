// Every pointwise kernel against a reference in long double (or exact integers), and what holds for
// all of them: any length at any offset, any type, any strides, any number of threads, scalars,
// results in place.
#include "kernels/pointwise.h"

#include <map>

#include "kernels/coalesce.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using raw::Buffer;
using raw::Values;
using R = long double;
bool rounds_to_float = false;  // the references that need the rounded quotient ask
R rounded(R x) { return rounds_to_float ? static_cast<float>(x) : static_cast<double>(x); }

struct Op {
  const char* name;
  const Kernel<PointwiseArgs>* dense;
  const Kernel<PointwiseStridedArgs>* strided;
  int operands, types;
  bool truth;
};
const Op kOps[] = {
#define RAMET_X(name, Struct, operands, types, result) \
  {#name,    &name, &name##_strided,                   \
   operands, types, PointwiseResult::result == PointwiseResult::kTruth},
    RAMET_POINTWISE_OPS(RAMET_X)
#undef RAMET_X
};
const Op& op_named(const std::string& name) {
  for (const Op& op : kOps)
    if (name == op.name) return op;
  ADD_FAILURE() << "no operation " << name;
  return kOps[0];
}

// ---- references ----

struct Reference {
  std::function<R(R a, R b, R c, R s, R t)> f;
  double ulps = 0;  // allowed error in units of the last place of the result
  // or in units of the last place of the largest operand (formulas with cancellation)
  double scaled = 0;
  double s = 1, t = 0;
  // 1 / (1 + infinity) is 0 where the exact value is denormal, as in LibTorch
  bool underflows = false;
};
R sigmoid_of(R x) { return 1 / (1 + std::exp(-x)); }
R phi(R x) { return std::exp(-x * x / 2) * 0.398942280401432677939946L; }
R cdf(R x) { return std::erfc(-x * 0.707106781186547524400844L) / 2; }
R gelu_u(R x) { return 0.797884560802865355879892L * (x + 0.044715L * x * x * x); }
R larger(R a, R b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
R smaller(R a, R b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }
R python_mod(R a, R b) {
  const R m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}
R python_floor_div(R a, R b) {
  if (b == 0) return a / b;
  if (std::isinf(b) && std::isfinite(a)) return a != 0 && (a < 0) != (b < 0) ? -1 : 0;
  if (std::isinf(a)) return NAN;
  return std::rint((a - python_mod(a, b)) / b);
}
const std::map<std::string, Reference>& references(){
#define F [](R a, R b, R c, R s, R t) -> R { (void)a, (void)b, (void)c, (void)s, (void)t;
    // clang-format off
  static const std::map<std::string, Reference> table = {
      {"add", {F return a + s * b; }, 0.5, 1.0, -1.5}},
      {"sub", {F return a - s * b; }, 0.5, 1.0, 0.75}},
      {"mul", {F return a * b; }, 0.5}},
      {"div", {F return a / b; }, 0.5}},
      {"div_trunc", {F return std::trunc(rounded(a / b)); }, 0.5}},
      {"div_floor", {F return python_floor_div(a, b); }, 2.5}},
      {"fmod", {F return std::fmod(a, b); }, 0}},
      {"remainder", {F return python_mod(a, b); }, 0.5, 0.5}},
      {"pow", {F return std::pow(a, b); }, 1}},
      {"maximum", {F return larger(a, b); }}},
      {"minimum", {F return smaller(a, b); }}},
      {"squared_difference", {F return (a - b) * (a - b); }, 2.5}},
      {"scaled_product", {F return a * (b * s); }, 0.5, 0, 2}},
      {"neg", {F return -a; }}},
      {"abs", {F return std::fabs(a); }}},
      {"sign", {F return (a > 0) - (a < 0); }}},
      {"square", {F return a * a; }, 0.5}},
      {"cube", {F return a * a * a; }, 1.5}},
      {"exp", {F return std::exp(a); }, 1.25}},
      {"expm1", {F return std::expm1(a); }, 2}},
      {"log", {F return std::log(a); }, 1.2}},
      {"log1p", {F return std::log1p(a); }, 2}},
      {"log2", {F return std::log2(a); }, 2}},
      {"sqrt", {F return std::sqrt(a); }, 0.5}},
      {"rsqrt", {F return 1 / std::sqrt(a); }, 1.5}},
      {"reciprocal", {F return 1 / a; }, 0.5}},
      {"sin", {F return std::sin(a); }, 1.5}},
      {"cos", {F return std::cos(a); }, 1.5}},
      {"tanh", {F return std::tanh(a); }, 1.5}},
      {"sigmoid", {F return sigmoid_of(a); }, 2.5, 0, 1, 0, true}},
      {"erf", {F return std::erf(a); }, 1.25}},
      {"floor", {F return std::floor(a); }}},
      {"ceil", {F return std::ceil(a); }}},
      {"round", {F return std::nearbyint(a); }}},
      {"trunc", {F return std::trunc(a); }}},
      {"relu", {F return std::isnan(a) ? a : a > 0 ? a : 0; }}},
      {"leaky_relu", {F return a > 0 ? a : a * s; }, 0.5, 0, 0.25}},
      {"gelu", {F return a == -INFINITY ? NAN : a * cdf(a); }, 2.5, 1}},
      {"gelu_tanh", {F return a == -INFINITY ? NAN : a * (1 + std::tanh(gelu_u(a))) / 2; }, 4, 2}},
      {"softplus", {F return a * s > t ? a : std::log1p(std::exp(a * s)) / s; }, 3, 0, 2, 20}},
      {"silu", {F return a * sigmoid_of(a); }, 3, 0, 1, 0, true}},
      {"tanh_backward", {F return a * (1 - b * b); }, 3, 1}},
      {"sigmoid_backward", {F return a * (1 - b) * b; }, 3}},
      {"threshold_backward", {F return b <= s ? 0 : a; }, 0, 0, 0.5}},
      {"leaky_relu_backward", {F return b > 0 ? a : a * s; }, 0.5, 0, 0.25}},
      {"gelu_backward", {F return std::isinf(b) ? NAN : a * (cdf(b) + b * phi(b)); }, 6, 3}},
      {"gelu_tanh_backward",
       {F const R th = std::tanh(gelu_u(b));
          if (std::isinf(b)) return NAN;
          const R slope = 0.797884560802865355879892L * (1 + 3 * 0.044715L * b * b);
          return a * ((1 + th) / 2 + b * (1 - th * th) * slope / 2); }, 8, 40}},
      {"softplus_backward", {F return b * s > t ? a : a * sigmoid_of(b * s); }, 3, 0, 2, 20, true}},
      {"silu_backward", {F const R g = sigmoid_of(b);
                         return a * (g * (1 + b * (1 - g))); }, 8, 4, 1, 0, true}},
      {"clamp", {F return smaller(larger(a, s), t); }, 0, 0, -0.5, 1.25}},
      {"clamp_backward", {F return b > s && b < t ? a : 0; }, 0, 0, -0.5, 1.25}},
      {"lerp", {F return std::fabs(c) < 0.5L ? a + c * (b - a) : b - (b - a) * (1 - c); }, 2, 4}},
      {"addcmul", {F return a + s * b * c; }, 1, 1, 0.5}},
      {"addcdiv", {F return a + s * b / c; }, 2, 1, 0.5}},
      {"mse_backward", {F return s * (b - c) * a; }, 2, 0, 0.5}},
      {"where", {F return a != 0 ? b : c; }}},
      {"clamp_tensor", {F return smaller(larger(a, b), c); }}},
      {"eq", {F return a == b; }}},
      {"ne", {F return a != b; }}},
      {"lt", {F return a < b; }}},
      {"le", {F return a <= b; }}},
      {"gt", {F return a > b; }}},
      {"ge", {F return a >= b; }}},
      {"logical_and", {F return a != 0 && b != 0; }}},
      {"logical_or", {F return a != 0 || b != 0; }}},
      {"logical_xor", {F return (a != 0) != (b != 0); }}},
      {"logical_not", {F return a == 0; }}},
      {"isnan", {F return std::isnan(a); }}},
      {"isinf", {F return std::isinf(a); }}},
      {"isfinite", {F return std::isfinite(a); }}},
      // Integers only: values below 2^53 are exact here.
      {"bitwise_and", {F return static_cast<R>(static_cast<int64_t>(a) & static_cast<int64_t>(b)); }}},
      {"bitwise_or", {F return static_cast<R>(static_cast<int64_t>(a) | static_cast<int64_t>(b)); }}},
      {"bitwise_xor", {F return static_cast<R>(static_cast<int64_t>(a) ^ static_cast<int64_t>(b)); }}},
      {"bitwise_not", {F return static_cast<R>(~static_cast<int64_t>(a)); }}},
  };
// clang-format on
#undef F
return table;
}

constexpr double kSpecial[] = {
    0.0,    -0.0,           1,     -1,    0.5,      -0.5,     2.5,       -2.5, 3,    -7,
    1e-3,   20.5,           -20.5, 88.5,  -90,      100,      -104,      1e5,  -3e5, 1e-40,
    -1e-40, 1.17549435e-38, 3e38,  -3e38, 16777217, INFINITY, -INFINITY, NAN};

PointwiseArgs args_for(const Op& op, const Buffer& a, const Buffer& b, const Buffer& c, Buffer& out,
                       ScalarType compute) {
  PointwiseArgs k{};
  k.a = a.data(), k.b = op.operands > 1 ? b.data() : nullptr,
  k.c = op.operands > 2 ? c.data() : nullptr;
  k.a_type = a.dtype, k.b_type = b.dtype, k.c_type = c.dtype, k.out_type = out.dtype;
  k.out = out.data(), k.n = out.size, k.compute = compute;
  const Reference& ref = references().at(op.name);
  if (compute == kLong) k.s.i = static_cast<int64_t>(ref.s), k.t.i = static_cast<int64_t>(ref.t);
  else k.s.d = ref.s, k.t.d = ref.t;
  return k;
}
void call(const Op& op, const Buffer& a, const Buffer& b, const Buffer& c, Buffer& out,
          ScalarType compute) {
  (*op.dense)(raw::kCpuStream, args_for(op, a, b, c, out, compute));
}

template <class T> R unit_in_last_place(T x) {
  x = std::fabs(x);
  if (!std::isfinite(x)) x = std::numeric_limits<T>::max();
  return static_cast<R>(std::nextafter(x, std::numeric_limits<T>::infinity())) ==
                 std::numeric_limits<R>::infinity()
             ? static_cast<R>(x) - static_cast<R>(std::nextafter(x, T(0)))
             : static_cast<R>(std::nextafter(x, std::numeric_limits<T>::infinity())) -
                   static_cast<R>(x);
}

// Operands: all combinations of special values, then random ones over many magnitudes.
void fill_operands(Buffer& a, Buffer& b, Buffer& c) {
  Values v(17);
  const int64_t n = std::size(kSpecial);
  for (int64_t i = 0; i < a.size; ++i) {
    if (i < n * n) {
      a.set(i, kSpecial[i % n]), b.set(i, kSpecial[i / n]), c.set(i, kSpecial[(i * 7 + i / n) % n]);
    } else {
      auto random = [&] { return v.signed_unit() * std::exp(12 * v.signed_unit()); };
      a.set(i, random()), b.set(i, random()), c.set(i, random());
    }
  }
}

template <class T> void against_reference(ScalarType dtype) {
  rounds_to_float = sizeof(T) == 4;
  for (const Op& op : kOps) {
    if (!(op.types & kOnFloating)) continue;
    SCOPED_TRACE(op.name);
    ASSERT_TRUE(references().count(op.name)) << "an operation without a reference";
    const Reference& ref = references().at(op.name);
    Buffer a(3000, dtype), b(3000, dtype), c(3000, dtype), out(3000, op.truth ? kBool : dtype);
    fill_operands(a, b, c);
    call(op, a, b, c, out, dtype);
    int bad = 0;
    for (int64_t i = 0; i < out.size && bad < 5; ++i) {
      const R exact =
          ref.f(a[i], op.operands > 1 ? b[i] : 0, op.operands > 2 ? c[i] : 0, ref.s, ref.t);
      const T want = static_cast<T>(exact), got = static_cast<T>(out[i]);
      if (std::isnan(want) ? std::isnan(got) : got == want) continue;
      R scale = std::fabs(static_cast<R>(a[i]));
      if (op.operands > 1) scale = std::fmax(scale, std::fabs(static_cast<R>(b[i])));
      if (op.operands > 2) scale = std::fmax(scale, std::fabs(static_cast<R>(c[i])));
      // the C library's double functions; baseline has no fma
      const double grace = sizeof(T) == 8 ? 3 : 1.16;
      const R allowed =
          grace * (static_cast<R>(ref.ulps) * unit_in_last_place(want) +
                   static_cast<R>(ref.scaled) * unit_in_last_place(static_cast<T>(scale)));
      if (std::fabs(static_cast<R>(got) - exact) <= allowed) continue;
      if (ref.underflows && got == 0 &&
          std::fabs(exact) <=
              4 * static_cast<R>(std::numeric_limits<T>::min()) * std::fmax(scale, R(1)))
        continue;
      // Beyond the range of T on the way or at the end (an infinity or a NaN that the exact value
      // does not have).
      const R huge = std::sqrt(static_cast<R>(std::numeric_limits<T>::max()));
      if (!std::isfinite(got) && (std::fabs(exact) > huge || scale > huge)) continue;
      if (std::isnan(want) && scale > huge) continue;
      ++bad;
      ADD_FAILURE() << "a " << a[i] << ", b " << b[i] << ", c " << c[i] << ": got " << got
                    << ", expected " << want;
    }
  }
}

TEST(Pointwise, EveryOperationAgainstItsReferenceInFloat) {
  raw::for_each_variant([](Variant) { against_reference<float>(kFloat); });
}
TEST(Pointwise, EveryOperationAgainstItsReferenceInDouble) {
  raw::for_each_variant([](Variant) { against_reference<double>(kDouble); });
}
TEST(Pointwise, EveryIntegerOperationAgainstItsReference) {
  raw::for_each_variant([](Variant) {
    for (const Op& op : kOps) {
      if (!(op.types & kOnInteger)) continue;
      SCOPED_TRACE(op.name);
      const Reference& ref = references().at(op.name);
      Buffer a(500, kLong), b(500, kLong), c(500, kLong), out(500, op.truth ? kBool : kLong);
      Values v(5);
      for (int64_t i = 0; i < 500; ++i) {
        a.set(i, static_cast<double>(v.below(41) - 20)),
            c.set(i, static_cast<double>(v.below(41) - 20));
        b.set(i, static_cast<double>(v.below(8) + (i % 2 ? 1 : -8)));
      }
      call(op, a, b, c, out, kLong);
      for (int64_t i = 0; i < 500; ++i) {
        const R s = std::trunc(static_cast<R>(ref.s)), t = std::trunc(static_cast<R>(ref.t));
        R want = ref.f(a[i], b[i], c[i], s, t);
        if (std::string(op.name) == "pow") want = std::trunc(a[i] == 0 && b[i] < 0 ? 0 : want);
        ASSERT_EQ(out[i], static_cast<double>(want))
            << "a " << a[i] << ", b " << b[i] << ", c " << c[i];
      }
    }
  });
}

TEST(Pointwise, FloatFunctionsOnADenseGrid) {  // every 9973rd float of the whole range
  const struct {
    const char* name;
    double ulps;
  } kCases[] = {{"exp", 1.25}, {"expm1", 2},     {"log", 1.2},  {"log1p", 2},
                {"log2", 2},   {"tanh", 1.5},    {"erf", 1.25}, {"sin", 1.5},
                {"cos", 1.5},  {"sigmoid", 2.5}, {"rsqrt", 1.5}};
  Buffer x((int64_t{1} << 32) / 9973, kFloat), y(x.size, kFloat);
  for (int64_t i = 0; i < x.size; ++i) {
    const auto u = static_cast<uint32_t>(i * 9973);
    std::memcpy(x.as<float>() + i, &u, 4);
  }
  raw::for_each_variant([&](Variant) {
    for (const auto& k : kCases) {
      SCOPED_TRACE(k.name);
      call(op_named(k.name), x, x, x, y, kFloat);
      R worst = 0;
      float at = 0;
      for (int64_t i = 0; i < x.size; ++i) {
        const float in = x.as<float>()[i], got = y.as<float>()[i];
        const double exact = static_cast<double>(references().at(k.name).f(in, 0, 0, 1, 0));
        const float want = static_cast<float>(exact);
        if (std::isnan(want) ? std::isnan(got) : got == want) continue;
        // 1 / infinity: 0 where the exact value is denormal
        if (std::string(k.name) == "sigmoid" && in < -88) continue;
        const R error =
            std::isfinite(got) ? std::fabs(got - exact) / unit_in_last_place(want) : 1e9;
        if (!(error <= worst)) worst = error, at = in;
      }
      EXPECT_LE(worst, k.ulps * 1.16) << "at " << at;
    }
  });
}

// ---- what holds for all ----

TEST(Pointwise, AnyLengthAtAnyOffsetGivesTheLongRunsBits) {
  raw::for_each_variant([](Variant) {
    for (const Op& op : kOps)
      for (ScalarType compute : {kFloat, kDouble, kLong}) {
        if (!(op.types & (compute == kLong ? kOnInteger : kOnFloating))) continue;
        SCOPED_TRACE(op.name);
        Buffer a(96, compute), b(96, compute), c(96, compute), all(96, op.truth ? kBool : compute);
        Values v(3);
        a.fill(v, 3), b.fill(v, 3), c.fill(v, 3);
        for (int64_t i = 0; i < 96; ++i)
          if (b[i] == 0) b.set(i, 1);
        call(op, a, b, c, all, compute);
        const size_t item = item_size(compute), out_item = item_size(all.dtype);
        for (int64_t offset = 0; offset < 16; ++offset)
          for (int64_t n = 0; n <= 67; n += compute == kFloat ? 1 : 5) {
            Buffer part(n, all.dtype);
            PointwiseArgs k = args_for(op, a, b, c, part, compute);
            k.a = static_cast<const char*>(a.data()) + static_cast<size_t>(offset) * item;
            if (k.b) k.b = static_cast<const char*>(b.data()) + static_cast<size_t>(offset) * item;
            if (k.c) k.c = static_cast<const char*>(c.data()) + static_cast<size_t>(offset) * item;
            (*op.dense)(raw::kCpuStream, k);
            ASSERT_TRUE(part.guards_intact());
            ASSERT_EQ(
                std::memcmp(part.data(),
                            static_cast<char*>(all.data()) + static_cast<size_t>(offset) * out_item,
                            static_cast<size_t>(n) * out_item),
                0)
                << "offset " << offset << ", length " << n;
          }
      }
  });
}

TEST(Pointwise, SameBitsForAnyThreadsAndFromV3OnForAnyVariant) {
  for (const Op& op : kOps) {
    SCOPED_TRACE(op.name);
    const ScalarType compute = op.types & kOnFloating ? kFloat : kLong;
    Buffer a(40001, compute), b(40001, compute), c(40001, compute),
        out(40001, op.truth ? kBool : compute);
    Values v(11);
    a.fill(v, 5), b.fill(v, 5), c.fill(v, 5);
    raw::expect_same_bits(out, [&](Buffer& y) { call(op, a, b, c, y, compute); });
  }
}

TEST(Pointwise, ScalarsOnEitherSide) {
  raw::for_each_variant([](Variant) {
    for (const char* name : {"sub", "div", "pow", "lt", "maximum", "remainder"})
      for (ScalarType compute : {kFloat, kDouble, kLong})
        for (int64_t n : {1, 16, 37, 700, 20000}) {
          const Op& op = op_named(name);
          if (!(op.types & (compute == kLong ? kOnInteger : kOnFloating))) continue;
          Buffer x(n, compute), scalar(n, compute), out(n, op.truth ? kBool : compute), want = out;
          Values v(23);
          x.fill(v, 4);
          for (int64_t i = 0; i < n; ++i)
            if (x[i] == 0) x.set(i, 2);
          scalar.fill(3);
          for (int side = 0; side < 2; ++side) {
            PointwiseArgs k = side == 0 ? args_for(op, scalar, x, x, want, compute)
                                        : args_for(op, x, scalar, x, want, compute);
            if (compute == kLong) k.t.i = 3;
            else k.t.d = 3;
            if (compute != kLong) k.s.d = 1;
            else k.s.i = 1;
            (*op.dense)(raw::kCpuStream, k);
            (side == 0 ? k.a : k.b) = nullptr;
            k.out = out.data();
            (*op.dense)(raw::kCpuStream, k);
            EXPECT_TRUE(out.same_bits(want)) << name << " side " << side << " length " << n;
            EXPECT_TRUE(out.guards_intact());
          }
        }
  });
}

TEST(Pointwise, EveryTypeInAndOut) {
  constexpr ScalarType kAll[] = {kBool, kByte, kChar,     kShort, kInt,
                                 kLong, kHalf, kBFloat16, kFloat, kDouble};
  raw::for_each_variant([&](Variant) {
    for (ScalarType ta : kAll)
      for (ScalarType tb : kAll)
        for (const char* name : {"add", "gt", "where"}) {
          const ScalarType both = promote_types(ta, tb), compute = compute_type(both);
          const Op& op = op_named(name);
          const ScalarType result = op.truth ? kBool : both;
          Buffer a(700, ta), b(700, tb), out(700, result);
          Values v(static_cast<uint64_t>(ta) * 16 + static_cast<uint64_t>(tb));
          a.fill(v, 4), b.fill(v, 4);
          PointwiseArgs k = args_for(op, a, b, a, out, compute);
          if (compute == kLong) k.s.i = 2;
          else k.s.d = 2;
          (*op.dense)(raw::kCpuStream, k);
          Buffer want(700, result);
          for (int64_t i = 0; i < 700; ++i) {
            const double y = op.truth         ? a[i] > b[i]
                             : name[0] == 'w' ? (a[i] != 0 ? b[i] : a[i])
                             : compute == kFloat
                                 ? static_cast<float>(a[i]) + 2 * static_cast<float>(b[i])
                                 : a[i] + 2 * b[i];
            if (is_integral(result, false))
              want.set(i, static_cast<double>(static_cast<int64_t>(y)));
            else want.set(i, y);
          }
          EXPECT_TRUE(out.same_bits(want))
              << name << " " << short_name_of(ta) << " " << short_name_of(tb);
        }
    // A truth value into a float (x.eq_(y)), and a float result into an integer.
    Buffer a(50, kFloat), b(50, kFloat), out(50, kHalf), whole(50, kByte);
    for (int64_t i = 0; i < 50; ++i)
      a.set(i, static_cast<double>(i)), b.set(i, static_cast<double>(i % 3 ? i : -i));
    call(op_named("eq"), a, b, b, out, kFloat);
    call(op_named("neg"), a, b, b, whole, kFloat);
    for (int64_t i = 0; i < 50; ++i) {
      EXPECT_EQ(out[i], i % 3 || i == 0);
      EXPECT_EQ(whole[i], static_cast<uint8_t>(-i));
    }
  });
}

TEST(Pointwise, IntegersWrapAndDivideLikeTheProcessorWouldNot) {
  raw::for_each_variant([](Variant) {
    const int64_t low = INT64_MIN;
    auto binary = [&](const char* name, int64_t x, int64_t y) {
      Buffer a(1, kLong), b(1, kLong), out(1, kLong);
      *a.as<int64_t>() = x, *b.as<int64_t>() = y;
      PointwiseArgs k = args_for(op_named(name), a, b, a, out, kLong);
      k.s.i = 1;
      (*op_named(name).dense)(raw::kCpuStream, k);
      return *out.as<int64_t>();
    };
    EXPECT_EQ(binary("add", INT64_MAX, 1), low);
    EXPECT_EQ(binary("sub", low, 1), INT64_MAX);
    EXPECT_EQ(binary("mul", INT64_MAX, 2), -2);
    EXPECT_EQ(binary("div_trunc", low, -1), low);
    EXPECT_EQ(binary("div_floor", low, -1), low);
    EXPECT_EQ(binary("remainder", low, -1), 0);
    EXPECT_EQ(binary("fmod", 7, 0), 0);
    EXPECT_EQ(binary("div_floor", -7, 2), -4);
    EXPECT_EQ(binary("div_trunc", -7, 2), -3);
    EXPECT_EQ(binary("remainder", -7, 2), 1);
    EXPECT_EQ(binary("fmod", -7, 2), -1);
    EXPECT_EQ(binary("pow", 3, 41), static_cast<int64_t>([] {
                uint64_t r = 1;
                for (int i = 0; i < 41; ++i) r *= 3;
                return r;
              }()));
    EXPECT_EQ(binary("pow", 5, -1), 0);
    EXPECT_EQ(binary("pow", -1, -3), -1);
    Buffer a(3, kByte), b(3, kByte), out(3, kByte);
    for (int i = 0; i < 3; ++i) a.set(i, 250), b.set(i, 10 + i);
    PointwiseArgs k = args_for(op_named("add"), a, b, a, out, kLong);
    k.s.i = 1;
    add(raw::kCpuStream, k);
    EXPECT_EQ(out[0], 4);
    call(op_named("neg"), b, b, b, out, kLong);
    EXPECT_EQ(out[2], 244);
    Buffer m(1, kInt), n(1, kInt);
    *m.as<int32_t>() = INT32_MIN;
    call(op_named("abs"), m, m, m, n, kLong);
    EXPECT_EQ(*n.as<int32_t>(), INT32_MIN);
  });
}

TEST(Pointwise, InPlace) {
  raw::for_each_variant([](Variant) {
    for (const char* name : {"mul", "tanh", "addcmul", "clamp"})
      for (ScalarType t : {kFloat, kDouble, kHalf, kInt}) {
        const Op& op = op_named(name);
        if (!is_floating(t) && !(op.types & kOnInteger)) continue;
        Buffer a(777, t), b(777, t), c(777, t), out(777, t);
        Values v(2);
        a.fill(v), b.fill(v), c.fill(v);
        call(op, a, b, c, out, compute_type(t));
        call(op, a, b, c, a, compute_type(t));
        EXPECT_TRUE(a.same_bits(out)) << name;
      }
  });
}

// ---- strides ----

TEST(Pointwise, StridesBroadcastsAndMixedTypesAgreeWithALoop) {
  Values v(77);
  const ScalarType kTypes[] = {kFloat, kDouble, kInt, kBool, kHalf};
  for (int round = 0; round < 300; ++round) {
    const Op& op = op_named(
        std::vector<const char*>{"sub", "where", "lt", "neg"}[static_cast<size_t>(v.below(4))]);
    const int rank = static_cast<int>(v.below(5));
    int64_t sizes[kMaxTensorRank], strides[4][kMaxTensorRank], extent[4] = {1, 1, 1, 1};
    for (int d = 0; d < rank; ++d) sizes[d] = v.below(8) == 0 ? 40 : 1 + v.below(5);
    ScalarType types[4];
    for (int o = 0; o < 4; ++o) types[o] = kTypes[v.below(5)];
    const ScalarType compute =
        compute_type(promote_types(types[2], promote_types(types[1], types[3])));
    if (is_integral(types[0])) types[0] = compute == kLong ? kLong : compute;
    int order[8];
    // a random order of the dimensions, gaps, and (operands only) broadcast dimensions
    for (int o = 0; o < 4; ++o) {
      for (int d = 0; d < rank; ++d) order[d] = d;
      for (int d = rank - 1; d > 0; --d) std::swap(order[d], order[v.below(d + 1)]);
      int64_t step = v.below(3) == 0 ? 2 : 1;
      for (int d = rank - 1; d >= 0; --d) {
        const int e = order[d];
        if (o > 0 && v.below(4) == 0) {
          strides[o][e] = 0;
          continue;
        }
        strides[o][e] = step;
        step *= sizes[e] + (v.below(5) == 0 ? 1 : 0);
      }
      extent[o] = step;
    }
    std::vector<Buffer> data;
    for (int o = 0; o < 4; ++o) data.emplace_back(extent[o], types[o]), data.back().fill(v, 4);
    Buffer want = data[0];

    // The loop: exact operands as doubles, in float where the compute type is float.
    const R s = 2;
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= sizes[d];
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = i, at[4] = {};
      for (int d = rank - 1; d >= 0; --d) {
        for (int o = 0; o < 4; ++o) at[o] += rest % sizes[d] * strides[o][d];
        rest /= sizes[d];
      }
      R y = references().at(op.name).f(data[1][at[1]], data[2][at[2]], data[3][at[3]], s, 0);
      if (compute == kFloat && !op.truth) y = static_cast<float>(y);
      if (compute == kLong) y = static_cast<R>(static_cast<int64_t>(y));  // no negative zero
      want.set(at[0], static_cast<double>(y));
    }

    PointwiseStridedArgs k{};
    k.rank = rank, k.compute = compute;
    if (compute == kLong) k.s.i = 2;
    else k.s.d = 2;
    if (v.below(2)) k.rank = coalesce<4>(rank, sizes, strides);
    for (int o = 0; o < 4; ++o) {
      k.data[o] = data[static_cast<size_t>(o)].data(), k.type[o] = types[o];
      for (int d = 0; d < k.rank; ++d) k.sizes[d] = sizes[d], k.strides[o][d] = strides[o][d];
    }
    (*op.strided)(raw::kCpuStream, k);
    ASSERT_TRUE(data[0].guards_intact());
    for (int64_t i = 0; i < want.size; ++i)
      ASSERT_EQ(data[0][i], want[i])
          << op.name << ", round " << round << ", rank " << rank << ", element " << i << ", types "
          << types[0] << ' ' << types[1] << ' ' << types[2] << ' ' << types[3];
  }
}

TEST(Pointwise, StridedResultsDoNotDependOnThreads) {
  Buffer a(300 * 90, kFloat), b(300, kFloat), out(300 * 90, kFloat);
  Values v(1);
  a.fill(v), b.fill(v);
  raw::expect_same_bits(out, [&](Buffer& y) {  // out[i][j] = a[j][i] / b[i]
    PointwiseStridedArgs k{};
    k.data[0] = y.data(), k.data[1] = a.data(), k.data[2] = b.data();
    for (auto& t : k.type) t = kFloat;
    k.compute = kFloat, k.rank = 2, k.sizes[0] = 300, k.sizes[1] = 90;
    k.strides[0][0] = 90, k.strides[0][1] = 1, k.strides[1][0] = 1, k.strides[1][1] = 300,
    k.strides[2][0] = 1, k.strides[2][1] = 0;
    div_strided(raw::kCpuStream, k);
  });
  for (int64_t i = 0; i < 300; ++i)
    for (int64_t j = 0; j < 90; ++j)
      ASSERT_EQ(out[i * 90 + j], static_cast<float>(a[j * 300 + i]) / static_cast<float>(b[i]));
}

TEST(Coalesce, MergesReordersAndDropsDimensions) {
  int64_t sizes[kMaxTensorRank] = {2, 1, 3, 4},
          strides[2][kMaxTensorRank] = {{12, 7, 4, 1}, {12, 9, 4, 1}};
  EXPECT_EQ(coalesce<2>(4, sizes, strides), 1);
  EXPECT_EQ(sizes[0], 24);
  // both transposed: one run
  int64_t t_sizes[kMaxTensorRank] = {3, 4}, t_strides[2][kMaxTensorRank] = {{1, 3}, {1, 3}};
  EXPECT_EQ(coalesce<2>(2, t_sizes, t_strides), 1);
  EXPECT_EQ(t_sizes[0], 12);
  EXPECT_EQ(t_strides[0][0], 1);
  int64_t b_sizes[kMaxTensorRank] = {5, 4}, b_strides[2][kMaxTensorRank] = {{4, 1}, {0, 1}};
  EXPECT_EQ(coalesce<2>(2, b_sizes, b_strides), 2);
  int64_t one[kMaxTensorRank] = {1, 1}, one_strides[2][kMaxTensorRank] = {{1, 1}, {0, 0}};
  EXPECT_EQ(coalesce<2>(2, one, one_strides), 0);
}

}  // namespace
}  // namespace ramet::kernels
