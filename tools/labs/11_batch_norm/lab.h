// Lab 11: what the grader calls.
#pragma once
#include <vector>

#include "ramet.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

struct BatchNormLab {
  /// The pieces, [rows, features] on a device each, normalised by the mean and the variance of all
  /// rows of all pieces. The others are [features], on the first piece's device.
  std::vector<Tensor> (*batch_norm)(const std::vector<Tensor>& pieces, const Tensor& weight,
                                    const Tensor& bias, Tensor running_mean, Tensor running_var,
                                    double momentum, double eps);
};
void grade(const BatchNormLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::BatchNormLab { &space::batch_norm }
