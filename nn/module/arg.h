// RAMET_ARG: a named argument of an options class, set and read under one name.
//
//   struct LinearOptions { RAMET_ARG(bool, bias) = true; };
//   LinearOptions(3, 4).bias(false)      setters chain
#pragma once

/// Declares a private member `name_` with a setter that returns *this, and getters. Leaves the
/// class in a private section. (A cast instead of std::move: a program that includes all options
/// has some 500 of these.)
#define RAMET_ARG(T, name)                                 \
 public:                                                   \
  auto name(T new_##name)->decltype(*this) {               \
    this->name##_ = static_cast<T&&>(new_##name);          \
    return *this;                                          \
  }                                                        \
  const T& name() const noexcept { return this->name##_; } \
  T& name() noexcept { return this->name##_; }             \
                                                           \
 private:                                                  \
  T name##_
