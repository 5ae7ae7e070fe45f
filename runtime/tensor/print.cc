#include "runtime/tensor/print.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "runtime/base/classic.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/gpu.h"
#include "runtime/observe/observer.h"

namespace ramet {
namespace {

enum class Style { kWhole, kFixed, kScientific };

struct Format {
  Style style;
  int64_t width;
  double scale;  // printed numbers are divided by it
};

std::atomic<bool> sci_mode{true};

// Digits before the decimal point: 1 for 1..9, 3 for 100..999, 0 for 0.1..0.99, 1 for 0.
int digits_before_point(double magnitude) {
  return magnitude == 0 ? 1 : static_cast<int>(std::floor(std::log10(magnitude))) + 1;
}

Format format_of(const double* x, int64_t n) {
  bool whole = true, any = false;
  double low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(x[i])) continue;
    whole = whole && x[i] == std::ceil(x[i]);
    const double magnitude = std::fabs(x[i]);
    low = any ? std::min(low, magnitude) : magnitude;
    high = any ? std::max(high, magnitude) : magnitude;
    any = true;
  }
  const Style large = sci_mode.load(std::memory_order_relaxed) ? Style::kScientific : Style::kFixed;
  const int least = any ? digits_before_point(low) : 1, most = any ? digits_before_point(high) : 1;
  if (whole) return most > 9 ? Format{large, 11, 1} : Format{Style::kWhole, most + 1, 1};
  if (most - least > 4) {
    const bool long_exponent = std::abs(most) > 99 || std::abs(least) > 99;
    return {large, long_exponent ? 12 : 11, 1};
  }
  if (most > 5 || most < 0) return {Style::kFixed, 7, std::pow(10.0, most - 1)};
  return {Style::kFixed, most == 0 ? 7 : most + 6, 1};
}

// Some standard libraries (Emscripten's) have std::to_chars for integers alone.
#if defined(__cpp_lib_to_chars)
std::string_view number_text(char (&buffer)[400], double value, Style style, int precision) {
  const auto format = style == Style::kWhole   ? std::chars_format::general
                      : style == Style::kFixed ? std::chars_format::fixed
                                               : std::chars_format::scientific;
  const char* const end =
      std::to_chars(buffer, buffer + sizeof buffer, value, format, precision).ptr;
  return {buffer, static_cast<size_t>(end - buffer)};
}

// The fewest digits that read_double() makes the same number of, in scientific notation.
std::string fewest_digits(double value) {
  char buffer[32];
  return {buffer,
          std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr};
}
#else
std::string_view number_text(char (&buffer)[400], double value, Style style, int precision) {
  const std::string text = detail::formatted(style == Style::kWhole   ? "%.*g"
                                             : style == Style::kFixed ? "%.*f"
                                                                      : "%.*e",
                                             precision, value);
  return {buffer, text.copy(buffer, sizeof buffer)};
}

std::string fewest_digits(double value) {
  std::string text;
  for (int digits = 0; digits <= 16; ++digits) {
    text = detail::formatted("%.*e", digits, value);
    if (detail::read_double(text.c_str(), nullptr) == value) break;
  }
  return text;
}
#endif

void append_number(std::string& line, double value, const Format& f) {
  char buffer[400];  // the longest: 309 digits, a point, four decimals
  value /= f.scale;
  std::string_view text;
  if (std::isnan(value)) {
    text = std::signbit(value) ? "-nan" : "nan";
  } else {
    const int precision =
        f.style == Style::kWhole ? 6 : 4;  // as LibTorch: 12345678 becomes 1.23457e+07
    text = number_text(buffer, value, f.style, precision);
  }
  const auto width = static_cast<size_t>(f.width);
  if (text.size() < width) line.append(width - text.size(), ' ');
  line += text;
}

void print_vector(std::ostream& out, const double* x, int64_t n) {
  const Format f = format_of(x, n);
  std::string text;
  if (f.scale != 1) text = shortest_text(f.scale) + " *\n";
  for (int64_t i = 0; i < n; ++i) {
    append_number(text, x[i], f);
    text += '\n';
  }
  out << text;
}

void print_matrix(std::ostream& out, const double* x, int64_t rows, int64_t columns,
                  int64_t line_size, size_t indent) {
  const Format f = format_of(x, rows * columns);
  const std::string margin(indent, ' ');
  const int64_t at_once =
      std::max<int64_t>(1, (line_size - static_cast<int64_t>(indent)) / (f.width + 1));
  for (int64_t first = 0; first < columns; first += at_once) {
    const int64_t last = std::min(first + at_once, columns);
    std::string text;
    if (at_once < columns) {
      text += first ? "\nColumns " : "Columns ";
      text += std::to_string(first + 1) + " to " + std::to_string(last) + margin;
    }
    if (f.scale != 1) text += shortest_text(f.scale) + " *\n" + margin;
    for (int64_t r = 0; r < rows; ++r) {
      if (r) text += f.scale != 1 ? margin + " " : margin;
      for (int64_t c = first; c < last; ++c) {
        append_number(text, x[r * columns + c], f);
        text += c + 1 < last ? ' ' : '\n';
      }
    }
    out << text;
  }
}

