// Recurrent networks: LibTorch's functions of the same names, which nn's modules consist of. Also
// fused cells, which compute a step's gates in one operation. They run one kernel in each
// direction, and keep only activated gates and states. Operands share a dtype and device.
// Differentiable to any order.
#pragma once
#include <optional>
#include <tuple>

#include "autograd/tensor.h"

namespace ramet {

/// Layers of long short-term memory (Hochreiter and Schmidhuber 1997) over sequences.
///
/// input: [time, batch, features], or [batch, time, features] with batch_first. hx: the states h
/// and c, [layers * directions, batch, size] each. params: for each layer, and each of its
/// directions, W_ih [4 h, features] and W_hh [4 h, h]. After them the biases b_ih and b_hh [4 h]
/// where has_biases, and W_hr where states h have another size than c. Gates are in the order i, f,
/// g, o. Where `train`, dropout applies between layers.
///
/// Returns the output of the last layer, with its directions one after the other, and the last
/// states.
RAMET_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, TensorList hx,
                                                  TensorList params, bool has_biases,
                                                  int64_t num_layers, double dropout, bool train,
                                                  bool bidirectional, bool batch_first);
/// The same for sequences in the form of PackedSequence: data [sum of lengths, features],
/// batch_sizes int64 on the host. The output has that form too.
RAMET_API std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data, const Tensor& batch_sizes,
                                                  TensorList hx, TensorList params, bool has_biases,
                                                  int64_t num_layers, double dropout, bool train,
                                                  bool bidirectional);
/// One step: input [batch, features], states [batch, h]. Returns the states after it.
RAMET_API std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input, TensorList hx,
                                               const Tensor& w_ih, const Tensor& w_hh,
                                               const std::optional<Tensor>& b_ih = {},
                                               const std::optional<Tensor>& b_hh = {});

// As lstm's three functions, with one state. The gates of gru are in the order r, z, n.
#define RAMET_RECURRENT(name, kind)                                                          \
  RAMET_API std::tuple<Tensor, Tensor> name(                                                 \
      const Tensor& input, const Tensor& hx, TensorList params, bool has_biases,             \
      int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first); \
  RAMET_API std::tuple<Tensor, Tensor> name(                                                 \
      const Tensor& data, const Tensor& batch_sizes, const Tensor& hx, TensorList params,    \
      bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional);  \
  RAMET_API Tensor name##_cell(const Tensor& input, const Tensor& hx, const Tensor& w_ih,    \
                               const Tensor& w_hh, const std::optional<Tensor>& b_ih = {},   \
                               const std::optional<Tensor>& b_hh = {});
#include "autograd/ops/layers/recurrent.inc"
#undef RAMET_RECURRENT

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
