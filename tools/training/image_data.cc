#include "tools/training/image_data.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "nn/data/mnist.h"
#include "tools/see/show.h"
#include "tools/training/cifar.h"
#include "tools/training/made_images.h"
#include "tools/training/results.h"

namespace ramet::training {

namespace {

bool is_folder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string folder_of(const std::string& data) {
  if (data != "fashion-mnist") {
    RAMET_CHECK(is_folder(data), "train", "--data: got \"", data,
                "\", expected fashion-mnist, shapes or a folder with IDX files or CIFAR's");
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

// The first of MNIST's files that the folder has, or "".
std::string idx_file(const std::string& folder) {
  for (const char* name : {"/train-images-idx3-ubyte", "/train-labels-idx1-ubyte",
                           "/t10k-images-idx3-ubyte", "/t10k-labels-idx1-ubyte"})
    for (const std::string& file : {folder + name, folder + name + ".gz"})
      if (::access(file.c_str(), F_OK) == 0) return file;
  return "";
}

int64_t made_count(const Options& o, bool train) {
  const int64_t all = train ? 10000 : 2000;
  return o.limit > 0 ? std::min(o.limit, all) : all;
}
LabelledImages made(const Options& o, bool train) {
  return made_shapes(made_count(o, train), o.seed, train ? 0 : 1);
}

// Where the set is, for errors, and its two parts.
struct Read {
  std::string where;
  LabelledImages train, test;
};
Read read(const Options& o) {
  if (o.data == "shapes") return {o.data, made(o, true), made(o, false)};
  const std::string folder = folder_of(o.data);
  if (const std::string cifar = cifar_file(folder); !cifar.empty()) {
    const std::string idx = idx_file(folder);
    RAMET_CHECK(idx.empty(), "train", "--data: got \"", idx, "\" beside \"", cifar,
                "\", expected one set in a folder");
    return {folder, read_cifar(folder, true), read_cifar(folder, false)};
  }
  using data::datasets::MNIST;
  const MNIST train(folder, MNIST::Mode::kTrain), test(folder, MNIST::Mode::kTest);
  return {folder, {train.raw_images(), train.targets()}, {test.raw_images(), test.targets()}};
}

}  // namespace

// Exact integer sums, so that the values depend on the data alone.
void measure(TrainingData& d) {
  const int64_t n = d.train_rows.size(0), c = d.train_rows.size(1),
                plane = d.train_rows.size(2) * d.train_rows.size(3);
  const uint8_t* p = d.train_rows.data_ptr<uint8_t>();
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

Images load_images(const Options& o) {
  const auto [where, train, test] = read(o);
  const auto cut = [&](const Tensor& t) {
    return o.limit > 0 && o.limit < t.size(0) ? t.slice(0, 0, o.limit) : t;
  };
  TrainingData d{o.data, cut(train.images), cut(train.labels), cut(test.images), cut(test.labels)};
  const IntArrayRef sizes = d.train_rows.sizes();
  RAMET_CHECK(d.train_rows.numel() > 0 && d.test_rows.numel() > 0, "train", "--data \"", o.data,
              "\": got no images, expected some");
  RAMET_CHECK(sizes.slice(1) == d.test_rows.sizes().slice(1), "train", "test images in \"", where,
              "\": got ", d.test_rows.sizes().slice(1), ", expected ", sizes.slice(1),
              " as in the training images");
  int64_t largest = 0;
  for (const Tensor* targets : {&train.labels, &test.labels}) {
    for (int64_t i = 0; i < targets->numel(); ++i) {
      const int64_t label = targets->data_ptr<int64_t>()[i];
      RAMET_CHECK(label >= 0, "train", "label ", i, " in \"", where, "\": got ", label,
                  ", expected at least 0");
      largest = std::max(largest, label);
    }
  }
  RAMET_CHECK(largest < 100'000, "train", "labels in \"", where, "\": got ", largest,
              ", expected less than 100000");
  measure(d);
  const ImageShape shape{sizes[1], sizes[2], sizes[3], largest + 1};
  return {std::move(d), shape};
}

void write_made_images(const Options& o, const std::string& folder) {
  RAMET_CHECK(made_count(o, true) >= 5, "train", "--limit: got ", o.limit,
              ", expected at least 5 for --make-data, which writes five files");
  make_folders(folder, "make-data");
  write_cifar(folder, made(o, true), made(o, false));
}

std::string picture_grid(const Tensor& pictures, int64_t in_row) {
  return see::show_bytes(pictures, ".png",
                         see::ShowOptions()
                             .kind(see::Kind::kImages)
                             .range(std::pair(0.0, 1.0))
                             .in_row(in_row)
                             .bare(true));
}

}  // namespace ramet::training
