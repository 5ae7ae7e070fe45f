// Small functions that written code calls: what Python does and C++ has no word for.
#include <sstream>

#include "nn/script/translate_internal.h"

namespace ramet::script {

const std::vector<Helper>& helpers() {
  static const std::vector<Helper> all = {
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
)"},
      {"item", R"(/// Python's list[i].
template <class T> T item(const std::vector<T>& list, int64_t i) {
  return list.at(static_cast<size_t>(i < 0 ? i + static_cast<int64_t>(list.size()) : i));
}
)"},
      {"ints", R"(/// Tensors of one element as numbers.
inline std::vector<int64_t> ints(const std::vector<ramet::Tensor>& tensors) {
  std::vector<int64_t> list;
  for (const ramet::Tensor& t : tensors) list.push_back(t.item<int64_t>());
  return list;
}
)"},
      {"text", R"(/// Python's format.format(...).
template <class... T> std::string text(const std::string& format, const T&... values) {
  auto out = ramet::detail::classic<std::ostringstream>();
  size_t at = 0;
  const auto put = [&](const auto& value) {
    const size_t next = std::min(format.find("{}", at), format.size());
    out << format.substr(at, next - at) << value;
    at = std::min(next + 2, format.size());
  };
  (put(values), ...);
  out << format.substr(at);
  return out.str();
}
)"},
      {"number_of", R"(/// PyTorch's number of a dtype.
inline int64_t number_of(ramet::ScalarType dtype) {
  using S = ramet::ScalarType;
  for (const auto& [number, known] :
       {std::pair(0, S::Byte), std::pair(1, S::Char), std::pair(2, S::Short), std::pair(3, S::Int),
        std::pair(4, S::Long), std::pair(5, S::Half), std::pair(6, S::Float),
        std::pair(7, S::Double), std::pair(11, S::Bool), std::pair(15, S::BFloat16)})
    if (known == dtype) return number;
  throw ramet::Error("[number_of] got a dtype that PyTorch's files have no number for");
}
)"},
      {"scalar_type", R"(/// The dtype of PyTorch's number.
inline ramet::ScalarType scalar_type(int64_t number) {
  using S = ramet::ScalarType;
  for (const auto& [known, dtype] :
       {std::pair(0, S::Byte), std::pair(1, S::Char), std::pair(2, S::Short), std::pair(3, S::Int),
        std::pair(4, S::Long), std::pair(5, S::Half), std::pair(6, S::Float),
        std::pair(7, S::Double), std::pair(11, S::Bool), std::pair(15, S::BFloat16)})
    if (known == number) return dtype;
  throw ramet::Error("[scalar_type] got a number that is no dtype");
}
)"},
  };
  return all;
}

}  // namespace ramet::script
