// The calls of goldens/make_autocast_dtypes.py, and what PyTorch makes of them under autocast.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "autograd/graph/node.h"
#include "autograd/ops.h"

namespace ramet {

/// The node of a linear's weight: the cast, which is one object for each cast.
inline const void* cast_in(const Tensor& product) { return product.grad_fn()->edges()[1].node; }

namespace autocast_tests {

/// Makes the tensors of a call. `test_case`: float32, lower, mixed or float64.
class Make {
 public:
  Make(Device device, std::string test_case) : device_(device), case_(std::move(test_case)) {}
  Tensor operator()(IntArrayRef sizes);
  Tensor float32(IntArrayRef sizes) const;
  /// An invertible matrix of n rows.
  Tensor square(int64_t n);
  Tensor index(IntArrayRef sizes) const;
  /// Weights of a recurrent network with this many gates.
  std::vector<Tensor> weights(int64_t gates) const;

 private:
  ScalarType dtype_of_next();
  const Device device_;
  const std::string case_;
  int made_ = 0;
};

struct Call {
  std::string name;
  std::function<std::vector<Tensor>(Make&)> run;
};
const std::vector<Call>& calls();

/// Compares all calls on `device` with the golden file.
void expect_dtypes(Device device);

}  // namespace autocast_tests
}  // namespace ramet
