// Operators on numbers. Integers wrap around, as PyTorch's.
#include <cmath>
#include <numeric>
#include <sstream>

#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"

namespace ramet::script {
namespace {

int64_t signed_of(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t bits(int64_t x) { return static_cast<uint64_t>(x); }

struct Add {
  static int64_t of(int64_t a, int64_t b) { return signed_of(bits(a) + bits(b)); }
  static double of(double a, double b) { return a + b; }
};
struct Sub {
  static int64_t of(int64_t a, int64_t b) { return signed_of(bits(a) - bits(b)); }
  static double of(double a, double b) { return a - b; }
};
struct Mul {
  static int64_t of(int64_t a, int64_t b) { return signed_of(bits(a) * bits(b)); }
  static double of(double a, double b) { return a * b; }
};
struct Div {
  static double of(double a, double b) { return a / b; }
};
void check_divisor(int64_t b) {
  RAMET_CHECK(b != 0, "floordiv", "got a division of integers by 0, expected another divisor");
}
struct FloorDiv {
  static int64_t of(int64_t a, int64_t b) {
    check_divisor(b);
    if (b == -1) return Sub::of(0, a);  // the least integer has no opposite
    return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }
  static double of(double a, double b) { return std::floor(a / b); }
};
struct Remainder {
  static int64_t of(int64_t a, int64_t b) {
    check_divisor(b);
    if (b == -1) return 0;
    const int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  static double of(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
};
struct Pow {
  static double of(double a, double b) { return std::pow(a, b); }
};
struct Fmod {
  static double of(double a, double b) { return std::fmod(a, b); }
};
struct Atan2 {
  static double of(double a, double b) { return std::atan2(a, b); }
};
struct Copysign {
  static double of(double a, double b) { return std::copysign(a, b); }
};
struct Logarithm {
  static double of(double a, double b) { return std::log(a) / std::log(b); }
};
struct MathRemainder {
  static double of(double a, double b) { return std::remainder(a, b); }
};
struct Larger {
  template <class T> static T of(T a, T b) { return a > b ? a : b; }
};
struct Smaller {
  template <class T> static T of(T a, T b) { return a < b ? a : b; }
};
#define RAMET_COMPARED(Name, op)                                   \
  struct Name {                                                    \
    template <class T> static bool of(T a, T b) { return a op b; } \
  };
RAMET_COMPARED(Eq, ==)
RAMET_COMPARED(Ne, !=)
RAMET_COMPARED(Lt, <)
RAMET_COMPARED(Le, <=)
RAMET_COMPARED(Gt, >)
RAMET_COMPARED(Ge, >=)
#undef RAMET_COMPARED

int64_t whole(const IValue& value) {
  return value.isBool() ? static_cast<int64_t>(value.toBool()) : value.toInt();
}
double real(const IValue& value) {
  return value.isDouble() ? value.toDouble() : static_cast<double>(whole(value));
}
template <class Op> IValue of_ints(Arguments a) { return Op::of(whole(*a[0]), whole(*a[1])); }
template <class Op> IValue of_reals(Arguments a) { return Op::of(real(*a[0]), real(*a[1])); }
// Of two numbers; their kinds are known only now.
template <class Op> IValue of_numbers(Arguments a) {
  return a[0]->isDouble() || a[1]->isDouble() ? of_reals<Op>(a) : of_ints<Op>(a);
}
// Functions that always compute in float.
template <class Op> IValue of_bools(Arguments a) { return Op::of(a[0]->toBool(), a[1]->toBool()); }

#define RAMET_MIXED(name, Op, real)                           \
  {name ".int_float(int a, float b) -> " real, of_reals<Op>}, \
      {name ".float_int(float a, int b) -> " real, of_reals<Op>},
// name of two ints, of two floats, of one of each, and of numbers.
#define RAMET_ARITHMETIC(name, Op)                              \
  {name ".int(int a, int b) -> int", of_ints<Op>},              \
      {name ".float(float a, float b) -> float", of_reals<Op>}, \
      RAMET_MIXED(name, Op, "float"){name "(Scalar a, Scalar b) -> Scalar", of_numbers<Op>},
#define RAMET_REAL(name, Op)                                    \
  {name ".int(int a, int b) -> float", of_reals<Op>},           \
      {name ".float(float a, float b) -> float", of_reals<Op>}, \
      RAMET_MIXED(name, Op, "float"){name "(Scalar a, Scalar b) -> float", of_reals<Op>},
#define RAMET_COMPARISON(name, Op)                                                        \
  {name ".int(int a, int b) -> bool", of_ints<Op>},                                       \
      {name ".float(float a, float b) -> bool", of_reals<Op>},                            \
      RAMET_MIXED(name, Op, "bool"){name "(Scalar a, Scalar b) -> bool", of_numbers<Op>}, \
      {name ".str(str a, str b) -> bool", [](Arguments a) -> IValue {                     \
         return Op::of<const std::string&>(a[0]->toStringRef(), a[1]->toStringRef());     \
       }},

// math.name(x) of an int, a float, or a number.
template <double (*f)(double)> IValue of_one(Arguments a) { return f(real(*a[0])); }
#define RAMET_MATH(name, f)                                                               \
  {name ".int(int a) -> float", of_one<f>}, {name ".float(float a) -> float", of_one<f>}, \
      {name ".Scalar(Scalar a) -> Scalar", of_one<f>},

// The integer below, at or above, as a C++ cast gives it on x86: out of range it is the least.
int64_t to_integer(double x) {
  if (x >= -0x1p63 && x < 0x1p63) return static_cast<int64_t>(x);
  return std::numeric_limits<int64_t>::min();
}
template <double (*f)(double)> IValue rounded(Arguments a) {
  return a[0]->isDouble() ? to_integer(f(a[0]->toDouble())) : whole(*a[0]);
}
double degrees(double x) { return x * 180.0 / M_PI; }
double radians(double x) { return x * M_PI / 180.0; }
// Half to even, in whatever mode the processor rounds.
double round_even(double x) {
  return std::isinf(x) ? x : std::copysign(x - std::remainder(x, 1.0), x);
}
// std::lgamma() writes a global variable.
double log_gamma(double x) {
  int sign = 0;
  return lgamma_r(x, &sign);
}
double logarithm(double x) { return std::log(x); }

template <class T> IValue absolute(const T& x) {
  return x < 0 ? IValue(Sub::of(T(0), x)) : IValue(x);
}
IValue absolute(const IValue& x) {
  return x.isDouble() ? IValue(std::fabs(x.toDouble())) : absolute(whole(x));
}
IValue negative(const IValue& x) {
  return x.isDouble() ? IValue(-x.toDouble()) : IValue(Sub::of(int64_t{0}, whole(x)));
}

int64_t power_of_ints(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    RAMET_CHECK(base != 0, "pow", "got 0 to the power of ", exponent, ", expected another base");
    if (base == 1) return 1;
    return base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  }
  int64_t made = 1;
  for (; exponent > 0; exponent /= 2, base = Mul::of(base, base))
    if (exponent % 2 == 1) made = Mul::of(made, base);
  return made;
}

int64_t factorial(int64_t n) {
  RAMET_CHECK(n >= 0, "factorial", "got ", n, ", expected a number from 0 on");
  int64_t made = 1;
  for (int64_t i = 2; i <= n && made != 0; ++i) made = Mul::of(made, i);  // 0 from 66! on
  return made;
}

int64_t shifted(int64_t x, int64_t by, bool left) {
  RAMET_CHECK(by >= 0, "shift", "got a shift by ", by, ", expected one from 0 on");
  if (left) return by > 63 ? 0 : signed_of(bits(x) << by);
  return x >> std::min<int64_t>(by, 63);
}

int64_t range_length(int64_t low, int64_t high, int64_t step) {
  RAMET_CHECK(step != 0, "range", "got a step of 0, expected another");
  const uint64_t width = step > 0 ? bits(high) - bits(low) : bits(low) - bits(high);
  if (step > 0 ? low >= high : low <= high) return 0;
  const uint64_t by = step > 0 ? bits(step) : 0 - bits(step);
  return signed_of((width - 1) / by + 1);
}

// Blanks before the number are skipped, those after it are an Error.
int64_t int_of_text(const std::string& text) {
  size_t read = 0;
  int64_t value = 0;
  try {
    value = std::stoll(text, &read);
  } catch (const std::exception&) { read = 0; }
  RAMET_CHECK(read > 0 && read == text.size(), "int", "got the text '", text,
              "', expected an integer of 64 bits with base 10");
  return value;
}
double float_of_text(const std::string& text) {
  auto in = detail::classic<std::istringstream>(text);
  double value = 0;
  std::string lower;
  const size_t begin = std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size());
  for (const char c : text.substr(begin))
    lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const bool minus = !lower.empty() && lower[0] == '-';
  const std::string name = !lower.empty() && (minus || lower[0] == '+') ? lower.substr(1) : lower;
  if (name == "inf" || name == "infinity") return minus ? -HUGE_VAL : HUGE_VAL;
  if (name == "nan") return std::nan("");
  in >> value;
  RAMET_CHECK(!in.fail() && in.peek() == std::char_traits<char>::eof(), "float", "got the text '",
              text, "', expected a number");
  return value;
}

IValue from_exponent(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return result(std::vector<IValue>{mantissa, exponent});
}
IValue parts(double x) {
  double whole_part = 0;
  const double rest = std::modf(x, &whole_part);
  return result(std::vector<IValue>{rest, whole_part});
}
template <class T> IValue quotient_and_rest(T a, T b) {
  return result(std::vector<IValue>{FloorDiv::of(a, b), Remainder::of(a, b)});
}

const Line kNumbers[] = {
    RAMET_ARITHMETIC("aten::add", Add) RAMET_ARITHMETIC("aten::sub", Sub)
        RAMET_ARITHMETIC("aten::mul", Mul) RAMET_ARITHMETIC("aten::floordiv", FloorDiv)
            RAMET_ARITHMETIC("aten::remainder", Remainder){"aten::div.int(int a, int b) -> float",
                                                           of_reals<Div>},
    {"aten::div.float(float a, float b) -> float", of_reals<Div>},
    {"aten::div(Scalar a, Scalar b) -> float", of_reals<Div>},
    RAMET_REAL("aten::fmod", Fmod) RAMET_REAL("aten::mathremainder", MathRemainder)
        RAMET_REAL("aten::atan2", Atan2) RAMET_REAL("aten::copysign", Copysign){
            "aten::pow.int(int a, int b) -> float", of_reals<Pow>},
    {"aten::pow.float(float a, float b) -> float", of_reals<Pow>},
    RAMET_MIXED("aten::pow", Pow, "float"){"aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float",
                                           of_reals<Pow>},
    RAMET_LINE("aten::pow.int_to_int(int a, int b) -> int",
               power_of_ints(a.integer(0), a.integer(1))),
    RAMET_LINE("aten::__round_to_zero_floordiv.int(int a, int b) -> int",
               (check_divisor(a.integer(1)),
                a.integer(1) == -1 ? Sub::of(0, a.integer(0)) : a.integer(0) / a.integer(1))),
    RAMET_LINE("aten::divmod.int(int x, int y) -> (int, int)",
               quotient_and_rest(a.integer(0), a.integer(1))),
    RAMET_LINE("aten::divmod.float(float x, float y) -> (float, float)",
               quotient_and_rest(a.real(0), a.real(1))),
    RAMET_LINE("aten::divmod.int_float(int x, float y) -> (float, float)",
               quotient_and_rest(a.real(0), a.real(1))),
    RAMET_LINE("aten::divmod.float_int(float x, int y) -> (float, float)",
               quotient_and_rest(a.real(0), a.real(1))),
    RAMET_COMPARISON("aten::eq", Eq) RAMET_COMPARISON("aten::ne", Ne) RAMET_COMPARISON(
        "aten::lt", Lt) RAMET_COMPARISON("aten::le", Le) RAMET_COMPARISON("aten::gt", Gt)
        RAMET_COMPARISON("aten::ge", Ge){"aten::eq.bool(bool a, bool b) -> bool", of_bools<Eq>},
    {"aten::ne.bool(bool a, bool b) -> bool", of_bools<Ne>},
    RAMET_LINE("aten::__and__.bool(bool a, bool b) -> bool", a.truth(0) && a.truth(1)),
    RAMET_LINE("aten::__and__.int(int a, int b) -> int", a.integer(0) & a.integer(1)),
    RAMET_LINE("aten::__or__.bool(bool a, bool b) -> bool", a.truth(0) || a.truth(1)),
    RAMET_LINE("aten::__or__.int(int a, int b) -> int", a.integer(0) | a.integer(1)),
    RAMET_LINE("aten::__xor__.bool(bool a, bool b) -> bool", a.truth(0) != a.truth(1)),
    RAMET_LINE("aten::__xor__.int(int a, int b) -> int", a.integer(0) ^ a.integer(1)),
    RAMET_LINE("aten::__lshift__.int(int a, int b) -> int",
               shifted(a.integer(0), a.integer(1), true)),
    RAMET_LINE("aten::__rshift__.int(int a, int b) -> int",
               shifted(a.integer(0), a.integer(1), false)),
    RAMET_LINE("aten::__not__(bool self) -> bool", !a.truth(0)),
    RAMET_LINE("aten::neg.int(int a) -> int", negative(a[0])),
    RAMET_LINE("aten::neg.float(float a) -> float", negative(a[0])),
    RAMET_LINE("aten::neg.Scalar(Scalar a) -> Scalar", negative(a[0])),
    RAMET_LINE("prim::abs.int(int a) -> int", absolute(a[0])),
    RAMET_LINE("prim::abs.float(float a) -> float", absolute(a[0])),
    RAMET_LINE("prim::abs.Scalar(Scalar a) -> Scalar", absolute(a[0])),
    RAMET_ARITHMETIC("prim::max", Larger) RAMET_ARITHMETIC("prim::min", Smaller) RAMET_MATH(
        "aten::sqrt", std::sqrt) RAMET_MATH("aten::exp", std::exp)
        RAMET_MATH("aten::expm1", std::expm1) RAMET_MATH("aten::log", logarithm) RAMET_MATH(
            "aten::log1p", std::log1p) RAMET_MATH("aten::log10", std::log10)
            RAMET_MATH("aten::sin", std::sin) RAMET_MATH("aten::cos", std::cos) RAMET_MATH(
                "aten::tan", std::tan) RAMET_MATH("aten::asin", std::asin)
                RAMET_MATH("aten::acos", std::acos) RAMET_MATH("aten::atan", std::atan) RAMET_MATH(
                    "aten::sinh", std::sinh) RAMET_MATH("aten::cosh", std::cosh)
                    RAMET_MATH("aten::tanh", std::tanh) RAMET_MATH("aten::asinh", std::asinh)
                        RAMET_MATH("aten::acosh", std::acosh) RAMET_MATH("aten::atanh", std::atanh)
                            RAMET_MATH("aten::erf", std::erf) RAMET_MATH("aten::erfc", std::erfc)
                                RAMET_MATH("aten::gamma", std::tgamma) RAMET_MATH(
                                    "aten::lgamma", log_gamma) RAMET_MATH("aten::degrees", degrees)
                                    RAMET_MATH("aten::radians", radians)
                                        RAMET_MATH("aten::round", round_even)
                                            RAMET_MATH("aten::fabs", std::fabs){
                                                "aten::log.int_int(int a, int b) -> float",
                                                of_reals<Logarithm>},
    {"aten::log.float_float(float a, float b) -> float", of_reals<Logarithm>},
    RAMET_MIXED("aten::log", Logarithm, "float"){
        "aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float", of_reals<Logarithm>},
    {"aten::floor.int(int a) -> int", rounded<std::floor>},
    {"aten::floor.float(float a) -> int", rounded<std::floor>},
    {"aten::floor.Scalar(Scalar a) -> Scalar", rounded<std::floor>},
    {"aten::ceil.int(int a) -> int", rounded<std::ceil>},
    {"aten::ceil.float(float a) -> int", rounded<std::ceil>},
    {"aten::ceil.Scalar(Scalar a) -> Scalar", rounded<std::ceil>},
    RAMET_LINE("aten::isnan.float(float a) -> bool", std::isnan(a.real(0))),
    RAMET_LINE("aten::isinf.float(float a) -> bool", std::isinf(a.real(0))),
    RAMET_LINE("aten::isfinite.float(float a) -> bool", std::isfinite(a.real(0))),
    RAMET_LINE("aten::gcd.int(int a, int b) -> int", std::gcd(a.integer(0), a.integer(1))),
    RAMET_LINE("aten::factorial.int(int a) -> int", factorial(a.integer(0))),
    RAMET_LINE("aten::frexp(float a) -> (float, int)", from_exponent(a.real(0))),
    RAMET_LINE("aten::modf(float a) -> (float, float)", parts(a.real(0))),
    RAMET_LINE(
        "aten::ldexp(float x, int i) -> float",
        std::ldexp(a.real(0), static_cast<int>(std::clamp<int64_t>(a.integer(1), -5000, 5000)))),
    RAMET_LINE("aten::__range_length(int lo, int hi, int step) -> int",
               range_length(a.integer(0), a.integer(1), a.integer(2))),
    RAMET_LINE("aten::__derive_index(int index, int start, int step) -> int",
               Add::of(a.integer(1), Mul::of(a.integer(0), a.integer(2)))),
    RAMET_LINE("aten::Int.Tensor(Tensor a) -> int", a.tensor(0).item().isFloatingPoint()
                                                        ? to_integer(a.tensor(0).item().toDouble())
                                                        : a.tensor(0).item().toLong()),
    RAMET_LINE("aten::Int.bool(bool a) -> int", whole(a[0])),
    RAMET_LINE("aten::Int.float(float a) -> int", to_integer(a.real(0))),
    RAMET_LINE("aten::Int.Scalar(Scalar a) -> int",
               a[0].isDouble() ? to_integer(a[0].toDouble()) : whole(a[0])),
    RAMET_LINE("aten::Int.str(str a) -> int", int_of_text(a.text(0))),
    RAMET_LINE("aten::Float.Tensor(Tensor a) -> float", a.tensor(0).item().toDouble()),
    RAMET_LINE("aten::Float.Scalar(Scalar a) -> float", real(a[0])),
    RAMET_LINE("aten::Float.int(int a) -> float", real(a[0])),
    RAMET_LINE("aten::Float.bool(bool a) -> float", real(a[0])),
    RAMET_LINE("aten::Float.str(str a) -> float", float_of_text(a.text(0))),
    RAMET_LINE("aten::Bool.Tensor(Tensor a) -> bool", a.tensor(0).is_nonzero()),
    RAMET_LINE("aten::Bool.int(int a) -> bool", a.integer(0) != 0),
    RAMET_LINE("aten::Bool.float(float a) -> bool", a.real(0) != 0),
    RAMET_LINE("aten::IntImplicit(Tensor a) -> int", a.tensor(0).item().toLong()),
    RAMET_LINE("aten::FloatImplicit(Tensor a) -> float", a.tensor(0).item().toDouble()),
    RAMET_LINE("aten::ScalarImplicit(Tensor a) -> Scalar", a.tensor(0).item()),
};

}  // namespace

Lines lines_of_numbers() { return kNumbers; }

}  // namespace ramet::script
