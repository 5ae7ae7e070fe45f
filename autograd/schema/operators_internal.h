// The operators that TorchScript and torch.export call by name: ATen's schema for each, and the
// function that computes it. Rows of autograd/ops make most of them (rows_*.cc).
//
// Note [Operators by name]
// The lists autograd/ops/**/*.inc are included once more, with macros that make an Operator of a
// row (rows.inc). The name is ATen's. Types come from the C++ types of the parameters, names and
// defaults from their text. table.cc lists which parameters PyTorch takes by name only. A row that
// PyTorch orders differently is a line of its own with PyTorch's schema as text. So are operators
// on numbers, lists, strings and dictionaries. A name with a line of tensors has no rows. Nothing
// registers itself: a program that does not link //autograd/schema has none of it.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/schema/type_internal.h"

namespace ramet::script {

/// The arguments of a call: pointers to values that stay during the call.
using Arguments = ArrayRef<const IValue*>;
/// Computes an operator. Several results are one tuple; none is None.
using Function = IValue (*)(Arguments arguments);

/// A parameter of an operator.
struct Parameter {
  std::string name;
  TypePtr type;
  std::optional<IValue> value;  // the default
  int64_t repeat = 0;           // of int[2]: one number stands for so many
  bool by_name = false;         // only as name=value
  bool written = false;         // Tensor(a!): the operator writes it
};

/// An operator with one of its overloads.
struct Operator {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"; may be empty, or ours where PyTorch's is not known
  std::vector<Parameter> parameters;
  bool any_number = false;  // of positional arguments after the parameters (format)
  TypePtr result;
  Function function;
  /// The call in C++, with places for its arguments: "relu(a.tensor(0))". Call has the places'
  /// names (arguments_internal.h). Empty where there is no such expression.
  std::string expression = {};

  /// As PyTorch prints it: "aten::relu(Tensor self) -> Tensor".
  std::string text() const;
};

/// All overloads of a name ("aten::add"), in the order in which they are tried. Empty where there
/// are none.
const std::vector<const Operator*>& operators_named(std::string_view name);
/// All names, sorted.
std::vector<std::string> operator_names();

/// An argument as a program gives it.
struct Given {
  std::string_view name;  // empty: by position
  TypePtr type;
  /// The value of a constant, or null. It lets an empty list `[]` be of any type.
  const IValue* constant = nullptr;
};

/// How a call's arguments become an operator's.
struct Match {
  const Operator* op = nullptr;
  /// For each parameter (and then each further positional argument): which of the given arguments
  /// it takes; -1 is the default.
  std::vector<int> sources;
  /// What has to be done with the argument before the call.
  enum class Change : uint8_t {
    kNone,
    kRepeat,       // an int becomes a list of Parameter::repeat of them
    kTensorToInt,  // a tensor of one element or another number becomes a number ("implicit")
    kTensorToFloat,
    kTensorToNumber,
    kIntToFloat,
    kTensorsToInts,  // a list of tensors of one element becomes a list of ints (traces)
    kTupleToList,    // a tuple of equal types becomes a list
    kIntsToFloats,
    kItemsToList,  // a list of any values becomes one of the parameter's type
    kEmptyList,    // a constant empty list of another type becomes one of the parameter's
  };
  std::vector<Change> changes;
  /// With the variables of the schema replaced by types.
  TypePtr result;
};

/// Finds the overload that takes the arguments: first without conversions, then with them, as
/// PyTorch does. Where none does, `match.op` is null and `why` says for each overload what does not
/// fit.
Match match_operator(std::string_view name, const std::vector<Given>& given, std::string& why);
/// The same among these overloads alone, in this order.
Match match_operator(const std::vector<const Operator*>& overloads, const std::vector<Given>& given,
                     std::string& why);

/// Applies a change to an argument of a call.
IValue change(Match::Change what, const Parameter& parameter, const IValue& value);

/// A list that holds its items as a script's List[element] does. That is List<int64_t>,
/// List<double>, List<bool> or List<Tensor> where the type is such, else a GenericList.
IValue make_list(Type::Kind element, Arguments items);
IValue make_list(const TypePtr& element, const std::vector<IValue>& items);

/// Reads PyTorch's text of a schema ("aten::max.dim(Tensor self, int dim, bool keepdim=False) ->
/// (Tensor values, Tensor indices)"). Memory annotations are read for `written` only. An Error
/// where the text is no schema.
Operator parse_schema(std::string_view text, Function function);

}  // namespace ramet::script
