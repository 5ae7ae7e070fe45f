// Values of the graph's JSON, checked as they are read.
#include <cmath>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {

std::string Field::kind() const {
  switch (json_->type()) {
    case Json::value_t::null: return "null";
    case Json::value_t::object: return "an object";
    case Json::value_t::array: return "a list";
    case Json::value_t::string: return "a text";
    case Json::value_t::boolean: return "a bool";
    default: return "the number " + json_->dump();
  }
}

Field Field::operator[](const std::string& key) const {
  if (const std::optional<Field> found = find(key)) return *found;
  bad("got no \"", key, "\", expected it");
}

std::optional<Field> Field::find(const std::string& key) const {
  if (!json_->is_object()) bad("got ", kind(), ", expected an object with \"", key, "\"");
  const auto at = json_->find(key);
  if (at == json_->end() || at->is_null()) return std::nullopt;
  return Field(*at, *file_, path_.empty() ? key : path_ + "." + key);
}

std::vector<Field> Field::items() const {
  if (!json_->is_array()) bad("got ", kind(), ", expected a list");
  std::vector<Field> list;
  list.reserve(json_->size());
  for (size_t i = 0; i < json_->size(); ++i)
    list.emplace_back((*json_)[i], *file_, path_ + "[" + std::to_string(i) + "]");
  return list;
}

std::vector<std::pair<std::string, Field>> Field::members() const {
  if (!json_->is_object()) bad("got ", kind(), ", expected an object");
  std::vector<std::pair<std::string, Field>> list;
  list.reserve(json_->size());
  for (const auto& [key, value] : json_->items())
    list.emplace_back(key, Field(value, *file_, path_ + "." + key));
  return list;
}

std::pair<std::string, Field> Field::only() const {
  if (!json_->is_object()) bad("got ", kind(), ", expected an object with one member");
  std::optional<std::pair<std::string, Field>> found;
  for (const auto& [key, value] : json_->items()) {
    if (value.is_null()) continue;
    if (found) bad("got \"", found->first, "\" and \"", key, "\", expected one of them");
    found.emplace(key, Field(value, *file_, path_ + "." + key));
  }
  if (!found) bad("got an empty object, expected one member");
  return *found;
}

std::string Field::text() const {
  if (!json_->is_string()) bad("got ", kind(), ", expected a text");
  return json_->get<std::string>();
}

int64_t Field::integer() const {
  const bool fits =
      json_->is_number_unsigned()
          ? json_->get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
          : json_->is_number_integer();
  if (!fits) bad("got ", kind(), ", expected an integer of 64 bits");
  return json_->get<int64_t>();
}

// JSON has no infinity, so PyTorch writes a text.
double Field::real() const {
  if (json_->is_string()) {
    const std::string name = text();
    if (name == "Infinity") return HUGE_VAL;
    if (name == "-Infinity") return -HUGE_VAL;
    if (name == "NaN") return std::nan("");
  }
  if (!json_->is_number()) bad("got ", kind(), ", expected a number");
  return json_->get<double>();
}

bool Field::truth() const {
  if (!json_->is_boolean()) bad("got ", kind(), ", expected true or false");
  return json_->get<bool>();
}

}  // namespace ramet::script
