// Sets of images, and the classes they are of.
#pragma once
#include "tools/training/job.h"
#include "tools/training/options.h"

namespace ramet::training {

struct ImageShape {
  int64_t channels, height, width, classes;
};
struct Images {
  // Rows: uint8 (N, channels, height, width); targets: int64 (N). Mean and standard deviation are
  // those of the training images scaled to [0, 1], one per channel.
  TrainingData data;
  ImageShape shape;
};

/// Loads what --data names:
/// - "fashion-mnist", from the folder of Debian's dataset-fashion-mnist (or
///   $RAMET_DATA/fashion-mnist);
/// - "shapes", made by --seed (made_images.h), 10000 and 2000 of them;
/// - a folder with IDX files or CIFAR's.
///
/// Takes the first --limit images of both sets (0: all). Errors are those of data::datasets::MNIST
/// and read_cifar. Also errors: a folder with files of two sets, empty sets, negative labels and
/// sets that do not fit together.
Images load_images(const Options& options);
/// Sets mean and stddev, by the training rows: bytes (N, channels, height, width).
void measure(TrainingData& data);
/// PNG bytes of pictures (N, 1 or 3 channels, height, width) from 0 to 1, so many in a row.
std::string picture_grid(const Tensor& pictures, int64_t in_row);
/// The images of "shapes", as CIFAR-10's files in the folder.
void write_made_images(const Options& options, const std::string& folder);

}  // namespace ramet::training
