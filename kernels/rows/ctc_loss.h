// Connectionist temporal classification (Graves et al. 2006): the likelihood of a sequence of
// labels, summed over all ways to align it with the steps of an input.
#pragma once
#include "kernels/kernel.h"
#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

/// The samples and their alignment. Sample b has the first input_lengths[b] of `time` steps. It has
/// target_lengths[b] labels from targets[offsets[b]] on (without offsets: from b * padded). Its
/// states are its labels with a blank before, between and after them: 2 * labels + 1. At the first
/// step a path is in the first or second state. At the last step it is in the last state or the one
/// before. From step to step it stays or goes on to the next state. It may skip a blank between two
/// labels that differ.
///
/// REQUIRES: dtype is float or double. Lengths and labels out of range, which another check has
/// reported, do no harm: lengths are cut, and such a label has no probability.
struct CtcSamples {
  const void* log_probs;  // of step t, sample b, class c: t * strides[0] + b * strides[1] + c *
                          // strides[2]
  const int64_t *targets, *offsets, *input_lengths, *target_lengths;
  int64_t strides[3];
  int64_t time, batch, classes, blank;
  int64_t labels, padded;  // elements of targets; of a sample without offsets
  ScalarType dtype;
};

/// loss[b] = -log sum_paths exp(sum_t log_probs[t, b, class of the path's state]). If there is no
/// path: inf, or 0 with zero_infinity.
///
/// alpha[t][s] is the log of the same sum over the paths' first t + 1 steps that end in state s. It
/// is stored minus shifts[b][t]. That is the sum of the largest alphas of the steps before, formed
/// in double. So the rounding error of a float depends on how far a state is below the others, not
/// on the number of steps.
struct CtcLossArgs {
  CtcSamples samples;
  void* loss;        // [batch] of dtype
  double* negative;  // [batch]: -log p before zero_infinity; for the backward pass
  void* alpha;       // rows x ctc_states() elements
  double* shifts;    // [batch, time], or null with two rows
  void* workspace;   // ctc_loss_workspace() bytes on a CPU; unused on a GPU
  int64_t rows;      // time; 2 without a backward pass
  bool zero_infinity;
};
RAMET_KERNEL(ctc_loss_forward, CtcLossArgs);

/// dx[t, b, c] = -grad[b] p(t, c), and 0 at steps after the sample's last one. p is the
/// probability, given the labels, that a path is at step t in a state of class c. If the loss is
/// not finite: NaN, or 0 where it is inf and zero_infinity is set.
struct CtcLossBackwardArgs {
  CtcSamples samples;
  const void* grad;  // [batch]
  const double* negative;
  const void* alpha;
  const double* shifts;
  void* dx;         // dense [time, batch, classes]
  void* workspace;  // ctc_loss_backward_workspace() bytes
  bool zero_infinity;
};
RAMET_KERNEL(ctc_loss_backward, CtcLossBackwardArgs);

/// States of all samples. Each has two more, next to its row's ends, which no path reaches.
RAMET_INLINE constexpr int64_t ctc_states(int64_t labels, int64_t batch) {
  return 2 * labels + 3 * batch;
}
/// Bytes: the rows that a sample uses. On a GPU: the probability of every state at every step.
constexpr int64_t ctc_loss_workspace(int64_t states, int64_t item) { return 2 * states * item; }
constexpr int64_t ctc_loss_backward_rows(int64_t time, bool on_cpu) {
  return on_cpu ? 5 : time + 2;
}
constexpr int64_t ctc_loss_backward_workspace(int64_t states, int64_t labels, int64_t time,
                                              int64_t item, bool on_cpu) {
  return ctc_loss_backward_rows(time, on_cpu) * states * item + (on_cpu ? 0 : 16 * labels);
}

}  // namespace kernels
}  // namespace ramet
