#include <algorithm>
#include <nlohmann/json.hpp>

#include "nn/c/reader_internal.h"
#include "nn/serialize/json_internal.h"

namespace ramet::c {
namespace {

// As it stands in the text, cut where it is long.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) {
    text.resize(60);
    while (!text.empty() && (text.back() & 0xc0) == 0x80) text.pop_back();
    if (!text.empty() && (text.back() & 0x80)) text.pop_back();
    text += "...";
  }
  return text;
}

constexpr int kMaxLevels = 256;

const char* words_of(Range range) {
  switch (range) {
    case Range::kPositive: return "a positive integer";
    case Range::kNotNegative: return "an integer, 0 or more";
    default: return "an integer";
  }
}

}  // namespace

namespace detail {
std::string plain_word(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (ramet::detail::is_letter_or_digit(c)) plain += ramet::detail::lower(c);
  return plain;
}
}  // namespace detail

std::shared_ptr<const Json> parse_json(const char* op, const std::string& text) {
  return std::make_shared<const Json>(
      serialize::detail::parse_json(op, "the JSON text", text, kMaxLevels));
}

Reader::Reader(const char* op, const Json& object, std::string path, std::string what)
    : op_(op), object_(&object), path_(std::move(path)), what_(std::move(what)) {
  if (!object.is_object()) refuse(path_.empty() ? "the text" : path_, "an object", object);
}

std::string Reader::place(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

const Json* Reader::entry(const char* name) {
  if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) asked_.push_back(name);
  const auto found = object_->find(name);
  return found == object_->end() ? nullptr : &*found;
}

void Reader::refuse(const std::string& place, const std::string& expected, const Json& got) const {
  fail(op_, place, ": expected ", expected, ", got ", shown(got));
}
void Reader::refuse(const std::string& name, const std::string& expected) const {
  const auto found = object_->find(name);
  if (found == object_->end()) fail(op_, place(name), ": expected ", expected, ", got nothing");
  refuse(place(name), expected, *found);
}

int64_t Reader::whole_of(const std::string& place, const Json& value, Range range) const {
  const int64_t least = range == Range::kPositive      ? 1
                        : range == Range::kNotNegative ? 0
                                                       : std::numeric_limits<int64_t>::min();
  const bool fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() ||
       value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!fits || value.get<int64_t>() < least) refuse(place, words_of(range), value);
  return value.get<int64_t>();
}
double Reader::number_of(const std::string& place, const Json& value) const {
  if (!value.is_number()) refuse(place, "a number", value);
  return value.get<double>();
}

std::vector<std::optional<int64_t>> Reader::numbers_of(const char* name, size_t count, Range range,
                                                       bool may_be_null) {
  const Json* value = entry(name);
  if (!value) return {};
  const auto one = [&](const std::string& at, const Json& v) -> std::optional<int64_t> {
    if (may_be_null && v.is_null()) return std::nullopt;
    return whole_of(at, v, range);
  };
  if (!value->is_array()) {
    if (!value->is_number() && !value->is_null())
      refuse(place(name), std::string(words_of(range)) + " or a list of " + std::to_string(count),
             *value);
    return std::vector(count, one(place(name), *value));
  }
  if (value->size() != count)
    refuse(place(name), std::string(words_of(range)) + " or a list of " + std::to_string(count),
           *value);
  std::vector<std::optional<int64_t>> numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(one(place(name) + "[" + std::to_string(i) + "]", (*value)[i]));
  return numbers;
}
std::vector<double> Reader::reals_of(const char* name, size_t count) {
  const Json* value = entry(name);
  if (!value) return {};
  if (!value->is_array() || (count && value->size() != count) || value->empty())
    refuse(place(name),
           "a list of " + (count ? std::to_string(count) + " numbers" : std::string("numbers")),
           *value);
  std::vector<double> numbers;
  for (size_t i = 0; i < value->size(); ++i)
    numbers.push_back(number_of(place(name) + "[" + std::to_string(i) + "]", (*value)[i]));
  return numbers;
}

