// How a row of the operation table calls its function: one line for the call and its forms.
//
// CALL_IN_PLACE_OUT(add, x[0], x[1], 2) is add(x[0], x[1], 2), x[0].add_(x[1], 2) and
// add_out(out, x[0], x[1], 2), where x are the row's inputs. A form that differs from the call in
// more than its name is given to Row::changes or Row::writes.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace op_table {

using V = const std::vector<Tensor>&;
using Call = std::function<Tensor(V)>;
using OutCall = std::function<Tensor(Tensor&, V)>;

struct Calls {
  Call call;
  Call in_place;  ///< changes and returns its first argument
  OutCall out;
  template <class F> Calls(F f) : call(std::move(f)) {}
  Calls(Call call, Call in_place, OutCall out = nullptr)
      : call(std::move(call)), in_place(std::move(in_place)), out(std::move(out)) {}
};

/// Any expression of the inputs.
#define EXPRESSION(...) [=](V x) { return __VA_ARGS__; }
/// The function.
#define CALL(name, ...) [=](V x) { return name(__VA_ARGS__); }
/// The method in place.
#define IN_PLACE(name, self, ...) [=](V x) { return self.name##_(__VA_ARGS__); }
/// The function in place, which wants a tensor that is no constant.
#define FUNCTION_IN_PLACE(name, self, ...)        \
  [=](V x) {                                      \
    Tensor y = self;                              \
    return name##_(y __VA_OPT__(, ) __VA_ARGS__); \
  }
/// The out form.
#define OUT(name, ...) [=](Tensor& o, V x) { return name##_out(o, __VA_ARGS__); }

#define CALL_IN_PLACE(name, ...) Calls(CALL(name, __VA_ARGS__), IN_PLACE(name, __VA_ARGS__))
#define CALL_OUT(name, ...) Calls(CALL(name, __VA_ARGS__), nullptr, OUT(name, __VA_ARGS__))
#define CALL_IN_PLACE_OUT(name, ...) \
  Calls(CALL(name, __VA_ARGS__), IN_PLACE(name, __VA_ARGS__), OUT(name, __VA_ARGS__))
#define CALL_FUNCTION_IN_PLACE(name, ...) \
  Calls(CALL(name, __VA_ARGS__), FUNCTION_IN_PLACE(name, __VA_ARGS__))
#define CALL_FUNCTION_IN_PLACE_OUT(name, ...) \
  Calls(CALL(name, __VA_ARGS__), FUNCTION_IN_PLACE(name, __VA_ARGS__), OUT(name, __VA_ARGS__))

/// One of two results. The out form writes both: the first has x[0]'s dtype, the second `dtype_`.
#define FIRST(name, ...) [=](V x) { return std::get<0>(name(__VA_ARGS__)); }
#define SECOND(name, ...) [=](V x) { return std::get<1>(name(__VA_ARGS__)); }
#define FIRST_OUT(dtype_, name, ...)                             \
  Calls(FIRST(name, __VA_ARGS__), nullptr, [=](Tensor& o, V x) { \
    Tensor second = empty({0}, x[0].options().dtype(dtype_));    \
    return std::get<0>(name##_out(o, second, __VA_ARGS__));      \
  })
#define SECOND_OUT(name, ...)                                     \
  Calls(SECOND(name, __VA_ARGS__), nullptr, [=](Tensor& o, V x) { \
    Tensor first = empty({0}, x[0].options());                    \
    return std::get<1>(name##_out(first, o, __VA_ARGS__));        \
  })

}  // namespace op_table
}  // namespace ramet
