// What recurrent modules compute: layers over the steps of sequences.
#pragma once
#include <utility>
#include <vector>

#include "nn/layers/recurrent.h"

namespace ramet::nn::detail {

/// uniform(-1, 1) / sqrt(hidden_size), in their order.
void reset_recurrent(const std::vector<Tensor>& weights, int64_t hidden_size);

/// Sequences in one tensor, as PackedSequence has them: `rows[t]` sequences have a step t.
struct RecurrentInput {
  Tensor data;  // [sum of rows, features]
  std::vector<int64_t> rows;
};
/// The output in the layout of the input, and the last states: [layers * directions, batch, ...].
/// cell: of an LSTM, else undefined.
struct RecurrentResult {
  Tensor output, hidden, cell;
};

/// hidden, cell: the first states. weights: as all_weights() has them. Sizes have been checked.
RecurrentResult run_recurrent(const RNNOptionsBase& options, const std::vector<Tensor>& weights,
                              RecurrentInput input, const Tensor& hidden, const Tensor& cell,
                              bool training);

/// One step of rows [n, ...] for modules of one cell: the weights of one layer and direction.
struct RecurrentWeights {
  Tensor ih, hh, bias_ih, bias_hh, hr;  // undefined where there is none
};
struct RecurrentState {
  Tensor hidden, cell;
};
/// What all steps add to their gates, in one product: rows of inputs times ih, and the biases.
Tensor input_gates(const RNNOptionsBase& options, const RecurrentWeights& w, const Tensor& x);
RecurrentState recurrent_step(const RNNOptionsBase& options, const RecurrentWeights& w,
                              const Tensor& gates, const RecurrentState& before);

/// One layer in one direction: the outputs of all steps in the layout of the input, and the last
/// states. Step by step, or, where is_one_operation(), as one.
std::pair<Tensor, RecurrentState> run_steps(const RNNOptionsBase& options,
                                            const RecurrentWeights& w, const RecurrentInput& input,
                                            RecurrentState first, bool reverse);
std::pair<Tensor, RecurrentState> run_as_one(const RNNOptionsBase& options,
                                             const RecurrentWeights& w, const RecurrentInput& input,
                                             const RecurrentState& first, bool reverse);
/// LSTM and GRU without projection whose operands are of one floating-point type and device, and
/// whose steps are those of the data, none with more sequences than the one before. Others go step
/// by step, where what does not fit is refused.
bool is_one_operation(const RNNOptionsBase& options, const RecurrentWeights& w,
                      const RecurrentInput& input, const RecurrentState& first);

}  // namespace ramet::nn::detail
