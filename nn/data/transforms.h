// Transforms: what map() applies to the batches of a dataset, as LibTorch's torch/data/transforms.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "nn/data/example.h"

namespace ramet {
namespace data {
namespace transforms {

/// Turns a batch into something else.
template <class InputBatch, class OutputBatch> class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;

  virtual ~BatchTransform() = default;
  /// The batch transformed. Called from several threads at once with several workers.
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};

/// Turns each example of a batch into something else.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;

  /// The example transformed. Called from several threads at once with several workers.
  virtual OutputType apply(InputType input) = 0;

  /// apply() of each example.
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> output_batch;
    output_batch.reserve(input_batch.size());
    for (auto& input : input_batch) output_batch.push_back(apply(std::move(input)));
    return output_batch;
  }
};

/// A BatchTransform from a function.
template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;

  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  /// The function of the batch.
  Output apply_batch(Input input_batch) override { return function_(std::move(input_batch)); }

 private:
  FunctionType function_;
};

/// A Transform from a function.
template <class Input, class Output = Input> class Lambda : public Transform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;

  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  /// The function of the example.
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// Makes one thing of a vector of examples.
template <class T, class BatchType = std::vector<T>> using Collation = BatchTransform<BatchType, T>;
template <class T, class BatchType = std::vector<T>> using Collate = BatchLambda<BatchType, T>;

namespace detail {
/// As stack(tensors): one copy where all are dense and of one kind, which examples are.
RAMET_API Tensor stack_examples(const std::vector<Tensor>& tensors);
RAMET_API Tensor per_channel(ArrayRef<double> values);
}  // namespace detail

/// A vector of examples as one example with a new first dimension.
template <class T = Example<>> struct Stack;

/// Of data and targets, and of data alone:
template <> struct Stack<Example<>> : public Collation<Example<>> {
  /// Stacks all data, and all targets, along a new first dimension.
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    data.reserve(examples.size());
    targets.reserve(examples.size());
    for (auto& example : examples) {
      data.push_back(std::move(example.data));
      targets.push_back(std::move(example.target));
    }
    return {detail::stack_examples(data), detail::stack_examples(targets)};
  }
};

template <> struct Stack<TensorExample> : public Collation<TensorExample> {
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    data.reserve(examples.size());
    for (auto& example : examples) data.push_back(std::move(example.data));
    return detail::stack_examples(data);
  }
};

/// Changes the data of each example and leaves the target.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using InputType = Example<Tensor, Target>;
  using OutputType = Example<Tensor, Target>;

  virtual Tensor operator()(Tensor input) = 0;
  OutputType apply(InputType input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

/// A TensorTransform from a function.
template <class Target = Tensor> class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;

  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// (data - mean) / stddev, one value per channel or one for all; data is (channels, height, width).
template <class Target = Tensor> struct Normalize : public TensorTransform<Target> {
  Normalize(ArrayRef<double> mean_in, ArrayRef<double> stddev_in)
      : mean(detail::per_channel(mean_in)), stddev(detail::per_channel(stddev_in)) {}

  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }

  /// As given, with a value for each channel.
  Tensor mean, stddev;
};

}  // namespace transforms
}  // namespace data
}  // namespace ramet
