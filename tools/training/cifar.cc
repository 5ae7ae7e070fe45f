#include "tools/training/cifar.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "autograd/ops.h"
#include "runtime/base/atomic_file.h"

namespace ramet::training {

namespace {

constexpr int64_t kImage = 3 * 32 * 32;

// The limits of the label bytes in front of an image; the last byte counts.
struct Format {
  std::vector<int64_t> labels;
  int64_t record() const { return static_cast<int64_t>(labels.size()) + kImage; }
};

bool is_file(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
std::vector<std::string> files_of_cifar100(const std::string& folder, bool train) {
  return {folder + (train ? "/train.bin" : "/test.bin")};
}
std::vector<std::string> files_of_cifar10(const std::string& folder, bool train) {
  if (!train) return {folder + "/test_batch.bin"};
  std::vector<std::string> files;
  for (int i = 1; i <= 5; ++i)
    files.push_back(folder + "/data_batch_" + std::to_string(i) + ".bin");
  return files;
}

// The first of a set's files that is there, or "".
template <class F> std::string first_file(const std::string& folder, const F& files) {
  for (bool train : {true, false})
    for (const std::string& file : files(folder, train))
      if (is_file(file)) return file;
  return "";
}

LabelledImages read_file(const std::string& path, const Format& format) {
  std::ifstream in(path, std::ios::binary);
  in.peek();  // a folder opens, too
  RAMET_CHECK(in.is_open() && !in.bad(), "CIFAR", "\"", path,
              "\": cannot be read, expected a file of CIFAR's binary format");
  in.clear();
  in.seekg(0, std::ios::end);
  const auto bytes = static_cast<int64_t>(in.tellg());
  RAMET_CHECK(bytes > 0 && bytes % format.record() == 0, "CIFAR", "\"", path, "\": got ", bytes,
              " bytes, expected a multiple of ", format.record(), ", the bytes of a record");
  in.seekg(0);
  const int64_t n = bytes / format.record();
  LabelledImages set{Tensor(TensorBase::empty({n, 3, 32, 32}, kByte, Device(kCPU, 0))),
                     Tensor(TensorBase::empty({n}, kLong, Device(kCPU, 0)))};
  std::vector<char> record(static_cast<size_t>(format.record()));
  for (int64_t i = 0; i < n; ++i) {
    in.read(record.data(), format.record());
    RAMET_CHECK(in.gcount() == format.record(), "CIFAR", "\"", path, "\": got the end in record ",
                i, ", expected ", n, " records");
    for (size_t k = 0; k < format.labels.size(); ++k) {
      const int64_t label = static_cast<uint8_t>(record[k]);
      RAMET_CHECK(label < format.labels[k], "CIFAR", "\"", path, "\": got the label ", label,
                  " in record ", i, ", expected less than ", format.labels[k]);
      set.labels.data_ptr<int64_t>()[i] = label;
    }
    std::copy_n(record.data() + format.labels.size(), kImage,
                reinterpret_cast<char*>(set.images.data_ptr<uint8_t>()) + i * kImage);
  }
  return set;
}

}  // namespace

std::string cifar_file(const std::string& folder) {
  const std::string ten = first_file(folder, files_of_cifar10);
  return ten.empty() ? first_file(folder, files_of_cifar100) : ten;
}

LabelledImages read_cifar(const std::string& folder, bool train) {
  const std::string ten = first_file(folder, files_of_cifar10),
                    hundred = first_file(folder, files_of_cifar100);
  RAMET_CHECK(ten.empty() || hundred.empty(), "CIFAR", "files of two sets: got \"", ten,
              "\" of CIFAR-10 and \"", hundred, "\" of CIFAR-100, expected one set in a folder");
  if (!hundred.empty()) return read_file(files_of_cifar100(folder, train)[0], {{20, 100}});
  std::vector<Tensor> images, labels;
  for (const std::string& file : files_of_cifar10(folder, train)) {
    const LabelledImages part = read_file(file, {{10}});
    images.push_back(part.images), labels.push_back(part.labels);
  }
  return {cat(images, 0), cat(labels, 0)};
}

void write_cifar(const std::string& folder, const LabelledImages& train,
                 const LabelledImages& test) {
  for (const LabelledImages* set : {&train, &test}) {
    const auto files = files_of_cifar10(folder, set == &train);
    const int64_t n = set->images.size(0), count = static_cast<int64_t>(files.size());
    RAMET_CHECK(n >= count && set->images.numel() == n * kImage, "CIFAR", "images to write: got ",
                set->images.sizes(), ", expected at least ", count, " of ",
                IntArrayRef({3, 32, 32}));
    const Tensor images = set->images.contiguous(), labels = set->labels.to(kByte).contiguous();
    for (int64_t k = 0; k < count; ++k) {
      std::string bytes;
      for (int64_t i = n * k / count; i < n * (k + 1) / count; ++i) {
        bytes += static_cast<char>(labels.data_ptr<uint8_t>()[i]);
        bytes.append(reinterpret_cast<const char*>(images.data_ptr<uint8_t>()) + i * kImage,
                     kImage);
      }
      write_file_atomically(files[static_cast<size_t>(k)], bytes);
    }
  }
}

}  // namespace ramet::training
