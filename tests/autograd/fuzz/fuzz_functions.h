// The functions of one tensor that random programs call, and their derivatives.
#pragma once
#include <vector>

#include "autograd/tensor.h"
#include "tests/autograd/fuzz/fuzz_twin.h"

namespace ramet {
namespace fuzz {

enum class Keeps { kNothing, kInput, kOutput };
struct Unary {
  const char* name;
  Tensor (Tensor::*call)() const;
  Tensor& (Tensor::*in_place)() const;
  double (*value)(double);
  double (*derivative)(double);
  Keeps keeps;
  bool kink = false;  // at 0
};
extern const std::vector<Unary> kUnary;

/// Does rounding decide on which side of 0 a value lies?
bool near_kink(const std::vector<Dual>& values);
std::vector<Dual> mapped(const Unary& f, std::vector<Dual> v);

/// A fixed choice of elements, and a tensor of it.
inline bool marked(size_t i) { return (i * 7 + 3) % 5 < 2; }
Tensor mask_of(const Shape& sizes);

}  // namespace fuzz
}  // namespace ramet
