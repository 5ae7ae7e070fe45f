// Recurrent networks over the steps of sequences: the implementation of the functions of
// autograd/ops/layers/recurrent.h and of nn's recurrent modules.
#pragma once
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

enum class RecurrentCell : uint8_t { kLstm, kGru, kTanh, kRelu };

struct Recurrence {
  const char* op;  ///< the function that errors name
  RecurrentCell cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;  ///< between layers, in training
  bool train, bidirectional;
};
/// The output in the layout of the input, and the last states: [layers * directions, batch, ...].
/// cell: for an LSTM, else undefined.
struct RecurrentResult {
  Tensor output, hidden, cell;
};
/// Runs sequences [time, batch, features], or [batch, time, features]. hidden, cell: the first
/// states, undefined for zeros. weights: for each layer and direction ih, hh, and the biases ih and
/// hh where there are some. Then hr for an LSTM that has hidden states of other sizes than its
/// cells. Checks all sizes and types.
RAMET_API RecurrentResult run_recurrence(const Recurrence& r, TensorList weights,
                                         const Tensor& input, bool batch_first,
                                         const Tensor& hidden, const Tensor& cell);
/// The same for packed rows (PackedSequence): batch_sizes[t] sequences have a step t.
RAMET_API RecurrentResult run_recurrence(const Recurrence& r, TensorList weights,
                                         const Tensor& data, const Tensor& batch_sizes,
                                         const Tensor& hidden, const Tensor& cell);

/// The weights of one layer and direction; undefined ones do not exist.
struct RecurrentWeights {
  Tensor ih, hh, bias_ih, bias_hh, hr;
};
struct RecurrentState {
  Tensor hidden, cell;
  bool zeros = false;  // made because the caller gave none
};
/// One step for rows [n, ...]; checks them. Returns their states after it.
RAMET_API RecurrentState run_cell(const char* op, RecurrentCell cell, const RecurrentWeights& w,
                                  const Tensor& input, const RecurrentState& before);

// ---- one layer in one direction; operands are checked before
// -------------------------------------

/// The number of gates.
int64_t gates_of(RecurrentCell cell);

/// Sequences in one tensor, in packed form.
struct RecurrentInput {
  Tensor data;                // [sum of rows, features]
  std::vector<int64_t> rows;  // for each step, descending
};
/// The parts of all steps' gates that come from inputs, in one product: inputs times ih, plus
/// biases.
Tensor input_gates(RecurrentCell cell, const RecurrentWeights& w, const Tensor& x);
RecurrentState recurrent_step(RecurrentCell cell, const RecurrentWeights& w, const Tensor& gates,
                              const RecurrentState& before);

/// The outputs of all steps in the layout of the input, and the last states. Runs step by step, or
/// as one operation where is_one_operation().
std::pair<Tensor, RecurrentState> run_steps(RecurrentCell cell, const RecurrentWeights& w,
                                            const RecurrentInput& input, RecurrentState first,
                                            bool reverse);
std::pair<Tensor, RecurrentState> run_as_one(RecurrentCell cell, const RecurrentWeights& w,
                                             const RecurrentInput& input,
                                             const RecurrentState& first, bool reverse);
/// True for LSTM and GRU without projection, of a floating-point type.
bool is_one_operation(RecurrentCell cell, const RecurrentWeights& w, const RecurrentInput& input);

}  // namespace autograd
}  // namespace ramet
