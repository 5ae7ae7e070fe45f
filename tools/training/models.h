// The models that can be trained, and the data they see.
#pragma once
#include <string>

#include "nn/data/mnist.h"
#include "nn/module/sequential.h"

namespace ramet::training {

struct ImageShape {
  int64_t channels, height, width, classes;
};

/// "cnn": conv 1-32 and 32-64 (3x3, padding 1), each with BatchNorm, ReLU and 2x2 max pool, then
/// Linear 3136-128, ReLU, 128-10. "mlp": 784-128-10. Numbers for 28x28 images of one channel and 10
/// classes; they follow the shape. With `dropout` > 0 a Dropout stands before the last layer. "gpt"
/// and "lstm": text_models.h. An Error for another name, and for images too small for the cnn.
nn::Sequential make_model(const std::string& name, const ImageShape& shape, double dropout);

struct ImageData {
  std::string name;
  // uint8 (N, channels, height, width) and int64 (N).
  Tensor train_images, train_targets, test_images, test_targets;
  ImageShape shape;
  // Of the training images scaled to [0, 1], one per channel; none of a text, whose bytes are
  // numbers of symbols.
  std::vector<double> mean, stddev;
  std::string symbols;  // of a text: text_models.h
};

/// "fashion-mnist" where Debian's dataset-fashion-mnist puts it (or in $RAMET_DATA/fashion-mnist),
/// or a folder; the first `limit` images of both sets (0: all). Errors as data::datasets::MNIST;
/// also on empty sets, negative labels and sets that do not fit together.
ImageData load_images(const std::string& data, int64_t limit);

}  // namespace ramet::training
