// Recurrent networks over the steps of sequences: what the functions of
// autograd/ops/layers/recurrent.h and nn's recurrent modules are.
#pragma once
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace autograd {

enum class RecurrentCell : uint8_t { kLstm, kGru, kTanh, kRelu };

struct Recurrence {
  const char* op;  ///< whose errors they are
  RecurrentCell cell;
  bool has_biases;
  int64_t num_layers;
  double dropout;  ///< between layers, in training
  bool train, bidirectional;
};
/// The output in the layout of the input, and the last states: [layers * directions, batch, ...].
/// cell: of an LSTM, else undefined.
struct RecurrentResult {
  Tensor output, hidden, cell;
};
/// Of [time, batch, features], or [batch, time, features]. hidden, cell: the first states,
/// undefined for zeros. weights: of each layer and direction ih, hh, the biases ih and hh where
/// there are some, and hr of an LSTM whose hidden states have other sizes than its cells. All sizes
/// and types are checked.
RAMET_API RecurrentResult run_recurrence(const Recurrence& r, TensorList weights,
                                         const Tensor& input, bool batch_first,
                                         const Tensor& hidden, const Tensor& cell);
/// The same of rows as they are packed (PackedSequence): batch_sizes[t] sequences have a step t.
RAMET_API RecurrentResult run_recurrence(const Recurrence& r, TensorList weights,
                                         const Tensor& data, const Tensor& batch_sizes,
                                         const Tensor& hidden, const Tensor& cell);

/// The weights of one layer and direction; undefined where there is none.
struct RecurrentWeights {
  Tensor ih, hh, bias_ih, bias_hh, hr;
};
struct RecurrentState {
  Tensor hidden, cell;
};
/// One step of rows [n, ...], checked, and their states after it.
RAMET_API RecurrentState run_cell(const char* op, RecurrentCell cell, const RecurrentWeights& w,
                                  const Tensor& input, const RecurrentState& before);

// ---- one layer in one direction, of checked operands --------------------------------------------

/// How many gates there are.
int64_t gates_of(RecurrentCell cell);

/// Sequences in one tensor, as they are packed.
struct RecurrentInput {
  Tensor data;                // [sum of rows, features]
  std::vector<int64_t> rows;  // of each step, descending
};
/// What all steps add to their gates, in one product: rows of inputs times ih, and the biases.
Tensor input_gates(RecurrentCell cell, const RecurrentWeights& w, const Tensor& x);
RecurrentState recurrent_step(RecurrentCell cell, const RecurrentWeights& w, const Tensor& gates,
                              const RecurrentState& before);

/// The outputs of all steps in the layout of the input, and the last states. Step by step, or,
/// where is_one_operation(), as one.
std::pair<Tensor, RecurrentState> run_steps(RecurrentCell cell, const RecurrentWeights& w,
                                            const RecurrentInput& input, RecurrentState first,
                                            bool reverse);
std::pair<Tensor, RecurrentState> run_as_one(RecurrentCell cell, const RecurrentWeights& w,
                                             const RecurrentInput& input,
                                             const RecurrentState& first, bool reverse);
/// LSTM and GRU without projection, of a floating-point type.
bool is_one_operation(RecurrentCell cell, const RecurrentWeights& w, const RecurrentInput& input);

}  // namespace autograd
}  // namespace ramet
