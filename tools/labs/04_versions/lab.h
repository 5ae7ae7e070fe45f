// Lab 4: memory with a version, and what the grader calls.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tools/labs/grader.h"

namespace ramet::labs {

/// What tensors share: numbers, and how often they were changed.
struct Memory {
  std::vector<double> numbers;
  uint32_t version = 0;
};

struct VersionsLab {
  /// An array of these numbers, and functions that use it: so the grader can use an answer with any
  /// class.
  struct Array {
    std::shared_ptr<Memory> memory;
    std::function<Array(size_t from, size_t count)> view;
    std::function<Array()> copy;
    std::function<void(double)> add_;
    std::function<double(size_t)> at;
    std::function<std::function<Array()>()> save;  // returns get()
  };
  Array (*make)(const std::vector<double>& numbers);
};
void grade(const VersionsLab& answer, Report& report);

/// Those functions of a class Array with members memory, view(), copy(), add_(), at(), and of a
/// class Saved with a constructor and get().
template <class Array, class Saved> VersionsLab::Array wrapped(const Array& a) {
  VersionsLab::Array w;
  w.memory = a.memory;
  w.view = [a](size_t from, size_t count) { return wrapped<Array, Saved>(a.view(from, count)); };
  w.copy = [a] { return wrapped<Array, Saved>(a.copy()); };
  w.add_ = [own = std::make_shared<Array>(a)](double value) { own->add_(value); };
  w.at = [a](size_t i) { return a.at(i); };
  w.save = [a] {
    auto saved = std::make_shared<Saved>(a);
    return [saved] { return wrapped<Array, Saved>(saved->get()); };
  };
  return w;
}

}  // namespace ramet::labs

#define LAB_ANSWER(space)                                                             \
  ramet::labs::VersionsLab {                                                          \
    [](const std::vector<double>& numbers) {                                          \
      return ramet::labs::wrapped<space::Array, space::Saved>(space::Array(numbers)); \
    }                                                                                 \
  }
