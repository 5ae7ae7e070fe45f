// One of the forms of a call, drawn. The words are those of the operation table
// (tests/autograd/table/op_calls.h), and METHOD.
//
//   ONE_OF {
//     CALL_METHOD_IN_PLACE(lerp, x, y, weight)
//     WHEN("x + y") d.out(x + y);
//   }
//
// The case's Draw is `d`. Inputs are drawn before, so that all forms have the same.
#pragma once
#include "tools/compare/draw.h"

namespace {

class Choice {
 public:
  explicit Choice(Draw& d) : d_(d) {}
  /// Goes through the forms twice: once to count them, and once to run one.
  bool next() {
    if (++pass_ == 2) chosen_ = static_cast<int>(d_.integer(0, count_ - 1));
    count_ = 0;
    return pass_ < 3;
  }
  /// `covers`: the function of this form.
  bool is(const char* name, const char* covers = nullptr) {
    if (covers && d_.offered) d_.offered->insert(covers);
    if (count_++ != chosen_) return false;
    d_.say(name);
    return true;
  }

 private:
  Draw& d_;
  int pass_ = 0, count_ = 0, chosen_ = -1;
};
/// A place for an out form: empty, of the dtype of a result.
inline Tensor empty_for(const Tensor& result) { return api::empty({0}, result.scalar_type()); }

}  // namespace

#define ONE_OF for (Choice choice(d); choice.next();)
#define WHEN(name) if (choice.is(name))
/// With the name of the function.
#define WHEN_OF(name, text) if (choice.is(text, name))

#define CALL(name, ...) WHEN_OF(#name, #name) d.out(api::name(__VA_ARGS__));
#define METHOD(name, self, ...) WHEN_OF(#name, "x." #name) d.out((self).name(__VA_ARGS__));
#define IN_PLACE(name, ...) WHEN_OF(#name "_", #name "_") CHANGED(name, __VA_ARGS__)
#define FUNCTION_IN_PLACE(name, self, ...)         \
  WHEN_OF(#name "_", #name "_ function") {         \
    const Draw::Place place = d.place(self);       \
    Tensor view = place.view;                      \
    api::name##_(view __VA_OPT__(, ) __VA_ARGS__); \
    d.out(place);                                  \
  }
#define OUT(name, ...)                            \
  WHEN_OF(#name "_out", #name "_out") {           \
    api::NoGradGuard off;                         \
    Tensor o = empty_for(api::name(__VA_ARGS__)); \
    api::name##_out(o, __VA_ARGS__);              \
    d.out(o);                                     \
  }
/// The out form of values, of this dtype, and of positions.
#define OUT_BOTH(name, dtype, ...)                                       \
  WHEN_OF(#name "_out", #name "_out") {                                  \
    api::NoGradGuard off;                                                \
    Tensor v = api::empty({0}, dtype), at = api::empty({0}, api::kLong); \
    api::name##_out(v, at, __VA_ARGS__);                                 \
    d.out(std::tuple<Tensor, Tensor>(v, at));                            \
  }
/// What IN_PLACE does, for a form with conditions of its own.
#define CHANGED(name, self, ...)             \
  {                                          \
    const Draw::Place place = d.place(self); \
    place.view.name##_(__VA_ARGS__);         \
    d.out(place);                            \
  }

#define CALL_OUT(name, ...) CALL(name, __VA_ARGS__) OUT(name, __VA_ARGS__)
#define CALL_METHOD(name, ...) CALL(name, __VA_ARGS__) METHOD(name, __VA_ARGS__)
#define CALL_METHOD_OUT(name, ...) CALL_METHOD(name, __VA_ARGS__) OUT(name, __VA_ARGS__)
#define CALL_METHOD_IN_PLACE(name, ...) CALL_METHOD(name, __VA_ARGS__) IN_PLACE(name, __VA_ARGS__)
#define CALL_METHOD_IN_PLACE_OUT(name, ...) \
  CALL_METHOD_IN_PLACE(name, __VA_ARGS__) OUT(name, __VA_ARGS__)
#define CALL_FUNCTION_IN_PLACE(name, ...) \
  CALL(name, __VA_ARGS__) FUNCTION_IN_PLACE(name, __VA_ARGS__)
