// What operators on numbers, lists and dictionaries share.
#pragma once
#include <algorithm>
#include <limits>

#include "autograd/schema/arguments_internal.h"

namespace ramet::script {

/// An operator as a line: PyTorch's schema, and its value as an expression of the call `a`.
#define RAMET_LINE(text, ...)                       \
  {                                                 \
    text,                                           \
        [](Arguments arguments) -> IValue {         \
          [[maybe_unused]] const Call a(arguments); \
          return result(__VA_ARGS__);               \
        },                                          \
        #__VA_ARGS__                                \
  }
/// An operator without a result: statements.
#define RAMET_LINE_DO(text, ...)                    \
  {                                                 \
    text,                                           \
        [](Arguments arguments) -> IValue {         \
          [[maybe_unused]] const Call a(arguments); \
          __VA_ARGS__;                              \
          return {};                                \
        },                                          \
        #__VA_ARGS__                                \
  }

/// An operator that is a function of C++ without overloads.
#define RAMET_FUNCTION_LINE(text, function)                                                       \
  {                                                                                               \
    text, &Bound<std::remove_pointer_t<decltype(&ramet::function)>>::thunk<&ramet::function>, "", \
        #function, Bound<std::remove_pointer_t<decltype(&ramet::function)>>::kTypes               \
  }
/// The last parameters of functions that make a tensor: Call::options() reads them.
#define RAMET_OPTIONS_OF(dtype) \
  "ScalarType? dtype=" dtype ", Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define RAMET_OPTIONS RAMET_OPTIONS_OF("None")

/// Equality as TorchScript's `==`: of numbers by value, of lists item by item, of tensors by all
/// elements.
bool equal_values(const IValue& a, const IValue& b);

/// Where a list, dictionary or tuple holds its items. Null for lists of numbers and tensors, and
/// for other values.
const void* shared_items(const IValue& value);

/// Appends a value as str() prints it. An Error where the text gets longer than 2^24 characters:
/// values that share parts may print as any number of them.
void append_text(std::string& made, const IValue& value);
/// For errors: its first characters.
std::string short_text(const IValue& value);

/// The dimensions first .. end - 1.
std::vector<int64_t> dims_from(int64_t first, int64_t end);
/// The dtype of a norm's statistics and steps: float32 for numbers of 16 bits, else the tensor's.
ScalarType statistics_dtype(const Tensor& x);

/// A place in a list of `size`: a negative one counts from the end. An IndexError outside.
size_t place(int64_t index, size_t size, const char* op);

/// Calls `f` with the List that a value holds. Changes of that are changes of the value.
template <class F> decltype(auto) with_list(const IValue& list, F&& f) {
  if (list.isIntList()) return f(list.toIntList());
  if (list.isDoubleList()) return f(list.toDoubleList());
  if (list.isBoolList()) return f(list.toBoolList());
  if (list.isTensorList()) return f(list.toTensorList());
  return f(list.toList());
}
size_t length(const IValue& list);
/// An item; a negative index counts from the end. An IndexError outside.
IValue item_at(const IValue& list, int64_t index);

/// Which items of `size` a slice takes: the first, how many, and the step.
struct Sliced {
  int64_t first, count, step;
};
Sliced sliced(std::optional<int64_t> start, std::optional<int64_t> end, int64_t step, int64_t size);

}  // namespace ramet::script
