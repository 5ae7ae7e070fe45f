// Datasets: the sources of a DataLoader's batches, as LibTorch's torch/data/datasets.
//
// Note [Datasets are copied]
// A DataLoader moves its dataset in and gives each worker thread a copy. So a dataset holds handles
// (tensors, shared_ptr), and several threads call get(), each on its own copy. size() still answers
// after a move, because programs call it on the variable they moved from.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "nn/data/example.h"

namespace ramet {
namespace serialize {
class OutputArchive;
class InputArchive;
}  // namespace serialize

namespace data {
namespace datasets {

template <class SourceDataset, class AppliedTransform> class MapDataset;
/// `dataset` with `transform` applied to each batch it delivers.
template <class DatasetType, class TransformType>
MapDataset<DatasetType, TransformType> map(DatasetType dataset, TransformType transform);

namespace detail {
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};
template <bool Condition, class T>
using OptionalIf = std::conditional_t<Condition, std::optional<T>, T>;
}  // namespace detail

/// Yields a batch for a request. Derive with your own class as `Self`.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  /// A stateful dataset decides itself what comes next and when an epoch ends.
  static constexpr bool is_stateful = detail::IsOptional<BatchType>::value;

  virtual ~BatchDataset() = default;

  /// The examples asked for. Called from several threads at once with several workers.
  virtual Batch get_batch(BatchRequest request) = 0;
  /// The number of examples, if there is one.
  virtual std::optional<size_t> size() const = 0;

  /// This dataset, followed by a transform of its examples.
  template <class TransformType> MapDataset<Self, TransformType> map(TransformType transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class TransformType> MapDataset<Self, TransformType> map(TransformType transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

/// Yields single examples by index; a batch is a vector of them.
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;

  /// One example. Called from several threads at once with several workers.
  virtual ExampleType get(size_t index) = 0;

  /// get() of each index.
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

/// Asked for a number of examples, not for those of given indices.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

/// Yields batches of a size until it says nothing comes: streams, files read in chunks. Shared by a
/// loader's workers, so get_batch is called from several threads at once when there is more than
/// one.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  /// Begins a new epoch.
  virtual void reset() = 0;
  /// Writes the position, and reads it:
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};
template <class... Args>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const StatefulDataset<Args...>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class... Args>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    StatefulDataset<Args...>& dataset) {
  dataset.load(archive);
  return archive;
}

/// What map() returns.
template <class SourceDataset, class AppliedTransform>
class MapDataset
    : public BatchDataset<MapDataset<SourceDataset, AppliedTransform>,
                          detail::OptionalIf<SourceDataset::is_stateful,
                                             typename AppliedTransform::OutputBatchType>,
                          typename SourceDataset::BatchRequestType> {
 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename SourceDataset::BatchRequestType;
  using OutputBatchType =
      detail::OptionalIf<SourceDataset::is_stateful, typename AppliedTransform::OutputBatchType>;

  MapDataset(DatasetType dataset, TransformType transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  /// The source's batch, transformed.
  OutputBatchType get_batch(BatchRequestType request) override {
    if constexpr (SourceDataset::is_stateful) {
      auto batch = dataset_.get_batch(std::move(request));
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(request)));
    }
  }
  std::optional<size_t> size() const noexcept override { return dataset_.size(); }

  /// Stateful sources only.
  void reset() { dataset_.reset(); }
  /// Those of a stateful source:
  void save(serialize::OutputArchive& archive) const { dataset_.save(archive); }
  void load(serialize::InputArchive& archive) { dataset_.load(archive); }

  /// The two:
  const SourceDataset& dataset() noexcept { return dataset_; }
  const AppliedTransform& transform() noexcept { return transform_; }

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

template <class DatasetType, class TransformType>
MapDataset<DatasetType, TransformType> map(DatasetType dataset, TransformType transform) {
  using Batch = typename DatasetType::BatchType;
  if constexpr (DatasetType::is_stateful) {
    static_assert(
        std::is_same<typename Batch::value_type, typename TransformType::InputBatchType>::value,
        "the dataset's batches are not what the transform takes");
  } else {
    static_assert(std::is_same<Batch, typename TransformType::InputBatchType>::value,
                  "the dataset's batches are not what the transform takes");
  }
  return {std::move(dataset), std::move(transform)};
}

/// One dataset object for all workers. It must be safe to use from several threads.
template <class UnderlyingDataset>
class SharedBatchDataset : public BatchDataset<SharedBatchDataset<UnderlyingDataset>,
                                               typename UnderlyingDataset::BatchType,
                                               typename UnderlyingDataset::BatchRequestType> {
 public:
  using BatchType = typename UnderlyingDataset::BatchType;
  using BatchRequestType = typename UnderlyingDataset::BatchRequestType;

  SharedBatchDataset(std::shared_ptr<UnderlyingDataset> shared) : dataset_(std::move(shared)) {}

  /// That of the dataset under it.
  BatchType get_batch(BatchRequestType request) override {
    return dataset_->get_batch(std::move(request));
  }
  std::optional<size_t> size() const override { return dataset_->size(); }
  UnderlyingDataset& operator*() { return *dataset_; }
  const UnderlyingDataset& operator*() const { return *dataset_; }
  UnderlyingDataset* operator->() { return dataset_.get(); }
  const UnderlyingDataset* operator->() const { return dataset_.get(); }
  /// Stateful ones only.
  void reset() { dataset_->reset(); }
  /// Those of a stateful dataset:
  void save(serialize::OutputArchive& archive) const { dataset_->save(archive); }
  void load(serialize::InputArchive& archive) { dataset_->load(archive); }

 private:
  std::shared_ptr<UnderlyingDataset> dataset_;
};
/// A dataset made of these arguments, shared by all workers.
template <class UnderlyingDataset, class... Args>
SharedBatchDataset<UnderlyingDataset> make_shared_dataset(Args&&... args) {
  return std::make_shared<UnderlyingDataset>(std::forward<Args>(args)...);
}

/// The rows of a tensor.
struct RAMET_API TensorDataset : public Dataset<TensorDataset, TensorExample> {
  explicit TensorDataset(Tensor rows);
  /// Stacked along a new first dimension.
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  /// Row `index` of the tensor.
  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;

  Tensor tensor;

 private:
  size_t rows_;  // size() of an object that was moved from
};

}  // namespace datasets
}  // namespace data
}  // namespace ramet