// 2-D slices; the first index runs fastest, as LibTorch counts them.
void print_slices(std::ostream& out, const double* x, IntArrayRef sizes, int64_t line_size) {
  const size_t outer = sizes.size() - 2;
  const int64_t rows = sizes[outer], columns = sizes[outer + 1];
  std::vector<int64_t> index(outer, 0);
  for (bool first = true, more = true; more; first = false) {
    int64_t slice = 0;
    std::string title = first ? "(" : "\n(";
    for (size_t d = 0; d < outer; ++d) {
      slice = slice * sizes[d] + index[d];
      title += std::to_string(index[d] + 1) + ",";
    }
    out << title << ".,.) = \n";
    print_matrix(out, x + slice * rows * columns, rows, columns, line_size, 1);
    more = false;
    for (size_t d = 0; d < outer && !more; ++d) {
      more = ++index[d] < sizes[d];
      if (!more) index[d] = 0;
    }
  }
}

void collect(std::vector<double>& out, const char* p, const TensorBase& t, size_t d) {
  if (d == t.sizes().size()) return out.push_back(load_as_double(p, t.scalar_type()));
  const int64_t step = t.raw_strides()[d] * static_cast<int64_t>(t.element_size());
  for (int64_t i = 0; i < t.sizes()[d]; ++i) collect(out, p + i * step, t, d + 1);
}

template <class T> double load(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

double load_as_double(const void* p, ScalarType t) {
  switch (t) {
    case ScalarType::Bool: return load<uint8_t>(p) != 0;
    case ScalarType::Byte: return load<uint8_t>(p);
    case ScalarType::Char: return load<int8_t>(p);
    case ScalarType::Short: return load<int16_t>(p);
    case ScalarType::Int: return load<int32_t>(p);
    case ScalarType::Long: return load<int64_t>(p);
    case ScalarType::UInt16: return load<uint16_t>(p);
    case ScalarType::UInt32: return load<uint32_t>(p);
    case ScalarType::Half: return load<Half>(p);
    case ScalarType::BFloat16: return load<BFloat16>(p);
    case ScalarType::Float: return load<float>(p);
    case ScalarType::Double: return load<double>(p);
    case ScalarType::Undefined: break;
  }
  fail("load_as_double", "dtype: got undefined, expected an element type");
}

std::vector<double> to_doubles(const TensorBase& t) {
  std::vector<double> out;
  if (t.numel() == 0) return out;
  capture::refuse("print", "the host reads values");
  out.reserve(static_cast<size_t>(t.numel()));
  if (t.is_cpu()) {
    collect(out, static_cast<const char*>(t.ptr()), t, 0);
    return out;
  }
  int64_t last = 0;  // the strides stay as they are
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.raw_strides()[d];
  std::vector<char> memory(static_cast<size_t>(last + 1) * item_size(t.scalar_type()));
  const RecordWait wait("print", t.device(), t.impl());
  gpu::required("print", t.device())
      .copy(memory.data(), Device(kCPU, 0), t.ptr(), t.device(), memory.size());
  collect(out, memory.data(), t, 0);
  return out;
}

std::string shortest_text(double value) {
  if (std::isnan(value)) return std::signbit(value) ? "-nan" : "nan";
  const std::string text = fewest_digits(value);
  const size_t e = text.find('e');
  if (e == std::string::npos) return text;  // an infinity
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return text;
  const bool negative = text[0] == '-';
  std::string digits;
  for (size_t i = 0; i < e; ++i)
    if (text[i] >= '0' && text[i] <= '9') digits += text[i];
  const size_t point = exponent < 0 ? 0 : static_cast<size_t>(exponent) + 1;
  if (exponent < 0) digits.insert(0, static_cast<size_t>(-exponent - 1), '0');
  if (digits.size() < point) digits.append(point - digits.size(), '0');
  std::string plain = negative ? "-" : "";
  plain += point ? digits.substr(0, point) : "0";
  if (point < digits.size()) plain += "." + digits.substr(point);
  return plain;
}

void set_printoption_sci_mode(bool enabled) { sci_mode.store(enabled, std::memory_order_relaxed); }

const char* toString(ScalarType t) {
  return t == ScalarType::Undefined ? "UNKNOWN_SCALAR" : name_of(t);
}

std::string type_string(const TensorBase& t) {
  return std::string(t.is_cpu() ? "CPU" : "CUDA") + name_of(t.scalar_type()) + "Type";
}

std::ostream& print(std::ostream& out, const TensorBase& t, int64_t line_size) {
  // Unused, as in LibTorch: the width is for the output after the tensor.
  const std::streamsize width = out.width(0);
  if (!t.defined()) {
    out << "[ Tensor (undefined) ]";
    out.width(width);
    return out;
  }
  const std::vector<double> values = to_doubles(t);
  const IntArrayRef sizes = t.sizes();
  const size_t rank = sizes.size();
  if (rank == 0) {
    out << shortest_text(values[0]) + "\n";
  } else if (!values.empty()) {
    if (rank == 1) print_vector(out, values.data(), sizes[0]);
    else if (rank == 2) print_matrix(out, values.data(), sizes[0], sizes[1], line_size, 0);
    else print_slices(out, values.data(), sizes, line_size);
  }
  std::string last = "[ " + type_string(t) + "{";
  for (size_t d = 0; d < rank; ++d) last += (d ? "," : "") + std::to_string(sizes[d]);
  out << last + "} ]";
  out.width(width);
  return out;
}

void print(const TensorBase& t, int64_t line_size) {
  // Not std::cout: <iostream> is a static constructor in every program.
  auto text = detail::classic<std::ostringstream>();
  print(text, t, line_size);
  std::fputs(text.str().c_str(), stdout);
  std::fflush(stdout);
}

std::ostream& operator<<(std::ostream& out, const TensorBase& t) { return print(out, t); }

}  // namespace ramet
