// Every pointwise kernel against its reference. Checks for all of them: any length at any offset,
// any type, any number of threads, scalars, results in place.
#include "kernels/pointwise/pointwise.h"

#include "tests/kernels/pointwise/pointwise_reference.h"
#include "tests/kernels/raw.h"

namespace ramet::kernels {
namespace {

using namespace pointwise_reference;
using raw::Buffer;
using raw::Values;

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
  } kCases[] = {{"exp", 1.25},  {"expm1", 2},   {"log", 1.2},   {"log1p", 2},  {"log2", 2},
                {"tanh", 1.5},  {"erf", 1.25},  {"sin", 1.5},   {"cos", 1.5},  {"sigmoid", 2.5},
                {"rsqrt", 1.5}, {"asin", 0.5},  {"acos", 0.5},  {"atan", 0.5}, {"sinh", 0.5},
                {"cosh", 0.5},  {"asinh", 0.5}, {"acosh", 0.5}, {"exp2", 0.5}, {"erfc", 0.5},
                {"sinc", 0.5},  {"erfinv", 0.5}};
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
    EXPECT_EQ(binary("gcd", low, 6), 2);
    EXPECT_EQ(binary("gcd", low, -1), 1);
    EXPECT_EQ(binary("gcd", 0, low), low);
    EXPECT_EQ(binary("gcd", low, low), low);
    EXPECT_EQ(binary("gcd", INT64_MAX, -INT64_MAX), INT64_MAX);
    EXPECT_EQ(binary("gcd", 0, 0), 0);
    EXPECT_EQ(binary("lcm", 0, low), 0);
    EXPECT_EQ(binary("lcm", low, -1), low);
    EXPECT_EQ(binary("lcm", low, 3), low);
    EXPECT_EQ(binary("lcm", INT64_MAX, 2), -2);
    EXPECT_EQ(binary("lcm", -4, 6), 12);
    EXPECT_EQ(binary("bitwise_left_shift", 3, 63), low);
    EXPECT_EQ(binary("bitwise_left_shift", -1, 62), low / 2);
    EXPECT_EQ(binary("bitwise_left_shift", 1, 64), 0);
    EXPECT_EQ(binary("bitwise_left_shift", 1, low), 0);
    EXPECT_EQ(binary("bitwise_left_shift", -1, -1), 0);
    EXPECT_EQ(binary("bitwise_right_shift", low, 63), -1);
    EXPECT_EQ(binary("bitwise_right_shift", low, 62), -2);
    EXPECT_EQ(binary("bitwise_right_shift", INT64_MAX, 62), 1);
    EXPECT_EQ(binary("bitwise_right_shift", -5, INT64_MAX), -1);
    EXPECT_EQ(binary("bitwise_right_shift", 5, low), 0);
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

}  // namespace
}  // namespace ramet::kernels
