// The table of operators, made when the first of them is looked up.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "autograd/schema/table_internal.h"

namespace ramet::script {
namespace {

// A parameter of a function; of any where that is empty.
struct Place {
  std::string_view function, parameter;
};
// Parameters that PyTorch takes by name only, with those after them:
constexpr Place kByName[] = {{"", "alpha"},
                             {"", "approximate"},
                             {"", "assume_unique"},
                             {"", "correction"},
                             {"", "decimals"},
                             {"", "dtype"},
                             {"", "driver"},
                             {"", "generator"},
                             {"", "include_self"},
                             {"", "interpolation"},
                             {"", "log_target"},
                             {"", "out_int32"},
                             {"", "path"},
                             {"", "rounding_mode"},
                             {"", "sparse_grad"},
                             {"", "stable"},
                             {"addbmm", "beta"},
                             {"addcdiv", "value"},
                             {"addcmul", "value"},
                             {"addmm", "beta"},
                             {"addmv", "beta"},
                             {"addr", "beta"},
                             {"aminmax", "dim"},
                             {"baddbmm", "beta"},
                             {"linalg_cholesky", "upper"},
                             {"linalg_cross", "dim"},
                             {"linalg_pinv", "atol"},
                             {"nonzero_static", "size"},
                             {"linalg_solve", "left"},
                             {"linalg_solve_triangular", "upper"},
                             {"scaled_dot_product_attention", "scale"}};
// Those that it takes by position all the same:
constexpr Place kByPosition[] = {{"elu", "alpha"},       {"celu", "alpha"},
                                 {"softmax", "dtype"},   {"log_softmax", "dtype"},
                                 {"rrelu", "generator"}, {"view", "dtype"}};
// Parameters that are a list of any length, and take no single number:
constexpr Place kAnyLength[] = {
    {"all", "dim"}, {"any", "dim"}, {"count_nonzero", "dim"}, {"linalg_matrix_norm", "dim"}};
// Parameters without a default in C++, where overloads would be ambiguous:
constexpr Place kOrNone[] = {{"all", "dim"},  {"any", "dim"},          {"clamp", "min"},
                             {"clip", "min"}, {"linalg_pinv", "atol"}, {"linalg_pinv", "rtol"}};
// PyTorch's names of parameters that have others here:
struct Renamed {
  std::string_view function, parameter, name;
};
constexpr Renamed kRenamed[] = {{"cholesky_solve", "L", "input2"},
                                {"linalg_cholesky", "A", "self"},
                                {"linalg_eigvalsh", "A", "self"},
                                {"linalg_matrix_power", "A", "self"},
                                {"linalg_pinv", "A", "self"},
                                {"linalg_qr", "self", "A"},
                                {"linalg_slogdet", "self", "A"},
                                {"linalg_solve_triangular", "A", "self"},
                                {"sigmoid_backward", "grad", "grad_output"},
                                {"squeeze_", "dims", "dim"},
                                {"tanh_backward", "grad", "grad_output"}};

// Rows that are Ramet's own, or differ from ATen's operator of that name.
constexpr std::string_view kNotAten[] = {"cross_entropy_loss_consuming", "linear_cross_entropy",
                                         "linear_gelu_linear",
                                         "packed_scaled_dot_product_attention"};

// The name of a function; that of its in-place form has an underscore more.
bool is_form(std::string_view form, std::string_view function) {
  if (!form.empty() && form.back() == '_') form.remove_suffix(1);
  return form == function;
}
template <size_t N>
bool has(const Place (&places)[N], std::string_view function, std::string_view parameter) {
  return std::any_of(places, places + N, [&](const Place& place) {
    return place.parameter == parameter &&
           (place.function.empty() || is_form(function, place.function));
  });
}

bool is_ours(std::string_view name) {
  return std::find(std::begin(kNotAten), std::end(kNotAten), name) != std::end(kNotAten);
}

// The default of a C++ parameter, as schemas write it.
std::string default_text(std::string_view text, std::string_view type) {
  if (text == "{}") return type.back() == ']' ? "[]" : "None";
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
int repeats(std::string_view function, std::string_view parameter, std::string_view type) {
  if (has(kAnyLength, function, parameter)) return 0;
  if (parameter == "dim" || parameter == "shifts" || (function == "roll" && parameter == "dims"))
    return function == "nuclear_norm" ? 2 : 1;
  const int sides =
      parameter == "padding" && function.find("ion_pad") != std::string_view::npos ? 2 : 1;
  if (type.back() == '?') return 0;
  if (function == "im2col" || function == "col2im") return 2;
  for (const auto& [part, count] : {std::pair("1d", 1), {"2d", 2}, {"3d", 3}})
    if (function.find(part) != std::string_view::npos) return count * sides;
  return 0;
}

// The schema of a row.
std::string schema_of(const Row& row) {
  std::string text("aten::");
  text.append(row.name).append("(");
  const std::vector<std::string_view> items = items_of(row.parameters);
  const std::string_view function = row.name;
  bool by_name = false, after_number = false;
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t equals = items[i].find(" = ");
    const std::string_view declared = trimmed(items[i].substr(0, equals));
    std::string_view name = declared.substr(declared.find_last_of(" &") + 1);
    // A method has no type for self.
    const bool is_self = items.size() > row.count && i == 0;
    std::string type(!is_self                  ? row.types[i + row.count - items.size()]
                     : declared.front() == 'T' ? "Tensor(a!)"
                                               : "Tensor");
    if (const size_t at = type.find("int[]"); at != std::string::npos)
      if (const int n = repeats(function, name, type); n > 0)
        type.insert(at + 4, std::to_string(n));
    if (i > 0) text.append(", ");
    // add(tensor, number, alpha) takes all by position.
    if (!by_name && !(after_number && name == "alpha") && has(kByName, function, name) &&
        !has(kByPosition, function, name)) {
      by_name = true;
      text.append("*, ");
    }
    after_number = name == "other" && type == "Scalar";
    const bool or_none =
        equals == std::string_view::npos && has(kOrNone, function, name) && type.back() == '?';
    const std::string_view value =
        equals != std::string_view::npos ? trimmed(items[i].substr(equals + 3)) : "";
    for (const Renamed& other : kRenamed)
      if (other.parameter == name &&
          (is_form(function, other.function) || function == other.function)) {
        name = other.name;
        break;
      }
    text.append(type).append(" ").append(name);
    if (or_none) text.append("=None");
    else if (!value.empty()) text.append("=").append(default_text(value, type));
  }
  return text.append(") -> ").append(row.result);
}

// What reads an argument for a parameter of this type (Passed).
std::string_view reader_of(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> kReaders[] = {
      {"Tensor", "tensor"},
      {"Tensor(a!)", "written"},
      {"Tensor?", "may_tensor"},
      {"int", "integer"},
      {"int?", "may_integer"},
      {"float", "real"},
      {"float?", "may_real"},
      {"bool", "truth"},
      {"bool?", "may_truth"},
      {"Scalar", "number"},
      {"Scalar?", "may_number"},
      {"int[]", "integers"},
      {"int[]?", "may_integers"},
      {"float[]", "reals"},
      {"float[]?", "may_reals"},
      {"Tensor[]", "tensors"},
      {"Tensor?[]", "optional_tensors"},
      {"str", "text"},
      {"str?", "may_text"},
      {"ScalarType", "dtype"},
      {"ScalarType?", "may_dtype"},
      {"MemoryFormat?", "may_format"},
      {"Generator?", "may_generator"}};
  for (const auto& [known, reader] : kReaders)
    if (type == known) return reader;
  fail("operators", "got a parameter of type ", type, ", expected one that Passed has");
}

// The call of a function, or of a method of its first argument.
std::string expression_of(std::string_view called, const char* const* types) {
  const bool method = called.front() == '.';
  std::string text(method ? "a.tensor(0)" : "");
  text.append(called).append("(");
  for (size_t i = 0; types[i]; ++i) {
    if (i > 0) text.append(", ");
    text.append("a.").append(reader_of(types[i])).append("(");
    text.append(std::to_string(i + (method ? 1 : 0))).append(")");
  }
  return text.append(")");
}

struct Table {
  std::vector<Operator> operators;
  std::map<std::string, std::vector<const Operator*>, std::less<>> by_name;

  Table() {
    std::set<std::string, std::less<>> lined;
    const auto add = [this](Lines lines) {
      for (const Line& line : lines) {
        operators.push_back(parse_schema(line.text, line.function));
        operators.back().expression =
            line.types ? expression_of(line.called, line.types) : line.expression;
      }
    };
    for (const auto& lines : {lines_of_layers, lines_of_attention, lines_of_make, lines_of_tensors,
                              lines_of_more, lines_of_core, lines_of_grids, lines_of_backward})
      add(lines());
    for (const Operator& op : operators) lined.insert(op.name);
    std::vector<Row> rows;
    add_rows_of_layers(rows);
    add_rows_of_pointwise(rows);
    add_rows_of_shape(rows);
    for (const Row& row : rows) {
      if (is_ours(row.name) || lined.count(std::string("aten::") + row.name) != 0) continue;
      operators.push_back(parse_schema(schema_of(row), row.function));
      operators.back().expression = expression_of(row.called, row.types);
    }
    for (const auto& lines :
         {lines_of_numbers, lines_of_lists, lines_of_dicts, lines_of_strings, lines_of_programs})
      add(lines());
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
