// Lab 1: what the grader calls.
#pragma once
#include "ramet.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

struct BackwardLab {
  /// x * sigmoid(beta * x), for x of any shape and a beta of one element.
  Tensor (*swish)(const Tensor& x, const Tensor& beta);
  /// What swish() records as its backward.
  autograd::tensor_list (*backward)(autograd::AutogradContext* ctx, autograd::tensor_list grads);
};
void grade(const BackwardLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::BackwardLab { &space::swish, &space::Swish::backward }
