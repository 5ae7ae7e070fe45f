// What a step of a recurrent network does with its gates, as one operation: one kernel each way,
// and only activated gates and states are kept. nn's layers and cells are made of these.
#pragma once
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// A step of an LSTM (Hochreiter and Schmidhuber 1997) behind its products: gates [n, 4 h] are the
/// sums i, f, g, o, cell [n, h] the state before. The states after, hidden and cell:
///   c' = sigma(f) c + sigma(i) tanh(g), h' = sigma(o) tanh(c')
/// Floating point, one dtype and device. Differentiable to any order.
RAMET_API std::tuple<Tensor, Tensor> fused_lstm_cell(const Tensor& gates, const Tensor& cell);

/// A step of gated recurrent units (Cho et al. 2014, with the bias of n's hidden part inside, as
/// cuDNN has it): what input and state before add to the gates r, z, n, [n, 3 h] each, and that
/// state, [n, h]. With r, z = sigma(x + y) and n = tanh(x_n + r y_n) the state after:
///   h' = (1 - z) n + z h
/// As above.
RAMET_API Tensor fused_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                const Tensor& hidden);

}  // namespace ramet
