// Two tensors that broadcast, and places for out forms: for cases of several files.
#pragma once
#include "tools/compare/forms.h"

namespace {

struct Pair {
  Tensor a, b;
};
/// Two tensors that broadcast (seldom not), of any two types.
inline Pair pair_of(Draw& d, Values values = Values::Any, bool one_type = false) {
  const ScalarType s = d.any_type();
  const ScalarType other = d.any_type();
  const ScalarType t = one_type || d.flag(.4) ? s : other;
  const Sizes full = d.shape(0, 4);
  const Sizes left = d.broadcast(full);
  const Sizes right = d.broadcast(full);
  Pair p;
  p.a = d.tensor(left, s, values);
  p.b = d.tensor(right, t, values);
  return p;
}
/// A place for an out form: of the wanted shape or empty, of a type that fits or not.
inline Tensor place_for_out(Draw& d, const Tensor& like) {
  const ScalarType t = d.flag(.6) ? like.scalar_type() : d.any_type();
  d.say("out", dtype_name(t));
  return d.flag() ? api::empty({0}, t) : api::zeros(like.sizes(), t);
}
}  // namespace

/// The out form into any place.
#define OUT_ANY(name, ...)                               \
  WHEN_OF(#name "_out", #name "_out") {                  \
    api::NoGradGuard off;                                \
    Tensor o = place_for_out(d, api::name(__VA_ARGS__)); \
    api::name##_out(o, __VA_ARGS__);                     \
    d.out(o);                                            \
  }
#define CALL_METHOD_OUT_ANY(name, ...) CALL_METHOD(name, __VA_ARGS__) OUT_ANY(name, __VA_ARGS__)
#define CALL_METHOD_IN_PLACE_OUT_ANY(name, ...) \
  CALL_METHOD_IN_PLACE(name, __VA_ARGS__) OUT_ANY(name, __VA_ARGS__)
