// RAMET_ARG: a named argument of an options class, set and read under one name.
//
//   struct LinearOptions { RAMET_ARG(bool, bias) = true; };
//   LinearOptions(3, 4).bias(false)      setters chain
#pragma once
#include <utility>

/// Declares a private member `name_` with setters that return *this and getters. Leaves the class
/// in a private section.
#define RAMET_ARG(T, name)                                 \
 public:                                                   \
  auto name(const T& new_##name)->decltype(*this) {        \
    this->name##_ = new_##name;                            \
    return *this;                                          \
  }                                                        \
  auto name(T&& new_##name)->decltype(*this) {             \
    this->name##_ = std::move(new_##name);                 \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_
