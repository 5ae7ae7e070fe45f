// Recurrent networks: LibTorch's functions of the same names, which nn's modules consist of. Also
// fused cells, which compute a step's gates in one operation. They run one kernel in each
// direction, and keep only activated gates and states. Operands share a dtype and device.
// Differentiable to any order.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

#include "autograd/ops/layers/recurrent.inc"

/// A step of an LSTM after its products: gates [n, 4 h] are the sums i, f, g, o; cell [n, h] is the
/// state before. Returns the states after it, hidden and cell:
///   c' = sigma(f) c + sigma(i) tanh(g), h' = sigma(o) tanh(c')
/// Floating point.
RAMET_API std::tuple<Tensor, Tensor> fused_lstm_cell(const Tensor& gates, const Tensor& cell);

/// A step of gated recurrent units (Cho et al. 2014, with the bias of n's hidden part inside, as in
/// cuDNN). Arguments: what the input and the state before add to the gates r, z, n, [n, 3 h] each,
/// and that state, [n, h]. With r, z = sigma(x + y) and n = tanh(x_n + r y_n), the state after it
/// is
///   h' = (1 - z) n + z h
/// Floating point.
RAMET_API Tensor fused_gru_cell(const Tensor& input_gates, const Tensor& hidden_gates,
                                const Tensor& hidden);

}  // namespace ramet
