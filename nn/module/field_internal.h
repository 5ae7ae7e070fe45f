// One option of a module or an optimizer, as a list of options has it. Printing, files, comparison,
// checks of ranges and the C interface go by such lists.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "nn/module/enum.h"
#include "nn/module/expanding_array.h"

namespace ramet {
class Tensor;
}  // namespace ramet

namespace ramet::nn::detail {

/// An ExpandingArray's numbers, of which each may be none in the second form.
struct Numbers {
  int64_t* at;
  size_t count;
};
struct OptionalNumbers {
  std::optional<int64_t>* at;
  size_t count;
};
/// One of several words, or numbers or a function where the option takes these too.
struct Choice {
  void* at;
  const char* (*text)(const void* at);  // "kMean"; null: it is no word now
  std::vector<std::pair<const char*, void (*)(void* at)>> words;
  /// The numbers that it holds, if any; `become`: makes it numbers first. Null: it takes none.
  Numbers (*numbers)(void* at, bool become) = nullptr;
};

/// Where the option's value is.
using Place =
    std::variant<bool*, double*, int64_t*, std::string*, std::optional<bool>*,
                 std::optional<double>*, std::optional<int64_t>*, std::optional<std::string>*,
                 std::vector<int64_t>*, std::optional<std::vector<int64_t>>*,
                 std::optional<std::vector<double>>*, Numbers, OptionalNumbers, Choice, Tensor*>;

template <class T, class = void> struct is_word : std::false_type {};
template <class T> struct is_word<T, std::void_t<decltype(T::text())>> : std::true_type {};

template <class T> Place place_of(T* at) { return at; }
template <size_t D> Place place_of(ExpandingArray<D>* at) { return Numbers{(*at)->data(), D}; }
template <size_t D> Place place_of(ExpandingArrayWithOptionalElem<D>* at) {
  return OptionalNumbers{(*at)->data(), D};
}
template <class V, class E> void add_word(Choice& choice) {
  if constexpr (is_word<E>::value)
    choice.words.emplace_back(E::text(), [](void* at) { *static_cast<V*>(at) = E(); });
}
template <class V, size_t D> void add_numbers(Choice& choice, const ExpandingArray<D>*) {
  choice.numbers = [](void* at, bool become) -> Numbers {
    V& value = *static_cast<V*>(at);
    if (become) value = ExpandingArray<D>(int64_t{0});
    auto* numbers = std::get_if<ExpandingArray<D>>(&value);
    return numbers ? Numbers{(*numbers)->data(), D} : Numbers{nullptr, 0};
  };
}
template <class V> void add_numbers(Choice&, const void*) {}
template <class... E> Place place_of(OneOf<E...>* at) {
  using V = OneOf<E...>;
  Choice choice{at, [](const void* v) { return static_cast<const V*>(v)->text(); }, {}};
  (add_word<V, E>(choice), ...);
  return choice;
}
template <class... E> Place place_of(std::variant<E...>* at) {
  using V = std::variant<E...>;
  const auto text = [](const void* v) {
    return std::visit(
        [](const auto& held) -> const char* {
          if constexpr (is_word<std::decay_t<decltype(held)>>::value) return held.text();
          else return nullptr;
        },
        *static_cast<const V*>(v));
  };
  Choice choice{at, text, {}};
  (add_word<V, E>(choice), ...);
  (add_numbers<V>(choice, static_cast<const E*>(nullptr)), ...);
  return choice;
}

/// What else a list says of a module's option.
enum Use : unsigned {
  // Printed as "name=value", unless it is:
  kBare = 1,        // the value alone
  kIfChanged = 2,   // only where it differs from its default
  kNotPrinted = 4,  // as LibTorch does not print it either
  kBoolalpha = 8,   // leaves the stream at std::boolalpha, as a printed bool does
  kInBraces = 256,  // {2, 3}; other lists have brackets
  // Of the whole list, in any entry: no option is printed,
  kNameAlone = 512,    // but the class's name without parentheses
  kModuleName = 1024,  // but Module::name(), as by a module without pretty_print
  // Read by the C interface:
  kNeeded = 16,
  kNotNegative = 32,
  kPositive = 64,
  kAsBefore = 128,  // where it is not given: as the option before it
  kCount = kNeeded | kPositive,
};

/// One option.
struct Field {
  template <class T>
  Field(const char* option, T* at_, unsigned use_ = 0, const char* called_ = nullptr,
        const char* shown_ = nullptr)
      : name(option), at(place_of(at_)), use(use_), called(called_), shown(shown_) {}
  /// Of an optimizer, a number with a range: from 0 on, and below 1 if it is a `fraction`.
  Field(const char* option, double* at_, const char* called_, bool fraction_ = false,
        const char* list_ = nullptr)
      : name(option), at(at_), called(called_), fraction(fraction_), list(list_) {}

  const char* name;
  Place at;
  unsigned use = 0;
  /// In error texts: a number's name, "Invalid weight_decay value: -1", or what is expected where a
  /// needed option is not given.
  const char* called = nullptr;
  /// The name that is printed; null: `name`.
  const char* shown = nullptr;
  bool fraction = false;
  /// The option of which this is one number, "betas"; null: it is an option itself.
  const char* list = nullptr;
};

/// A list with one option more, at its end or at a place.
std::vector<Field> with(std::vector<Field> list, const Field& added);
std::vector<Field> with(std::vector<Field> list, size_t place, const Field& added);
/// Does an entry say `use`?
bool any_says(const std::vector<Field>& list, Use use);

bool same(const Field& a, const Field& b);
/// "valid" of "kValid", "nearestexact" of "kNearestExact", "nearest-exact" and "NearestExact".
std::string plain_word(const std::string& name);
/// "ramet::nn::Linear(in_features=2, out_features=3, bias=true)" of LinearImpl. `fresh`: a list of
/// defaults.
void print_module(std::ostream& stream, const std::type_info& type, const std::vector<Field>& list,
                  const std::vector<Field>& fresh);

/// Options with their defaults. What has no default is 1.
template <class Options> Options fresh_options() {
  constexpr int64_t kOne = 1;
  if constexpr (std::is_default_constructible_v<Options>) return Options();
  else if constexpr (std::is_constructible_v<Options, int64_t>) return Options(kOne);
  else if constexpr (std::is_constructible_v<Options, int64_t, int64_t>) return {kOne, kOne};
  else if constexpr (std::is_constructible_v<Options, int64_t, int64_t, int64_t>)
    return {kOne, kOne, kOne};
  else if constexpr (std::is_constructible_v<Options, std::vector<int64_t>>)
    return Options(std::vector<int64_t>());
  else return {kOne, std::vector<int64_t>()};
}

}  // namespace ramet::nn::detail
