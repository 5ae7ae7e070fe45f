// Example: one element of a dataset, or (after Stack) a batch of them.
#pragma once
#include <utility>

#include "autograd/tensor.h"

namespace ramet {
namespace data {

template <class Data = Tensor, class Target = Tensor> struct Example {
  using DataType = Data;
  using TargetType = Target;

  Example() = default;
  Example(Data data_in, Target target_in)
      : data(std::move(data_in)), target(std::move(target_in)) {}

  Data data;
  Target target;
};

namespace example {
/// The target of an example that has none.
using NoTarget = void;
}  // namespace example

/// Without a target; converts to its data.
template <class Data> struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;

  Example() = default;
  Example(Data data_in) : data(std::move(data_in)) {}
  operator Data&() { return data; }
  operator const Data&() const { return data; }

  Data data;
};

using TensorExample = Example<Tensor, example::NoTarget>;

}  // namespace data
}  // namespace ramet