void Reader::read(const char* name, bool& value) {
  const Json* given = entry(name);
  if (!given) return;
  if (!given->is_boolean()) refuse(name, "true or false");
  value = given->get<bool>();
}
void Reader::read(const char* name, double& value) {
  if (const Json* given = entry(name)) value = number_of(place(name), *given);
}
void Reader::read(const char* name, int64_t& value, Range range) {
  if (const Json* given = entry(name)) value = whole_of(place(name), *given, range);
}
void Reader::read(const char* name, std::string& value) {
  const Json* given = entry(name);
  if (!given) return;
  if (!given->is_string()) refuse(name, "a text");
  value = given->get<std::string>();
}

// null, or what `read` makes of the entry.
template <class T, class F>
static void read_or_none(const Json* given, std::optional<T>& value, const F& read) {
  if (!given) return;
  if (given->is_null()) return value.reset();
  T there{};
  read(there);
  value = std::move(there);
}
void Reader::read(const char* name, std::optional<bool>& value) {
  read_or_none(entry(name), value, [&](bool& v) { read(name, v); });
}
void Reader::read(const char* name, std::optional<double>& value) {
  read_or_none(entry(name), value, [&](double& v) { read(name, v); });
}
void Reader::read(const char* name, std::optional<int64_t>& value, Range range) {
  read_or_none(entry(name), value, [&](int64_t& v) { read(name, v, range); });
}
void Reader::read(const char* name, std::optional<std::string>& value) {
  read_or_none(entry(name), value, [&](std::string& v) { read(name, v); });
}
void Reader::read(const char* name, std::vector<int64_t>& value, Range range) {
  const Json* given = entry(name);
  if (!given) return;
  if (!given->is_array() && !given->is_number_integer())
    refuse(name, std::string(words_of(range)) + " or a list of them");
  if (!given->is_array()) {
    value = {whole_of(place(name), *given, range)};
    return;
  }
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < given->size(); ++i)
    numbers.push_back(whole_of(place(name) + "[" + std::to_string(i) + "]", (*given)[i], range));
  value = std::move(numbers);
}
void Reader::read(const char* name, std::optional<std::vector<int64_t>>& value) {
  read_or_none(entry(name), value,
               [&](std::vector<int64_t>& v) { read(name, v, Range::kPositive); });
}
void Reader::read(const char* name, std::optional<std::vector<double>>& value) {
  read_or_none(entry(name), value, [&](std::vector<double>& v) {
    double one = 0;
    if (entry(name)->is_number()) read(name, one), v = {one};
    else v = reals_of(name, 0);
  });
}
void Reader::read(const char* name, std::tuple<double, double>& value) {
  const std::vector<double> v = reals_of(name, 2);
  if (!v.empty()) value = {v[0], v[1]};
}
void Reader::read(const char* name, std::tuple<double, double, double>& value) {
  const std::vector<double> v = reals_of(name, 3);
  if (!v.empty()) value = {v[0], v[1], v[2]};
}

void Reader::need(const char* name) {
  if (!entry(name)) fail(op_, place(name), ": ", what_, " needs this option, got nothing");
}
bool Reader::is_text(const char* name) {
  const Json* given = entry(name);
  return given && given->is_string();
}
double Reader::number(const char* name) {
  need(name);
  return number_of(place(name), *entry(name));
}
int64_t Reader::whole(const char* name, Range range) {
  need(name);
  return whole_of(place(name), *entry(name), range);
}
std::string Reader::text(const char* name) {
  need(name);
  std::string value;
  read(name, value);
  return value;
}

void Reader::finish() const {
  for (const auto& item : object_->items()) {
    if (std::find(asked_.begin(), asked_.end(), item.key()) != asked_.end()) continue;
    std::string all;
    for (const std::string& name : asked_) all += (all.empty() ? "" : ", ") + name;
    fail(op_, place(item.key()), ": no such option of ", what_, ", which has ",
         all.empty() ? "none" : all);
  }
}

void Reader::add_place(Error& error) const {
  error.add_context(path_.empty() ? what_ : path_ + ", " + what_);
}

}  // namespace ramet::c
