// The table of operators, made when the first of them is looked up.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "autograd/schema/table_internal.h"

namespace ramet::script {
namespace {

// Parameters that PyTorch takes by name only, unless one of the functions in kByPosition has them.
constexpr std::string_view kByName[] = {"alpha",   "approximate", "beta",  "correction", "decimals",
                                        "dtype",   "generator",   "right", "rounding_mode",
                                        "stable",  "value_",      "scale", "enable_gqa"};
struct ByPosition {
  std::string_view function, parameter;
};
constexpr ByPosition kByPosition[] = {{"softmax", "dtype"}, {"log_softmax", "dtype"}};

// Rows that are Ramet's own, or differ from ATen's operator of that name.
constexpr std::string_view kNotAten[] = {"packed_scaled_dot_product_attention"};

bool has(ArrayRef<std::string_view> list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// The default of a C++ parameter, as schemas write it.
std::string default_text(std::string_view text, std::string_view type) {
  const bool optional = type.back() == '?';
  if (text == "{}") return !optional && type.substr(type.size() - 2) == "[]" ? "[]" : "None";
  if (text == "std::nullopt") return "None";
  if (text == "true") return "True";
  if (text == "false") return "False";
  if (const size_t at = text.rfind("::"); at != std::string_view::npos)
    return std::string(text.substr(at + 2));
  if (text.front() == '{') {
    std::string list("[");
    return list.append(text.substr(1, text.size() - 2)).append("]");
  }
  return std::string(text);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The items of "(a, b<c, d> e = {1, 2})": commas inside brackets and quotes do not part them.
std::vector<std::string_view> items_of(std::string_view list) {
  std::vector<std::string_view> items;
  list = list.substr(1, list.size() - 2);
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    if (c == '<' || c == '(' || c == '{') ++depth;
    else if (c == '>' || c == ')' || c == '}') --depth;
    else if (c == ',' && depth == 0) {
      if (const std::string_view item = trimmed(list.substr(begin, i - begin)); !item.empty())
        items.push_back(item);
      begin = i + 1;
    }
  }
  return items;
}

// How many times one number is repeated where a list of integers is expected.
int repeats(std::string_view function, std::string_view parameter) {
  if (parameter == "normalized_shape") return 0;
  const std::string_view rest = function.substr(function.size() - std::min<size_t>(2, function.size()));
  for (const auto& [end, count] : {std::pair("1d", 1), {"2d", 2}, {"3d", 3}})
    if (rest == end) return count;
  return parameter == "dim" || parameter == "shifts" ? 1 : 0;
}

// The schema of a row.
std::string schema_of(const Row& row) {
  std::string text("aten::");
  text.append(row.name).append("(");
  const std::vector<std::string_view> items = items_of(row.parameters);
  const std::string_view function = row.name;
  bool by_name = false;
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t equals = items[i].find(" = ");
    const std::string_view declared = trimmed(items[i].substr(0, equals));
    const std::string_view name = declared.substr(declared.find_last_of(" &") + 1);
    // A method has no type for self.
    const bool is_self = items.size() > row.count && i == 0;
    std::string type(!is_self                       ? row.types[i + row.count - items.size()]
                     : declared.front() == 'T' ? "Tensor(a!)"
                                                    : "Tensor");
    if (const int n = repeats(function, name); n > 0)
      if (const size_t at = type.find("int[]"); at != std::string::npos)
        type.insert(at + 4, std::to_string(n));
    if (i > 0) text.append(", ");
    if (!by_name && has(kByName, name) &&
        std::none_of(std::begin(kByPosition), std::end(kByPosition),
                     [&](const ByPosition& p) { return p.function == function && p.parameter == name; })) {
      by_name = true;
      text.append("*, ");
    }
    text.append(type).append(" ").append(name);
    if (equals != std::string_view::npos)
      text.append("=").append(default_text(trimmed(items[i].substr(equals + 3)), type));
  }
  return text.append(") -> ").append(row.result);
}

struct Table {
  std::vector<Operator> operators;
  std::map<std::string, std::vector<const Operator*>, std::less<>> by_name;

  Table() {
    std::set<std::string, std::less<>> lined;
    const auto add = [this](Lines lines) {
      for (const Line& line : lines) operators.push_back(parse_schema(line.text, line.function));
    };
    for (const auto& lines : {lines_of_layers, lines_of_make, lines_of_tensors}) add(lines());
    for (const Operator& op : operators) lined.insert(op.name);
    std::vector<Row> rows;
    add_rows_of_layers(rows);
    add_rows_of_pointwise(rows);
    add_rows_of_shape(rows);
    for (const Row& row : rows) {
      if (has(kNotAten, row.name) || lined.count(std::string("aten::") + row.name) != 0) continue;
      operators.push_back(parse_schema(schema_of(row), row.function));
    }
    for (const auto& lines : {lines_of_numbers, lines_of_lists, lines_of_dicts, lines_of_strings,
                              lines_of_programs}) add(lines());
    for (const Operator& op : operators) by_name[op.name].push_back(&op);
  }
};

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

const std::vector<const Operator*>& operators_named(std::string_view name) {
  static const std::vector<const Operator*> none;
  const auto found = table().by_name.find(name);
  return found == table().by_name.end() ? none : found->second;
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const auto& [name, overloads] : table().by_name) names.push_back(name);
  return names;
}

}  // namespace ramet::script
