#include "autograd/graph/arguments.h"

namespace ramet {
namespace autograd {

Argument::Value& Arguments::next(const char* name) {
  list_.emplace_back();
  list_.back().name = name;
  return list_.back().value;
}
void Arguments::add_nothing(const char* name) { next(name) = std::monostate(); }
void Arguments::add_flag(const char* name, bool value) { next(name) = value; }
void Arguments::add_integer(const char* name, int64_t value) { next(name) = value; }
void Arguments::add_number(const char* name, double value) { next(name) = value; }
void Arguments::add_scalar(const char* name, const Scalar& value) {
  if (value.isBoolean()) add_flag(name, value.to<bool>());
  else if (value.isIntegral(false)) add_integer(name, value.to<int64_t>());
  else add_number(name, value.toDouble());
}
void Arguments::add_text(const char* name, std::string_view value) {
  next(name) = std::string(value);
}
void Arguments::add_integers(const char* name, IntArrayRef value) { next(name) = value.vec(); }
void Arguments::add_tensor(const char* name, const Tensor& value) { next(name) = value; }

std::optional<double> Arguments::number(std::string_view name, size_t n) const {
  const Argument* a = find(name, n);
  if (!a) return std::nullopt;
  if (const auto* d = std::get_if<double>(&a->value)) return *d;
  if (const auto* i = std::get_if<int64_t>(&a->value)) return static_cast<double>(*i);
  if (const auto* b = std::get_if<bool>(&a->value)) return *b;
  return std::nullopt;
}

void Arguments::absent(std::string_view name) {
  fail("Arguments", "the operation has no argument '", std::string(name), "' of that kind");
}

}  // namespace autograd
}  // namespace ramet
