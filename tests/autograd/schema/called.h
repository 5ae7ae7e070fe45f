// Calls of operators as a program makes them: overloads found by the arguments' types.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograd/schema/operators_internal.h"

namespace ramet::script {

/// The type of a value; a list without items is List[Tensor].
TypePtr type_of(const IValue& value);

/// An argument; with a name where it is given by name.
struct Passing {
  IValue value;
  std::string name;
  TypePtr type;  // null: type_of(value)
  template <class T>
  Passing(T v, std::string n = {}, TypePtr t = nullptr)
      : value(std::move(v)), name(std::move(n)), type(std::move(t)) {}
};

/// How the call's overload is found. A failure of the test where there is none.
Match matched(const std::string& name, const std::vector<Passing>& arguments);
/// The value of the call.
IValue called(const std::string& name, const std::vector<Passing>& arguments);
/// Calls an operator that has been matched.
IValue call_match(const Match& match, const std::vector<Passing>& arguments);

}  // namespace ramet::script
