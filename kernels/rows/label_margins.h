// Margins between the classes that a sample has and those that it does not have.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// The classes of sample n are labels[n, 0], labels[n, 1], ... up to the first negative one;
/// counts[n, c] says how often class c is among them. For a class that is not:
///
///   loss[n, c] = sum_j max(0, 1 - x[n, labels[n, j]] + x[n, c])
///
/// Its slope[n, c] is how many of these terms are above 0 (or NaN).
/// A class that is has loss 0 and slope -counts[n, c] times its terms above 0. So the slopes are
/// the derivatives of the sum of all losses. Work: samples * classes * labels.
///
/// REQUIRES: all dense; dtype is Float or Double. Labels of `classes` or more have no terms: an
/// earlier check has reported them.
struct LabelMarginsArgs {
  const void* x;          // [samples, classes] of dtype
  const void* counts;     // [samples, classes] of dtype
  const int64_t* labels;  // [samples, classes]
  void* loss;             // [samples, classes] of dtype
  void* slope;            // the same, or null
  int64_t samples, classes;
  ScalarType dtype;
};
RAMET_KERNEL(label_margins, LabelMarginsArgs);

}  // namespace kernels
}  // namespace ramet
