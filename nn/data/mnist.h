// MNIST and everything stored like it: Fashion-MNIST, KMNIST, EMNIST, your own.
#pragma once
#include <memory>
#include <string>

#include "nn/data/datasets.h"

namespace ramet {
namespace data {
namespace datasets {

/// Reads a folder with four IDX files, plain or with ".gz" after their names:
/// {train,t10k}-images-idx3-ubyte and {train,t10k}-labels-idx1-ubyte. Images are uint8, (N, height,
/// width) or (N, channels, height, width); labels are integers.
///
/// An example is (image, label): float32 (channels, height, width) in [0, 1], and an int64 scalar.
/// The bytes are kept as they are and converted per example; images() converts all of them at its
/// first call. Copies share the data. Thread safety: const calls and get() may run on several
/// threads.
class RAMET_API MNIST : public Dataset<MNIST> {
 public:
  /// Which of the two sets of files.
  enum class Mode { kTrain, kTest };

  /// Errors as read_idx; also where images and labels differ in number, or a file holds another
  /// kind of data.
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain);

  /// An IndexError outside [0, size()).
  Example<> get(size_t index) override;
  std::optional<size_t> size() const override { return size_; }
  /// Is it the training set?
  bool is_train() const noexcept { return mode_ == Mode::kTrain; }

  /// All images, float32 (N, channels, height, width) in [0, 1].
  const Tensor& images() const;
  /// All labels, int64 (N).
  const Tensor& targets() const;
  /// The images as stored: uint8 (N, channels, height, width). GatherDataset takes them.
  const Tensor& raw_images() const;

 private:
  struct Data;
  std::shared_ptr<Data> data_;
  size_t size_ = 0;
  Mode mode_;
};

}  // namespace datasets
}  // namespace data
}  // namespace ramet
