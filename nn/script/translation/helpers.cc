// Small functions that written code calls: what Python does and C++ has no word for.
#include "autograd/schema/arguments_internal.h"
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

// PyTorch's numbers of dtypes, as the interpreter has them.
std::string dtypes() {
  std::string text =
      "/// PyTorch's numbers of dtypes.\n"
      "inline constexpr std::pair<int64_t, ramet::ScalarType> kDtypes[] = {\n";
  constexpr int64_t kNumbers = 64;
  for (int64_t number = 0; number < kNumbers; ++number) try {
      text += "    {" + std::to_string(number) + ", " + cpp_dtype(dtype_of(number)) + "},\n";
    } catch (const Error&) {}  // a number of a dtype that is not here
  return text + "};\n";
}

std::vector<Helper> helpers_of_numbers() {
  return {
      {"floordiv", R"(/// Python's a // b.
inline int64_t floordiv(int64_t a, int64_t b) {
  if (b == 0) throw ramet::Error("[floordiv] got a divisor of 0");
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
)"},
      {"remainder", R"(/// Python's a % b.
inline int64_t remainder(int64_t a, int64_t b) {
  if (b == 0) throw ramet::Error("[remainder] got a divisor of 0");
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double remainder(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
)"},
      {"number", R"(/// f(a, b) of two numbers: of doubles where one of them is a double.
template <class F>
ramet::Scalar number(const ramet::Scalar& a, const ramet::Scalar& b, const F& f) {
  if (a.isFloatingPoint() || b.isFloatingPoint()) return f(a.toDouble(), b.toDouble());
  return f(a.toLong(), b.toLong());
}
)"},
      {"Floordiv", R"(/// a // b of numbers.
struct Floordiv {
  int64_t operator()(int64_t a, int64_t b) const { return python::floordiv(a, b); }
  double operator()(double a, double b) const { return std::floor(a / b); }
};
)"},
      {"Remainder", R"(/// a % b of numbers.
struct Remainder {
  int64_t operator()(int64_t a, int64_t b) const { return python::remainder(a, b); }
  double operator()(double a, double b) const { return python::remainder(a, b); }
};
)"},
      {"negative", R"(/// -x of a number.
inline ramet::Scalar negative(const ramet::Scalar& x) {
  if (x.isFloatingPoint()) return -x.toDouble();
  return static_cast<int64_t>(-static_cast<uint64_t>(x.toLong()));
}
)"},
      {"round", R"(/// Half to even.
inline double round(double x) {
  return std::isinf(x) ? x : std::copysign(x - std::remainder(x, 1.0), x);
}
)"},
      {"to_integer", R"(/// Python's int(x). Out of range it is the least integer.
inline int64_t to_integer(double x) {
  if (x >= -0x1p63 && x < 0x1p63) return static_cast<int64_t>(x);
  return std::numeric_limits<int64_t>::min();
}
inline int64_t to_integer(const ramet::Scalar& x) {
  return x.isFloatingPoint() ? python::to_integer(x.toDouble()) : x.toLong();
}
)"},
      {"range_length", R"(/// The number of rounds of range(low, high, step).
inline int64_t range_length(int64_t low, int64_t high, int64_t step) {
  if (step == 0) throw ramet::Error("[range] got a step of 0, expected another");
  if (step > 0 ? low >= high : low <= high) return 0;
  const auto bits = [](int64_t x) { return static_cast<uint64_t>(x); };
  const uint64_t width = step > 0 ? bits(high) - bits(low) : bits(low) - bits(high);
  return static_cast<int64_t>((width - 1) / (step > 0 ? bits(step) : 0 - bits(step)) + 1);
}
)"},
      {"ints", R"(/// Tensors of one element as numbers.
inline std::vector<int64_t> ints(const std::vector<ramet::Tensor>& tensors) {
  std::vector<int64_t> list;
  for (const ramet::Tensor& t : tensors) list.push_back(t.item<int64_t>());
  return list;
}
)"},
      {"floats", R"(/// Integers as floating-point numbers.
inline std::vector<double> floats(ramet::IntArrayRef list) {
  return {list.begin(), list.end()};
}
)"},
      {"kDtypes", dtypes()},
      {"number_of", R"(/// PyTorch's number of a dtype.
inline int64_t number_of(ramet::ScalarType dtype) {
  for (const auto& [number, known] : python::kDtypes)
    if (known == dtype) return number;
  throw ramet::Error("[number_of] got a dtype that PyTorch's files have no number for");
}
)"},
      {"scalar_type", R"(/// The dtype of PyTorch's number.
inline ramet::ScalarType scalar_type(int64_t number) {
  for (const auto& [known, dtype] : python::kDtypes)
    if (known == number) return dtype;
  throw ramet::Error("[scalar_type] got a number that is no dtype");
}
)"},
      {"device_type", R"(/// The name of a device's type.
inline std::string device_type(const ramet::Device& device) {
  return device.type() == ramet::kCUDA ? "cuda" : "cpu";
}
)"},
  };
}

std::vector<Helper> helpers_of_texts() {
  return {
      {"text", R"(/// Python's format.format(...), with values as PyTorch prints them.
template <class... T> std::string text(const std::string& format, const T&... values) {
  auto out = ramet::detail::classic<std::ostringstream>();
  size_t at = 0;
  const auto put = [&](const ramet::IValue& value) {
    const size_t next = format.find("{}", at);
    if (next == std::string::npos) return;
    out << format.substr(at, next - at) << value;
    at = next + 2;
  };
  (put(values), ...);
  if (format.find("{}", at) != std::string::npos)
    throw ramet::Error("[format] got " + std::to_string(sizeof...(values)) + " values for '" +
                       format + "', expected more");
  out << format.substr(at);
  return out.str();
}
)"},
      {"upper", R"(/// Python's text.upper(), of ASCII's letters.
inline std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}
)"},
      {"lower", R"(/// Python's text.lower(), of ASCII's letters.
inline std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}
)"},
      {"join", R"(/// Python's between.join(texts).
template <class List> std::string join(const std::string& between, const List& texts) {
  std::string made;
  for (size_t i = 0; i < texts.size(); ++i) made += (i > 0 ? between : "") + texts[i];
  return made;
}
)"},
      {"part", R"(/// The start and the end that two numbers name; PyTorch's -1 is the end.
inline std::pair<size_t, size_t> part(const std::string& text, int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(text.size());
  if (end < 0) end = std::max<int64_t>(0, size + end + 1);
  if (start < 0) start = std::max<int64_t>(0, size + start);
  return {static_cast<size_t>(std::min(start, size)), static_cast<size_t>(std::min(end, size))};
}
)"},
      {"starts_with", R"(/// Python's text.startswith(with, start, end).
inline bool starts_with(const std::string& text, const std::string& with, int64_t start,
                        int64_t end) {
  const auto [first, last] = python::part(text, start, end);
  return first + with.size() <= last && text.compare(first, with.size(), with) == 0;
}
)"},
      {"ends_with", R"(/// Python's text.endswith(with, start, end).
inline bool ends_with(const std::string& text, const std::string& with, int64_t start,
                      int64_t end) {
  const auto [first, last] = python::part(text, start, end);
  return first + with.size() <= last &&
         text.compare(last - with.size(), with.size(), with) == 0;
}
)"},
  };
}

std::vector<Helper> helpers_of_programs() {
  return {
      {"Leave",
       R"(/// The end of a `with` block, on every way out. An exception of its own is dropped where another
/// one leaves the block.
template <class F> class Leave {
 public:
  explicit Leave(F exit) : exit_(exit) {}
  Leave(const Leave&) = delete;
  Leave& operator=(const Leave&) = delete;
  ~Leave() noexcept(false) {
    if (std::uncaught_exceptions() == before_) {
      exit_();
    } else {
      try {
        exit_();
      } catch (const std::exception&) {}
    }
  }

 private:
  F exit_;
  const int before_ = std::uncaught_exceptions();
};
)"},
      {"Future",
       R"(/// What fork() gives: it has run already. An exception inside comes out of wait().
template <class T> class Future {
 public:
  Future() = default;
  template <class F> explicit Future(const F& run) {
    try {
      value_ = run();
    } catch (const std::exception&) { error_ = std::current_exception(); }
  }
  const T& wait() const {
    if (error_) std::rethrow_exception(error_);
    return value_;
  }

 private:
  T value_{};
  std::exception_ptr error_;
};
)"},
      {"spans", R"(/// The spans of time that are open in this thread, outermost first.
inline std::vector<std::pair<int64_t, std::unique_ptr<ramet::RecordScope>>>& spans() {
  thread_local std::vector<std::pair<int64_t, std::unique_ptr<ramet::RecordScope>>> open;
  return open;
}
)"},
      {"begin_span", R"(/// Begins a span, and returns its number.
inline int64_t begin_span(const std::string& name) {
  static std::atomic<int64_t> last{0};
  python::spans().emplace_back(++last, std::make_unique<ramet::RecordScope>(name));
  return python::spans().back().first;
}
)"},
      {"end_span", R"(/// Ends a span, and those that began later.
inline void end_span(int64_t number) {
  auto& open = python::spans();
  const auto at = std::find_if(open.begin(), open.end(),
                               [&](const auto& span) { return span.first == number; });
  if (at == open.end()) return;
  while (open.back().first != number) open.pop_back();
  open.pop_back();
}
)"},
  };
}

}  // namespace

const std::vector<Helper>& helpers() {
  static const std::vector<Helper> all = [] {
    std::vector<Helper> made;
    for (auto* part : {&helpers_of_numbers, &helpers_of_texts, &helpers_of_lists,
                       &helpers_of_values, &helpers_of_programs, &helpers_of_layers})
      for (Helper& helper : part()) made.push_back(std::move(helper));
    return made;
  }();
  return all;
}

}  // namespace ramet::script
