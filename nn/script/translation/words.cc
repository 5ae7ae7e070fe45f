// Words of operators' expressions: which of them code outside of autograd/schema may say.
#include <algorithm>
#include <set>

#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

// Functions and variables that lines of autograd/schema have for themselves, and macros.
constexpr std::string_view kOwn[] = {"IValue",
                                     "RAMET_CHECK",
                                     "Sub",
                                     "affine",
                                     "as_tensor",
                                     "attend",
                                     "bags",
                                     "begin_span",
                                     "broadcast",
                                     "broadcast_sizes",
                                     "capitalized",
                                     "cased",
                                     "character",
                                     "check",
                                     "check_divisor",
                                     "check_metadata",
                                     "check_range",
                                     "constructed",
                                     "convolve_by_name",
                                     "copy",
                                     "count",
                                     "device_of",
                                     "digits",
                                     "drop",
                                     "dtype_of",
                                     "encoder_layer",
                                     "end_span",
                                     "ended",
                                     "equal_values",
                                     "extend",
                                     "factorial",
                                     "filled_as",
                                     "find",
                                     "find_last",
                                     "first_numbers",
                                     "float_of_text",
                                     "format",
                                     "format_of",
                                     "found",
                                     "from_exponent",
                                     "from_pairs",
                                     "functional_norm_of_batch",
                                     "given",
                                     "gradient_of",
                                     "gradients",
                                     "int_of_text",
                                     "is_blank",
                                     "is_digit",
                                     "is_format",
                                     "is_letter",
                                     "is_lower",
                                     "is_titled",
                                     "is_upper",
                                     "item_at",
                                     "length",
                                     "likelihood",
                                     "lines",
                                     "lists_less",
                                     "made",
                                     "mapped",
                                     "norm_except",
                                     "norm_of_batch",
                                     "norm_of_groups",
                                     "norm_of_layer",
                                     "number_of",
                                     "of_convolution",
                                     "of_embedding",
                                     "of_group_norm",
                                     "of_layer_norm",
                                     "of_max_pool",
                                     "pack",
                                     "padded",
                                     "partition",
                                     "parts",
                                     "percent_format",
                                     "permuted",
                                     "pop_item",
                                     "popped",
                                     "power_of_ints",
                                     "present",
                                     "quotient_and_rest",
                                     "raise",
                                     "range_length",
                                     "replaced",
                                     "result",
                                     "rrelu_and_noise",
                                     "rrelu_with",
                                     "sampled",
                                     "scatter_by",
                                     "script",
                                     "set_default",
                                     "shifted",
                                     "shown",
                                     "split_last",
                                     "stripped",
                                     "swapped",
                                     "titled",
                                     "to",
                                     "to_integer",
                                     "trilinear",
                                     "unpack",
                                     "void",
                                     "with_list",
                                     "wrapped_sum",
                                     "x",
                                     "zero_filled"};

// Words of C++ itself, macros, and the namespace of helpers().
constexpr std::string_view kPlain[] = {"std",         "true",       "false",  "int64_t", "double",
                                       "static_cast", "bool",       "const",  "int",     "uint64_t",
                                       "nullptr",     "RAMET_WARN", "python", "M_PI",    "char",
                                       "for",         "return",     "auto"};

template <size_t n> bool is_among(const std::string_view (&words)[n], std::string_view w) {
  return std::find(std::begin(words), std::end(words), w) != std::end(words);
}

bool has_end(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Calls f(word, is_member, after) for each word of an expression that is no literal and no number.
template <class F> void for_each_word(std::string_view e, F&& f) {
  for (size_t i = 0; i < e.size();) {
    if (e[i] == '"') {
      const size_t end = e.find('"', i + 1);
      i = end == std::string_view::npos ? e.size() : end + 1;
    } else if (!in_word(e[i])) {
      ++i;
    } else {
      const size_t begin = i;
      while (i < e.size() && in_word(e[i])) ++i;
      const std::string_view before = e.substr(0, begin);
      const bool member = has_end(before, ".") || has_end(before, "::") || has_end(before, "->");
      if (e[begin] > '9') f(e.substr(begin, i - begin), member, i);
    }
  }
}

template <class F> void for_each_expression(F&& f) {
  for (const std::string& name : operator_names())
    for (const Operator* op : operators_named(name)) {
      const Special* const special = special_of(*op);
      f(special ? special->expression : std::string_view(op->expression));
    }
}

// The word with what follows it after "::": "linalg::inv".
std::string whole_name(std::string_view e, std::string_view word, size_t after) {
  std::string name(word);
  // A class's members belong to the class.
  while (e.substr(after, 2) == "::" && (word[0] < 'A' || word[0] > 'Z')) {
    size_t end = after + 2;
    while (end < e.size() && in_word(e[end])) ++end;
    name += e.substr(after, end - after);
    after = end;
  }
  return name;
}

}  // namespace

bool is_own_word(std::string_view word) { return is_among(kOwn, word); }
bool is_plain_word(std::string_view word) { return is_among(kPlain, word); }

std::vector<std::string> names_in_expressions() {
  std::set<std::string> names;
  for_each_expression([&](std::string_view e) {
    std::vector<std::string> found;
    bool own = false;  // such an expression is not written
    for_each_word(e, [&](std::string_view w, bool member, size_t after) {
      own = own || (!member && is_own_word(w));
      if (!member && w != "a" && w != "refuse" && w != "ramet" && !is_plain_word(w))
        found.push_back(whole_name(e, w, after));
    });
    if (!own) names.insert(found.begin(), found.end());
  });
  return {names.begin(), names.end()};
}

std::vector<std::string> unused_own_words() {
  std::set<std::string_view> unused(std::begin(kOwn), std::end(kOwn));
  for (const std::string& name : operator_names())
    for (const Operator* op : operators_named(name))
      for_each_word(op->expression, [&](std::string_view w, bool member, size_t) {
        if (!member) unused.erase(w);
      });
  return {unused.begin(), unused.end()};
}

}  // namespace ramet::script
