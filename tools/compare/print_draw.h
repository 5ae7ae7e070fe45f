// A tensor to print, and how, drawn for both libraries alike. The numbers are this library's; the
// text must be LibTorch's. The numbers lie at a printer's limits: around powers of ten and at the
// ends of each type. They also lie some decades from each other, and among NaNs and infinities.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tools/compare/source.h"

namespace compare {

/// The dtypes in the order of LibTorch's promotion.
enum PrintType { kBool, kU8, kI8, kI16, kI32, kI64, kF16, kBF16, kF32, kF64 };
inline constexpr int kPrintTypes = 10;
inline constexpr int kPrintBytes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};

struct PrintDraw {
  PrintType type;
  std::vector<int64_t> sizes, strides;
  std::vector<char> memory;  // where the strides lead
  int64_t line_size;
  bool requires_grad;
};

/// One number of a draw: its integer where the type is one, else its double.
struct PrintNumber {
  double real;
  int64_t whole;
};

inline void store_print(char* p, PrintType t, PrintNumber x) {
  const auto put = [p](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (t) {
    case kBool: return put(static_cast<uint8_t>(x.whole & 1));
    case kU8: return put(static_cast<uint8_t>(x.whole));
    case kI8: return put(static_cast<int8_t>(x.whole));
    case kI16: return put(static_cast<int16_t>(x.whole));
    case kI32: return put(static_cast<int32_t>(x.whole));
    case kI64: return put(x.whole);
    case kF16: return put(static_cast<uint16_t>(half_bits(x.real)));
    case kBF16: return put(bfloat16_bits(static_cast<float>(x.real)));
    case kF32: return put(static_cast<float>(x.real));
    case kF64: return put(x.real);
  }
}

/// `S` is a Source, or what draws from one.
template <class S> class PrintNumbers {
 public:
  PrintNumbers(S& source, PrintType type) : source_(source), type_(type) {
    manner_ = integer(0, 9);
    const int widest = type == kF64 ? 320 : type == kF16 ? 8 : 45;
    decade_ = integer(0, 3) ? integer(-8, 12) : integer(-widest, widest);
    spread_ = integer(0, 2) ? integer(0, 6) : integer(0, 20);
    special_ = integer(0, 3) == 0 ? integer(1, 10) : 0;
    equal_ = integer(0, 11) == 0;
  }
  PrintNumber next() {
    if (!equal_ || !any_) last_ = draw();
    any_ = true;
    return last_;
  }

 private:
  int64_t integer(int64_t low, int64_t high) { return source_.integer(low, high); }
  double unit() { return static_cast<double>(integer(0, (int64_t{1} << 53) - 1)) * 0x1p-53; }
  PrintNumber draw() { return type_ < kF16 ? PrintNumber{0, whole()} : PrintNumber{real(), 0}; }

  int64_t whole() {
    const int bits = kPrintBytes[type_] * 8;
    if (integer(0, 9) < special_) {
      const int64_t high = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
      const int64_t list[] = {high, -high - 1, -high, 0, -1, 1};
      return list[integer(0, 5)];
    }
    if (manner_ < 5) return integer(-9, 99);
    int64_t power = 1;
    const int64_t digits =
        std::min<int64_t>(18, std::abs(decade_) + (spread_ ? integer(0, spread_) : 0));
    for (int64_t i = 0; i < digits; ++i) power *= 10;
    if (manner_ < 7) return (integer(0, 1) ? power : -power) + integer(-2, 2);
    return integer(-power, power);
  }
  double real() {
    const bool narrow = type_ == kF32;
    if (integer(0, 9) < special_) {
      const double inf = std::numeric_limits<double>::infinity();
      const double nan = std::numeric_limits<double>::quiet_NaN();
      const double least = type_ == kF64   ? 5e-324
                           : type_ == kF16 ? 0x1p-24
                           : narrow        ? 0x1p-149
                                           : 0x1p-133;
      const double tiny = type_ == kF64 ? 1e-310 : type_ == kF16 ? 3e-6 : 1e-40;
      const double most = type_ == kF64   ? std::numeric_limits<double>::max()
                          : type_ == kF16 ? 65504
                          : narrow        ? 0x1.fffffep127
                                          : 0x1.fep127;
      const double list[] = {inf,    -inf, nan,  -nan,  0., -0., least,
                             -least, tiny, most, -most, 1., 2.5};
      return list[integer(0, 12)];
    }
    const double sign = integer(0, 2) ? 1 : -1;
    const double scale =
        std::pow(10., static_cast<double>(decade_ + (spread_ ? integer(0, spread_) : 0)));
    switch (manner_) {
      case 0: return static_cast<double>(integer(-9, 99));
      case 1: return static_cast<double>(integer(-20, 20)) / 4;
      case 2: return sign * std::round(unit() * 10) * scale;
      case 3: return sign * scale;
      // Just below a power of ten, where rounding to a few digits carries.
      case 4: return sign * scale * (1 - std::pow(10., static_cast<double>(-integer(1, 9))));
      case 5: return sign * scale * (9.9999 + static_cast<double>(integer(0, 20)) * 1e-5);
      case 6: return std::round(sign * unit() * scale);
      default: return sign * unit() * scale;
    }
  }

  S& source_;
  const PrintType type_;
  int64_t manner_, decade_, spread_, special_;
  bool equal_, any_ = false;
  PrintNumber last_{};
};

template <class S> PrintDraw draw_print(S& source) {
  PrintDraw d;
  d.type = static_cast<PrintType>(source.integer(0, kPrintTypes - 1));
  const int64_t rank = source.integer(0, 5);
  int64_t count = 1;
  for (int64_t k = 0; k < rank; ++k) {
    const int64_t kind = source.integer(0, 9);
    int64_t extent = kind == 0  ? source.integer(0, 12)
                     : kind < 4 ? source.integer(1, 12)
                                : source.integer(1, 3);
    while (count * extent > 400) extent = source.integer(1, 3);
    count *= extent;
    d.sizes.push_back(extent);
  }
  if (rank > 0 && source.integer(0, 9) == 0 && count > 0 && count < 20)
    d.sizes[static_cast<size_t>(source.integer(0, rank - 1))] *= source.integer(10, 40);
  // Row-major, or in reverse with every second place left out.
  const bool scrambled = source.integer(0, 3) == 0;
  d.strides.resize(d.sizes.size());
  int64_t room = scrambled ? 2 : 1;
  for (size_t k = 0; k < d.sizes.size(); ++k) {
    const size_t dim = scrambled ? k : d.sizes.size() - 1 - k;
    d.strides[dim] = room;
    room *= std::max<int64_t>(1, d.sizes[dim]);
  }
  d.line_size = source.integer(0, 2)   ? 80
                : source.integer(0, 3) ? source.integer(20, 140)
                                       : source.integer(14, 30);
  d.requires_grad = d.type >= kF16 && source.integer(0, 4) == 0;
  const size_t bytes = static_cast<size_t>(kPrintBytes[d.type]);
  d.memory.assign((static_cast<size_t>(room) + 1) * bytes, 0);
  PrintNumbers<S> numbers(source, d.type);
  std::vector<int64_t> at(d.sizes.size(), 0);
  int64_t n = 1;
  for (const int64_t s : d.sizes) n *= s;
  for (int64_t i = 0; i < n; ++i) {
    int64_t offset = 0;
    for (size_t k = 0; k < at.size(); ++k) offset += at[k] * d.strides[k];
    store_print(d.memory.data() + static_cast<size_t>(offset) * bytes, d.type, numbers.next());
    for (size_t k = at.size(); k-- > 0 && ++at[k] == d.sizes[k];) at[k] = 0;
  }
  return d;
}

/// The seed of the draws with checked-in texts: `compare_torch --seed 28 --only print` draws the
/// same.
inline constexpr uint64_t kPrintSeed = 28;

/// Fowler, Noll, Vo: FNV-1a.
inline uint32_t fingerprint(const std::string& text) {
  uint32_t hash = 2166136261u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

}  // namespace compare
