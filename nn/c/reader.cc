#include <algorithm>
#include <nlohmann/json.hpp>

#include "nn/c/reader_internal.h"
#include "nn/serialize/json_internal.h"

namespace ramet::c {
namespace {

using nn::detail::kAsBefore;
using nn::detail::kNeeded;
using nn::detail::kNotNegative;
using nn::detail::kPositive;

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

// Reads what is given for an option.
class Value {
 public:
  Value(const Reader& reader, const Field& field, const Json& given, std::string place)
      : r_(reader), f_(field), given_(given), place_(std::move(place)) {}

  void operator()(bool* at) const {
    if (!given_.is_boolean()) r_.refuse(place_, "true or false", given_);
    *at = given_.get<bool>();
  }
  void operator()(double* at) const {
    if (!given_.is_number()) r_.refuse(place_, "a number", given_);
    *at = given_.get<double>();
  }
  void operator()(int64_t* at) const {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const bool fits = given_.is_number_integer() &&
                      (!given_.is_number_unsigned() || given_.get<uint64_t>() <= kMost);
    const auto value = fits ? given_.get<int64_t>() : int64_t{0};
    const bool below = (f_.use & kPositive && value < 1) || (f_.use & kNotNegative && value < 0);
    if (!fits || below) r_.refuse(place_, words(), given_);
    *at = value;
  }
  void operator()(std::string* at) const {
    if (!given_.is_string()) r_.refuse(place_, "a text", given_);
    *at = given_.get<std::string>();
  }
  // null stands for none.
  template <class T> void operator()(std::optional<T>* at) const {
    if (given_.is_null()) return at->reset();
    T there{};
    (*this)(&there);
    *at = std::move(there);
  }
  void operator()(std::vector<int64_t>* at) const {
    if (!given_.is_array() && !given_.is_number_integer())
      r_.refuse(place_, words() + " or a list of them", given_);
    if (given_.is_array() && given_.empty() && f_.called) r_.refuse(place_, f_.called, given_);
    at->assign(given_.is_array() ? given_.size() : 1, 0);
    read_all(at->data(), at->size());
  }
  void operator()(std::vector<double>* at) const {
    if (given_.is_array() ? given_.empty() : !given_.is_number())
      r_.refuse(place_, "a list of numbers", given_);
    at->assign(given_.is_array() ? given_.size() : 1, 0);
    read_all(at->data(), at->size());
  }
  void operator()(Tensor*) const { r_.refuse(place_, "no tensor in a description", given_); }
  void operator()(const nn::detail::Numbers& numbers) const {
    check_count(numbers.count);
    read_all(numbers.at, numbers.count);
  }
  void operator()(const nn::detail::OptionalNumbers& numbers) const {
    check_count(numbers.count);
    read_all(numbers.at, numbers.count);
  }
  void operator()(const nn::detail::Choice& choice) const {
    if (choice.numbers && !given_.is_string()) return (*this)(choice.numbers(choice.at, true));
    std::string word, all;
    (*this)(&word);
    for (const auto& [name, set] : choice.words) {
      const std::string plain = nn::detail::plain_word(name + 1);
      if (nn::detail::plain_word(word) == plain) return set(choice.at);
      all += (all.empty() ? " \"" : ", \"") + plain + '"';
    }
    r_.refuse(place_, "one of" + all, given_);
  }

 private:
  std::string words() const {
    return f_.use & kPositive      ? "a positive integer"
           : f_.use & kNotNegative ? "an integer, 0 or more"
                                   : "an integer";
  }
  // One number that stands for all, or a list of `count`.
  void check_count(size_t count) const {
    if (given_.is_array() ? given_.size() == count : given_.is_number() || given_.is_null()) return;
    r_.refuse(place_, words() + " or a list of " + std::to_string(count), given_);
  }
  template <class T> void read_all(T* at, size_t count) const {
    for (size_t i = 0; i < count; ++i) {
      if (!given_.is_array()) (*this)(at + i);
      else Value(r_, f_, given_[i], place_ + "[" + std::to_string(i) + "]")(at + i);
    }
  }

  const Reader& r_;
  const Field& f_;
  const Json& given_;
  const std::string place_;
};

}  // namespace

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

void Reader::read(const char* name, std::string& value) { read(Field(name, &value)); }
void Reader::read(const Field& field) {
  const Json* const given = entry(field.name);
  if (given) std::visit(Value(*this, field, *given, place(field.name)), field.at);
  else if (field.use & kNeeded && field.called) refuse(field.name, field.called);
  else if (field.use & kNeeded) need(field.name);
}
void Reader::read(const std::vector<Field>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    const Field& f = list[i];
    if (f.list) {
      i += read_numbers(list, i) - 1;
      continue;
    }
    read(f);
    if (!(f.use & kAsBefore) || entry(f.name)) continue;
    const auto &from = std::get<nn::detail::Numbers>(list[i - 1].at),
               &to = std::get<nn::detail::Numbers>(f.at);
    std::copy(from.at, from.at + from.count, to.at);
  }
}
// One option that is several numbers, from `begin` on: how many.
size_t Reader::read_numbers(const std::vector<Field>& list, size_t begin) {
  const char* const name = list[begin].list;
  size_t count = 1;
  while (begin + count < list.size() && list[begin + count].list &&
         std::string_view(list[begin + count].list) == name)
    ++count;
  const Json* const given = entry(name);
  if (!given) return count;
  if (!given->is_array() || given->size() != count)
    refuse(name, "a list of " + std::to_string(count) + " numbers");
  for (size_t i = 0; i < count; ++i) {
    const Field& f = list[begin + i];
    const Value value(*this, f, (*given)[i], place(name) + "[" + std::to_string(i) + "]");
    std::visit(value, f.at);
  }
  return count;
}

void Reader::need(const char* name) {
  if (!entry(name)) fail(op_, place(name), ": ", what_, " needs this option, got nothing");
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
