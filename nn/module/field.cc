#include <algorithm>
#include <ostream>
#include <typeinfo>
#include <utility>

#include "autograd/tensor.h"
#include "nn/module/any_value.h"
#include "nn/module/class_name.h"
#include "nn/module/field_internal.h"

namespace ramet::nn::detail {
namespace {

bool same_value(const Numbers& a, const Numbers& b) {
  return std::equal(a.at, a.at + a.count, b.at, b.at + b.count);
}
bool same_value(const OptionalNumbers& a, const OptionalNumbers& b) {
  return std::equal(a.at, a.at + a.count, b.at, b.at + b.count);
}
bool same_value(const Choice& a, const Choice& b) {
  const char *x = a.text(a.at), *y = b.text(b.at);
  if (x || y) return x == y || (x && y && std::string(x) == y);
  return a.numbers && same_value(a.numbers(a.at, false), b.numbers(b.at, false));
}
bool same_value(Tensor* const& a, Tensor* const& b) { return a->is_same(*b); }
template <class T> bool same_value(T* const& a, T* const& b) { return *a == *b; }

// ---- printing -----------------------------------------------------------------------------------

void print(std::ostream& s, bool value) { s << std::boolalpha << value; }
void print(std::ostream& s, double value) { s << value; }
void print(std::ostream& s, int64_t value) { s << value; }
void print(std::ostream& s, const std::string& value) { s << value; }
void print(std::ostream& s, const Tensor& value) { s << value; }
template <class T> void print(std::ostream& s, const std::vector<T>& value) {
  s << ArrayRef<T>(value);
}
template <class T> void print(std::ostream& s, const std::optional<T>& value) {
  if (value) print(s, *value);
  else s << "None";
}
void print(std::ostream& s, const Numbers& value) {
  const ramet::detail::ClassicScope classic(s);
  if (value.count == 1) s << *value.at;
  else s << IntArrayRef(value.at, value.count);
}
void print(std::ostream& s, const OptionalNumbers& value) {
  const ramet::detail::ClassicScope classic(s);
  if (value.count > 1) s << '[';
  for (size_t i = 0; i < value.count; ++i) s << (i ? ", " : ""), print(s, value.at[i]);
  if (value.count > 1) s << ']';
}
void print(std::ostream& s, const Choice& value) {
  const char* const text = value.text(value.at);
  if (text && value.numbers) s << '\'' << plain_word(text + 1) << '\'';
  else if (text) s << text;
  else if (value.numbers) print(s, value.numbers(value.at, false));
}
template <class T> void print(std::ostream& s, T* const& value) { print(s, *value); }

void print(std::ostream& s, const Field& field) {
  if (!(field.use & kBare)) s << (field.shown ? field.shown : field.name) << '=';
  if (!(field.use & kInBraces))
    return std::visit([&](const auto& value) { print(s, value); }, field.at);
  const std::vector<int64_t>& list = *std::get<std::vector<int64_t>*>(field.at);
  s << '{';
  for (size_t i = 0; i < list.size(); ++i) s << (i ? ", " : "") << list[i];
  s << '}';
}

}  // namespace

std::vector<Field> with(std::vector<Field> list, const Field& added) {
  const size_t end = list.size();
  return with(std::move(list), end, added);
}
std::vector<Field> with(std::vector<Field> list, size_t place, const Field& added) {
  list.insert(list.begin() + static_cast<std::ptrdiff_t>(place), added);
  return list;
}

bool any_says(const std::vector<Field>& list, Use use) {
  return std::any_of(list.begin(), list.end(), [use](const Field& f) { return f.use & use; });
}

bool same(const Field& a, const Field& b) {
  return std::visit(
      [&](const auto& value) {
        return same_value(value, std::get<std::decay_t<decltype(value)>>(b.at));
      },
      a.at);
}

std::string plain_word(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (ramet::detail::is_letter_or_digit(c)) plain += ramet::detail::lower(c);
  return plain;
}

void print_module(std::ostream& stream, const std::type_info& type, const std::vector<Field>& list,
                  const std::vector<Field>& fresh) {
  std::string name = type_name(type);
  name.resize(name.size() - 4);  // Impl
  stream << name;
  if (any_says(list, kNameAlone)) return;
  stream << '(';
  const char* between = "";
  for (size_t i = 0; i < list.size(); ++i) {
    const Field& f = list[i];
    if (f.use & kBoolalpha) stream << std::boolalpha;
    if (f.use & kNotPrinted || (f.use & kIfChanged && same(f, fresh[i]))) continue;
    stream << between;
    print(stream, f);
    between = ", ";
  }
  stream << ')';
}

}  // namespace ramet::nn::detail
