#include "autograd/graph/arguments.h"

#include "runtime/base/error.h"

namespace ramet {
namespace autograd {
namespace {

// An argument's value as its caller would write it.
struct ShowArgument {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return ramet::detail::join(value); }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(const std::vector<int64_t>& value) const {
    return ramet::detail::join(IntArrayRef(value));
  }
  std::string operator()(const Tensor& value) const {
    if (!value.defined()) return "none";
    return short_name_of(value.scalar_type()) + ramet::detail::join(value.sizes());
  }
};

}  // namespace

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

std::string Arguments::str() const {
  std::string text;
  for (const Argument& a : list_) {
    if (std::holds_alternative<std::monostate>(a.value)) continue;
    if (!text.empty()) text += ", ";
    text += std::string(a.name) + "=" + std::visit(ShowArgument(), a.value);
  }
  return text;
}

void Arguments::absent(std::string_view name) {
  fail("Arguments", "the operation has no argument '", std::string(name), "' of that kind");
}

}  // namespace autograd
}  // namespace ramet
