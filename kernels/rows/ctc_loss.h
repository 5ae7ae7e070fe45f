// Connectionist temporal classification (Graves et al. 2006): the likelihood of a sequence of
// labels, summed over all ways to align it with the steps of an input.
#pragma once
#include "kernels/kernel.h"
#include "kernels/simd/inline.h"

namespace ramet {
namespace kernels {

/// What is aligned with what. Sample b has the first input_lengths[b] of `time` steps, and
/// target_lengths[b] labels from targets[offsets[b]] on (without offsets: from b * padded). Its
/// states are its labels with a blank before, between and behind them: 2 * labels + 1. A path is in
/// the first or second state at the first step, in the last or last but one at the last step; from
/// step to step it stays, goes on to the next state, or over a blank between two labels that
/// differ.
///
/// REQUIRES: dtype is float or double. Lengths and labels beyond their ranges, which somebody has
/// reported, do no harm: lengths are cut, such a label has no probability.
struct CtcSamples {
  const void* log_probs;  // of step t, sample b, class c: t * strides[0] + b * strides[1] + c *
                          // strides[2]
  const int64_t *targets, *offsets, *input_lengths, *target_lengths;
  int64_t strides[3];
  int64_t time, batch, classes, blank;
  int64_t labels, padded;  // elements of targets; those of a sample where there are no offsets
  ScalarType dtype;
};

/// loss[b] = -log sum_paths exp(sum_t log_probs[t, b, class of the path's state]); inf where there
/// is no path, or 0 then (zero_infinity).
///
/// alpha[t][s] is the log of the same sum over the paths' first t + 1 steps that end in state s. It
/// is kept less shifts[b][t], the sum of the largest alphas of the steps before, which is formed in
/// double: what a float rounds follows from how far a state is behind the others, not from how many
/// steps there were.
struct CtcLossArgs {
  CtcSamples samples;
  void* loss;        // [batch] of dtype
  double* negative;  // [batch]: -log p before anything is made 0; for the backward
  void* alpha;       // rows x ctc_states() elements
  double* shifts;    // [batch, time], or null with two rows
  void* workspace;   // ctc_loss_workspace() bytes on a CPU; unused on a GPU
  int64_t rows;      // time; 2 where there will be no backward
  bool zero_infinity;
};
RAMET_KERNEL(ctc_loss_forward, CtcLossArgs);

/// dx[t, b, c] = -grad[b] p(t, c), where p is the probability, given the labels, that a path is at
/// step t in a state of class c; 0 at steps beyond the sample's. Where the loss is not finite NaN,
/// or with zero_infinity 0 where it is inf.
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

/// States of all samples, with two more each, which lie beside a row's ends and are never reached.
RAMET_INLINE constexpr int64_t ctc_states(int64_t labels, int64_t batch) {
  return 2 * labels + 3 * batch;
}
/// Bytes: rows on which a sample works, and on a GPU the probability of every state at every step.
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
