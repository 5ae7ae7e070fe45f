// What a user's functions may throw on a thread of the library, and how a test recognises it.
#pragma once
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>

namespace ramet {

struct OwnException : std::exception {
  explicit OwnException(int n) : number(n) {}
  const char* what() const noexcept override { return "of the user's own"; }
  int number;
};
struct NoStandardException {
  int number;
};

enum class Thrown { kOwn, kNoStandard, kNoMemory, kNothing };
constexpr Thrown kThrown[] = {Thrown::kOwn, Thrown::kNoStandard, Thrown::kNoMemory};

[[noreturn]] inline void throw_one(Thrown what, int number = 0) {
  switch (what) {
    case Thrown::kOwn: throw OwnException(number);
    case Thrown::kNoStandard: throw NoStandardException{number};
    default: throw std::bad_alloc();
  }
}
/// What f throws; `number` as passed to the exception.
inline Thrown thrown_by(const std::function<void()>& f, int* number = nullptr) {
  try {
    f();
  } catch (const OwnException& e) {
    if (number) *number = e.number;
    return Thrown::kOwn;
  } catch (const NoStandardException& e) {
    if (number) *number = e.number;
    return Thrown::kNoStandard;
  } catch (const std::bad_alloc&) { return Thrown::kNoMemory; }
  return Thrown::kNothing;
}

}  // namespace ramet
