// Lab 2: what the grader calls.
#pragma once
#include "ramet.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

struct DoubleBackwardLab {
  /// exp(-x * x / 2), element by element.
  Tensor (*gauss)(const Tensor& x);
  /// The second derivative of each element of gauss(x) by its own element of x.
  Tensor (*curvature)(const Tensor& x);
  /// Mean over the rows of x of (length of d(net(x))/d(row) - 1) squared.
  Tensor (*penalty)(nn::Sequential net, const Tensor& x);
};
void grade(const DoubleBackwardLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::DoubleBackwardLab { &space::gauss, &space::curvature, &space::penalty }
