// What rows of whole training steps share.
#pragma once
#include <memory>

#include "autograd/graph/captured.h"
#include "nn/optim/optimizer.h"
#include "tools/benchmarks/gpu/rows.h"

namespace ramet::gpu_bench {

/// Parameters in the order in which they are made; PyTorch's counterpart has the same numbers.
class Weights {
 public:
  explicit Weights(ScalarType dtype = kFloat) : dtype_(dtype) {}
  Tensor operator()(IntArrayRef sizes, double scale) {
    Tensor p = filled(sizes, dtype_, scale, seed_++);
    p.requires_grad_(true);
    all.push_back(p);
    return p;
  }
  std::vector<Tensor> all;

 private:
  const ScalarType dtype_;
  int seed_ = 500;
};

/// A step, replayed if `captured`. Its outputs are of the parameters after the first one.
inline Work step_of(std::vector<Tensor> parameters, std::shared_ptr<optim::Optimizer> optimizer,
                    std::function<Tensor()> loss, bool captured = false) {
  std::function<void()> step = [=] {
    optimizer->zero_grad();
    loss().backward();
    optimizer->step();
  };
  if (captured)
    step = [replayed = std::make_shared<Captured<std::function<void()>>>(step)] { (*replayed)(); };
  return {step, [=] {
            step();
            std::vector<double> all;
            for (const Tensor& p : parameters)
              for (double v : some_of(p)) all.push_back(v);
            return all;
          }};
}

}  // namespace ramet::gpu_bench
