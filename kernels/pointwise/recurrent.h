// Element-wise part of an LSTM or GRU step, after the products. All matrices are dense, of one
// floating dtype. 16-bit values compute in float and are rounded once.
#pragma once
#include "kernels/kernel.h"

namespace ramet {
namespace kernels {

/// An LSTM (Hochreiter and Schmidhuber 1997). sums: [rows, 4 cols], the gates i, f, g, o before
/// their functions. before: [rows, cols], the cell's state. It writes `gates` (may be `sums`):
///   i, f, o = sigma(sums), g = tanh(sums)
/// Also cell (may be `before`) = f before + i g, and hidden = o tanh(cell).
struct LstmStepArgs {
  const void *sums, *before;
  void *gates, *cell, *hidden;
  int64_t rows, cols;
  ScalarType dtype;
};
RAMET_KERNEL(lstm_step, LstmStepArgs);

/// Its derivatives, from the gates and states above. d_hidden is the sum of two gradients, so that
/// no other code needs to add them. Any of these and of d_cell may be null, for zeros. d_sums has
/// the layout of `gates`. d_before may be d_cell; null: unwanted.
struct LstmStepBackwardArgs {
  const void *gates, *before, *cell, *d_hidden, *d_hidden_too, *d_cell;
  void *d_sums, *d_before;
  int64_t rows, cols;
  ScalarType dtype;
};
RAMET_KERNEL(lstm_step_backward, LstmStepBackwardArgs);

/// Gated recurrent units (Cho et al. 2014, with the bias of the hidden part of n inside, as in
/// cuDNN). input, state: [rows, 3 cols], the contributions of the step's input and of the state
/// before to the gates r, z, n. `kept` ([rows, 4 cols], or null without a backward pass) gets
///   r, z = sigma(input + state), n = tanh(input + r state), and the state's part of n,
/// and hidden = n + z (before - n).
struct GruStepArgs {
  const void *input, *state, *before;
  void *kept, *hidden;
  int64_t rows, cols;
  ScalarType dtype;
};
RAMET_KERNEL(gru_step, GruStepArgs);

/// Its derivatives; d_hidden as above. d_before is the direct gradient of `before`. It may be
/// d_hidden_too; null: unwanted.
struct GruStepBackwardArgs {
  const void *kept, *before, *d_hidden, *d_hidden_too;
  void *d_input, *d_state, *d_before;
  int64_t rows, cols;
  ScalarType dtype;
};
RAMET_KERNEL(gru_step_backward, GruStepBackwardArgs);

}  // namespace kernels
}  // namespace ramet
