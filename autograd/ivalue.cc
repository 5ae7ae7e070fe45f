#include "autograd/ivalue.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <sstream>

namespace ramet {
namespace {

// All digits of a number, and a point where a whole number would look like an integer.
void show(std::ostream& out, double x) {
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << x;
  out << text.str();
  if (std::isfinite(x) && text.str().find_first_of(".e") == std::string::npos) out << '.';
}
void show(std::ostream& out, int64_t x) { out << x; }
void show(std::ostream& out, bool x) { out << (x ? "True" : "False"); }
void show(std::ostream& out, const std::string& x) { out << x; }
void show(std::ostream& out, const Tensor& x) { out << x; }
void show(std::ostream& out, std::monostate) { out << "None"; }
template <class T> void show(std::ostream& out, const std::vector<T>& list) {
  out << '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out << ", ";
    show(out, list[i]);
  }
  out << ']';
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const IValue& value) {
  std::visit([&](const auto& held) { show(out, held); }, value.value_);
  return out;
}

}  // namespace ramet
