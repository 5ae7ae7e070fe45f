// Data loading: datasets, samplers, transforms, DataLoader.
#pragma once
#include "nn/data/dataloader.h"
#include "nn/data/datasets.h"
#include "nn/data/gather_dataset.h"
#include "nn/data/idx.h"
#include "nn/data/mnist.h"
#include "nn/data/samplers.h"
#include "nn/data/transforms.h"

namespace ramet::data {
using datasets::BatchDataset;  // LibTorch has them under both names
using datasets::Dataset;
}  // namespace ramet::data
