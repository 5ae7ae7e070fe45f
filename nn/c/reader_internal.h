// Reads the options of a module or an optimizer from a JSON object; errors name the place in it.
#pragma once
#include <array>
#include <cctype>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "nn/module/any_module.h"
#include "nn/module/enum.h"
#include "nn/module/expanding_array.h"

namespace ramet::c {

using Json = nlohmann::json;

/// Strict: an Error of `op` on what is no JSON, or has a key twice.
std::shared_ptr<const Json> parse_json(const char* op, const std::string& text);

enum class Range { kAny, kNotNegative, kPositive };

namespace detail {
template <class T, class = void> struct is_word : std::false_type {};
template <class T> struct is_word<T, std::void_t<decltype(T::text())>> : std::true_type {};
template <class T> struct is_expanding : std::false_type {};
template <size_t D, class T> struct is_expanding<ExpandingArray<D, T>> : std::true_type {};
/// "kNearestExact" is "nearestexact"; "nearest-exact" and "NearestExact" are the same.
std::string plain_word(const std::string& name);
}  // namespace detail

/// Reads one object. The caller asks for each option by its name; finish() refuses all other
/// entries.
class Reader {
 public:
  /// `what` the options are of, "Linear"; `path`: where the object stands, "layers[2]", "" for the
  /// whole text.
  Reader(const char* op, const Json& object, std::string path, std::string what);

  const char* op() const { return op_; }
  const std::string& path() const { return path_; }
  void set_what(std::string what) { what_ = std::move(what); }
  /// The place of entry `name` in the text, for errors.
  std::string place(const std::string& name) const;
  /// The entry, or null if there is none. Marks it as known for finish().
  const Json* entry(const char* name);

  // Where there is no such entry the value stays as it is.
  void read(const char* name, bool& value);
  void read(const char* name, double& value);
  void read(const char* name, int64_t& value, Range range = Range::kAny);
  void read(const char* name, std::string& value);
  // null stands for none.
  void read(const char* name, std::optional<bool>& value);
  void read(const char* name, std::optional<double>& value);
  void read(const char* name, std::optional<int64_t>& value, Range range = Range::kAny);
  void read(const char* name, std::optional<std::string>& value);
  void read(const char* name, std::vector<int64_t>& value, Range range = Range::kAny);
  void read(const char* name, std::optional<std::vector<int64_t>>& value);
  void read(const char* name, std::optional<std::vector<double>>& value);
  void read(const char* name, std::tuple<double, double>& value);
  void read(const char* name, std::tuple<double, double, double>& value);
  /// A number, or a list of D.
  template <size_t D>
  void read(const char* name, ExpandingArray<D>& value, Range range = Range::kAny) {
    const auto numbers = numbers_of(name, D, range, false);
    if (!numbers.empty()) std::transform(numbers.begin(), numbers.end(), value->begin(), no_null);
  }
  /// A number or null, or a list of D such.
  template <size_t D>
  void read(const char* name, ExpandingArrayWithOptionalElem<D>& value,
            Range range = Range::kPositive) {
    const auto numbers = numbers_of(name, D, range, true);
    if (!numbers.empty()) std::copy(numbers.begin(), numbers.end(), value->begin());
  }
  /// One of the words of an enumeration, or numbers where it takes some too.
  template <class... E> void read(const char* name, std::variant<E...>& value) {
    if constexpr ((detail::is_expanding<E>::value || ...))
      if (!is_text(name)) {
        (read_numbers<E>(name, value), ...);
        return;
      }
    read_word<E...>(name, value);
  }
  template <class... E> void read(const char* name, OneOf<E...>& value) {
    read_word<E...>(name, value);
  }
  // Where there is no such entry: an Error.
  double number(const char* name);
  int64_t whole(const char* name, Range range = Range::kAny);
  int64_t count(const char* name) { return whole(name, Range::kPositive); }
  std::string text(const char* name);
  template <size_t D> ExpandingArray<D> counts(const char* name) {
    need(name);
    ExpandingArray<D> value(int64_t{1});
    read(name, value, Range::kPositive);
    return value;
  }

  /// On an entry that no call has asked for: an Error that lists what `what` has.
  void finish() const;
  /// "layers[2].bias: expected true or false, got 3".
  [[noreturn]] void refuse(const std::string& name, const std::string& expected) const;
  [[noreturn]] void refuse(const std::string& place, const std::string& expected,
                           const Json& got) const;
  /// The module `Impl(options)`; its constructor's errors say where.
  template <class Impl, class... Options> nn::AnyModule make(const Options&... options) const {
    finish();
    try {
      return nn::AnyModule(std::make_shared<Impl>(options...));
    } catch (Error& error) {
      add_place(error);
      throw;
    }
  }

 private:
  template <class... E, class V> void read_word(const char* name, V& value) {
    std::string word;
    read(name, word);
    if (!entry(name)) return;
    std::string words;
    if (!(take_word<E>(word, value, words) || ...)) refuse(name, "one of" + words);
  }
  void need(const char* name);
  bool is_text(const char* name);
  void add_place(Error& error) const;
  int64_t whole_of(const std::string& place, const Json& value, Range range) const;
  double number_of(const std::string& place, const Json& value) const;
  /// Empty: there is no such entry.
  std::vector<std::optional<int64_t>> numbers_of(const char* name, size_t count, Range range,
                                                 bool may_be_null);
  std::vector<double> reals_of(const char* name, size_t count);
  static int64_t no_null(const std::optional<int64_t>& value) { return *value; }

  template <class E, class V> void read_numbers(const char* name, V& value) {
    if constexpr (detail::is_expanding<E>::value) {
      E numbers(int64_t{0});
      read(name, numbers, Range::kNotNegative);
      if (entry(name)) value = numbers;
    }
  }
  template <class E, class V>
  static bool take_word(const std::string& word, V& value, std::string& words) {
    if constexpr (detail::is_word<E>::value) {
      const std::string mine = detail::plain_word(E::text() + 1);
      words += (words.empty() ? " \"" : ", \"") + mine + '"';
      if (detail::plain_word(word) != mine) return false;
      value = E();
      return true;
    } else {
      return false;
    }
  }

  const char* op_;
  const Json* object_;
  std::string path_, what_;
  std::vector<std::string> asked_;
};

}  // namespace ramet::c
