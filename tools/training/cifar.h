// CIFAR's binary files (Krizhevsky 2009).
//
// A record is its label, one byte, and an image, 3072 bytes: 32 rows of 32 pixels of red, then
// green, then blue. CIFAR-10 has 10000 of them in each of data_batch_1.bin to data_batch_5.bin and
// test_batch.bin. CIFAR-100 has train.bin and test.bin. Its records begin with two labels, one of
// 20 and one of 100. A file of other sets may hold any number of records.
#pragma once
#include <string>

#include "autograd/tensor.h"

namespace ramet::training {

struct LabelledImages {
  Tensor images, labels;  // uint8 (N, channels, height, width), int64 (N)
};

/// The first of those files that the folder has, or "".
std::string cifar_file(const std::string& folder);
/// Reads all records of one part; of CIFAR-100 the finer label. An Error names the file, where it
/// is missing, cannot be read, or holds no records or a part of one. Also where a label is too
/// large. An Error names two files where the folder has files of both sets.
LabelledImages read_cifar(const std::string& folder, bool train);
/// CIFAR-10's six files, each whole or not at all. `train`: at least 5 images.
void write_cifar(const std::string& folder, const LabelledImages& train,
                 const LabelledImages& test);

}  // namespace ramet::training
