// GatherDataset: whole batches straight from raw rows, without an object per example.
//
//   auto loader = data::make_data_loader(
//       datasets::GatherDataset(mnist.raw_images(), mnist.targets()).normalize(0.286, 0.353),
//       DataLoaderOptions(128).workers(1).max_jobs(1));     // one batch is made ahead on a thread
//
// A batch is one pass: rows are gathered by their indices, converted to float32, divided and
// normalised on the way into the batch's tensor. The values are those of MNIST + Normalize + Stack,
// bit for bit.
#pragma once
#include <vector>

#include "nn/data/datasets.h"

namespace ramet {
namespace data {
namespace datasets {

class RAMET_API GatherDataset : public BatchDataset<GatherDataset, Example<>> {
 public:
  /// `rows`: (N, ...) of any element type but bool. `targets`: (N, ...), delivered as they are.
  /// Both on the CPU. uint8 rows are divided by 255, others by 1.
  GatherDataset(Tensor rows, Tensor targets);

  /// (x / divisor - mean[c]) / stddev[c], c the index in dimension 1; one value stands for all
  /// channels.
  GatherDataset& normalize(ArrayRef<double> mean, ArrayRef<double> stddev);
  /// Another divisor, of normalize() too.
  GatherDataset& divide_by(double divisor);

  /// float32 (batch, ...) and the targets. IndexError outside [0, size()), before anything is
  /// written.
  Example<> get_batch(ArrayRef<size_t> indices) override;
  std::optional<size_t> size() const override { return size_; }

 private:
  void fill_tables();

  Tensor rows_, targets_;
  size_t size_;
  float divisor_ = 1;
  std::vector<float> mean_, stddev_;  // one, or one per channel
  // A byte has 256 values: what becomes of each, per channel.
  std::vector<float> tables_;
};

}  // namespace datasets
}  // namespace data
}  // namespace ramet
