// Training tasks for C, each with its counterpart in C++.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "nn/module/sequential.h"
#include "nn/optim/optimizer.h"
#include "tests/nn/c/c99_programs.h"

namespace ramet {

// Keeps the order of the list, in which JSON is read; the arguments of a call have no order.
struct Ordered {
  template <class... M> explicit Ordered(const M&... modules) { (net->push_back(modules), ...); }
  nn::Sequential net;
};
// Values that a program in any language could compute.
template <class T> std::vector<T> waves(int64_t count, double step) {
  std::vector<T> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(static_cast<T>(std::sin(step * static_cast<double>(i * i % 97))));
  return made;
}
c99_data data_of(void* data, int dtype, std::vector<int64_t> sizes);
Tensor tensor_over(const c99_data& d, ScalarType type);

// A task for C, and its counterpart in C++: what makes the module, the optimizer and the loss.
struct Twin {
  const char* name;
  c99_task task;
  ScalarType input, target;
  std::function<nn::Sequential()> make;
  std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)> optimizer;
  std::function<Tensor(const Tensor& y, const Tensor& target)> loss;
};
std::vector<double> losses_of(const Twin& twin);

// Memory of all tasks.
struct Tasks {
  std::vector<float> points = waves<float>(16 * 3, 0.37), values = waves<float>(16 * 2, 0.91),
                     images = waves<float>(6 * 2 * 8 * 8, 0.11),
                     series = waves<float>(5 * 7 * 3, 0.23), halves;
  std::vector<double> doubles = waves<double>(16 * 3, 0.37), wanted = waves<double>(16, 0.5);
  std::vector<int64_t> classes = {0, 3, 1, 2, 2, 0};

  std::vector<Twin> all();
};

}  // namespace ramet
