// Lab 4: was the kept memory changed? task.md says what to do.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/labs/04_versions/lab.h"

namespace lab {
using ramet::labs::Memory;  // struct Memory { std::vector<double> numbers; uint32_t version; }

// Some of the numbers of a memory. Other arrays may show the same numbers.
class Array {
 public:
  std::shared_ptr<Memory> memory;

  explicit Array(std::vector<double> numbers)
      : memory(std::make_shared<Memory>()), count_(numbers.size()) {
    memory->numbers = std::move(numbers);
  }

  double at(size_t i) const { return memory->numbers.at(from_ + i); }
  size_t count() const { return count_; }

  // `count` of the same numbers, beginning with number `from`: what is written here shows there.
  Array view(size_t from, size_t count) const {
    // HOLE 1: an array over the same memory.
    //| return Array(std::vector<double>(count, memory->numbers.at(from)));
    Array v = *this;
    v.from_ += from;
    v.count_ = count;
    return v;
    // END 1
  }

  // The same values in memory of their own.
  Array copy() const {
    const auto first = memory->numbers.begin() + static_cast<std::ptrdiff_t>(from_);
    return Array(std::vector<double>(first, first + static_cast<std::ptrdiff_t>(count_)));
  }

  // In place.
  void add_(double value) {
    for (size_t i = 0; i < count_; ++i) memory->numbers[from_ + i] += value;
    // HOLE 2: one more change of this memory, which every array over the memory can see.
    ++memory->version;
    // END 2
  }

 private:
  size_t from_ = 0, count_ = 0;
};

// What a backward keeps of an array: no copy, but the version at that time.
class Saved {
 public:
  // HOLE 3: the members, the constructor, and get(). It gives the array back or throws
  // std::runtime_error with both versions in its text: the saved one and the present one.
  //| explicit Saved(const Array& array) : array_(array) {}
  //| Array get() const { return array_; }
  //|
  //|private:
  //| Array array_;
  explicit Saved(const Array& array) : array_(array), version_(array.memory->version) {}
  Array get() const {
    if (array_.memory->version != version_)
      throw std::runtime_error("a saved array was changed in place: it is at version " +
                               std::to_string(array_.memory->version) + ", expected version " +
                               std::to_string(version_));
    return array_;
  }

 private:
  Array array_;
  uint32_t version_;
  // END 3
};

}  // namespace lab
