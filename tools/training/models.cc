#include "tools/training/models.h"

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "nn/layers/activation.h"
#include "nn/layers/batchnorm.h"
#include "nn/layers/conv.h"
#include "nn/layers/dropout.h"
#include "nn/layers/flatten.h"
#include "nn/layers/linear.h"
#include "tools/training/text_models.h"

namespace ramet::training {

nn::Sequential make_model(const std::string& name, const ImageShape& shape, double dropout) {
  if (is_text_model(name)) return make_text_model(name, shape, dropout);
  nn::Sequential model;
  int64_t features = shape.channels * shape.height * shape.width;
  if (name == "cnn") {
    RAMET_CHECK(shape.height >= 4 && shape.width >= 4, "train", "--model cnn: got images of ",
                shape.height, " x ", shape.width, ", expected at least 4 x 4");
    const auto block = [&](const std::string& number, int64_t in, int64_t out) {
      model->push_back("conv" + number, nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)));
      model->push_back("norm" + number, nn::BatchNormReLUMaxPool2d(out));
    };
    block("1", shape.channels, 32);
    block("2", 32, 64);
    features = 64 * (shape.height / 4) * (shape.width / 4);
  } else {
    RAMET_CHECK(name == "mlp", "train", "--model: got \"", name,
                "\", expected cnn, mlp, gpt or lstm");
  }
  model->push_back("flatten", nn::Flatten());
  model->push_back("fc1", nn::Linear(features, 128));
  model->push_back("relu3", nn::ReLU());
  if (dropout > 0) model->push_back("dropout", nn::Dropout(dropout));
  model->push_back("fc2", nn::Linear(128, shape.classes));
  return model;
}

namespace {

bool is_folder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string folder_of(const std::string& data) {
  if (data != "fashion-mnist") {
    RAMET_CHECK(is_folder(data), "train", "--data: got \"", data,
                "\", expected fashion-mnist or a folder with IDX files");
    return data;
  }
  const char* own = std::getenv("RAMET_DATA");
  if (own && is_folder(std::string(own) + "/fashion-mnist"))
    return std::string(own) + "/fashion-mnist";
  const std::string system = "/usr/share/datasets/fashion-mnist";
  RAMET_CHECK(is_folder(system), "train", "--data fashion-mnist: got no folder \"", system,
              "\", expected the Debian package dataset-fashion-mnist to be installed");
  return system;
}

// Exact integer sums, so that the values depend on the data alone.
void measure(ImageData& d) {
  const int64_t n = d.train_images.size(0), c = d.shape.channels,
                plane = d.shape.height * d.shape.width;
  const uint8_t* p = d.train_images.data_ptr<uint8_t>();
  std::vector<uint64_t> sum(static_cast<size_t>(c)), squares(static_cast<size_t>(c));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < c; ++k) {
      uint64_t s = 0;
      uint64_t q = 0;
      for (int64_t j = 0; j < plane; ++j, ++p) {
        s += *p;
        q += static_cast<uint64_t>(*p) * *p;
      }
      sum[static_cast<size_t>(k)] += s;
      squares[static_cast<size_t>(k)] += q;
    }
  }
  for (size_t k = 0; k < sum.size(); ++k) {
    const double count = static_cast<double>(n * plane), mean = static_cast<double>(sum[k]) / count;
    const double variance = static_cast<double>(squares[k]) / count - mean * mean;
    d.mean.push_back(mean / 255);
    // a channel of one value stays as it is
    d.stddev.push_back(variance > 0 ? std::sqrt(variance) / 255 : 1.0);
  }
}

}  // namespace

ImageData load_images(const std::string& data, int64_t limit) {
  using data::datasets::MNIST;
  const std::string folder = folder_of(data);
  const MNIST train(folder, MNIST::Mode::kTrain), test(folder, MNIST::Mode::kTest);
  const auto cut = [&](const Tensor& t) {
    return limit > 0 && limit < t.size(0) ? t.slice(0, 0, limit) : t;
  };
  ImageData d{data,
              cut(train.raw_images()),
              cut(train.targets()),
              cut(test.raw_images()),
              cut(test.targets()),
              {},
              {},
              {},
              {}};
  const IntArrayRef sizes = d.train_images.sizes();
  RAMET_CHECK(d.train_images.numel() > 0 && d.test_images.numel() > 0, "train", "--data \"", data,
              "\": got no images, expected some");
  RAMET_CHECK(sizes.slice(1) == d.test_images.sizes().slice(1), "train", "test images in \"",
              folder, "\": got ", d.test_images.sizes().slice(1), ", expected ", sizes.slice(1),
              " as in the training images");
  int64_t largest = 0;
  for (const Tensor* targets : {&train.targets(), &test.targets()}) {
    for (int64_t i = 0; i < targets->numel(); ++i) {
      const int64_t label = targets->data_ptr<int64_t>()[i];
      RAMET_CHECK(label >= 0, "train", "label ", i, " in \"", folder, "\": got ", label,
                  ", expected at least 0");
      largest = std::max(largest, label);
    }
  }
  RAMET_CHECK(largest < 100'000, "train", "labels in \"", folder, "\": got ", largest,
              ", expected less than 100000");
  d.shape = {sizes[1], sizes[2], sizes[3], largest + 1};
  measure(d);
  return d;
}

}  // namespace ramet::training
