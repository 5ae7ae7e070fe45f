// RNNCell, LSTMCell, GRUCell: one step.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "nn/module/any_module.h"
#include "nn/module/enum.h"
#include "nn/module/listed_module.h"

namespace ramet::nn {

namespace detail {
struct RAMET_API RNNCellOptionsBase {
  RNNCellOptionsBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t num_chunks)
      : input_size_(input_size), hidden_size_(hidden_size), bias_(bias), num_chunks_(num_chunks) {}
  RAMET_ARG(int64_t, input_size);
  RAMET_ARG(int64_t, hidden_size);
  RAMET_ARG(bool, bias);
  /// How many gates there are.
  RAMET_ARG(int64_t, num_chunks);
};
}  // namespace detail

// What the options of all three have.
#define RAMET_CELL_OPTIONS(Options)                           \
  Options(int64_t input_size, int64_t hidden_size)            \
      : input_size_(input_size), hidden_size_(hidden_size) {} \
  RAMET_ARG(int64_t, input_size);                             \
  RAMET_ARG(int64_t, hidden_size);                            \
  RAMET_ARG(bool, bias) = true;
struct RAMET_API RNNCellOptions {
  using nonlinearity_t = OneOf<enumtype::kTanh, enumtype::kReLU>;
  RAMET_CELL_OPTIONS(RNNCellOptions)
  RAMET_ARG(nonlinearity_t, nonlinearity) = kTanh;
};
struct RAMET_API LSTMCellOptions {
  RAMET_CELL_OPTIONS(LSTMCellOptions)
};
struct RAMET_API GRUCellOptions {
  RAMET_CELL_OPTIONS(GRUCellOptions)
};
#undef RAMET_CELL_OPTIONS

namespace detail {

/// weight_ih [gates, input_size], weight_hh [gates, hidden_size] and biases [gates], with
/// LibTorch's order of gates, drawn from uniform(-1, 1) / sqrt(hidden_size). input: [batch,
/// input_size] or [input_size]; states: [batch, hidden_size] or [hidden_size], zeros by default.
template <class Derived, class Options>
class RAMET_API RNNCellImplBase : public ListedModule<Derived, Options> {
 public:
  RNNCellImplBase(const Options& options_, int64_t num_chunks);
  void reset() override;
  void reset_parameters();

  RNNCellOptionsBase options_base;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  /// The states after the step; cell: of an LSTM, else undefined.
  std::pair<Tensor, Tensor> step(const Tensor& input, const Tensor& hidden, const Tensor& cell,
                                 bool relu = false) const;
};

}  // namespace detail

/// One step of an RNN (functional form: rnn_tanh_cell, rnn_relu_cell): input (N, input_size) or
/// (input_size), state (N, hidden_size) or (hidden_size), zeros where none is given.
class RAMET_API RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl, RNNCellOptions> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options_);
  /// The new hidden state.
  Tensor forward(const Tensor& input, const Tensor& hx = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNCellImplBase<RNNCellImpl, RNNCellOptions>;
RAMET_LISTED_MODULE(RNNCell, RNNCellOptions)

/// One step of an LSTM (functional form: lstm_cell): input (N, input_size) or (input_size), states
/// (N, hidden_size) or (hidden_size), zeros where none are given.
class RAMET_API LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl, LSTMCellOptions> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options_);
  /// The new states h and c.
  std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                     std::optional<std::tuple<Tensor, Tensor>> hx_opt = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNCellImplBase<LSTMCellImpl, LSTMCellOptions>;
RAMET_LISTED_MODULE(LSTMCell, LSTMCellOptions)

/// One step of a GRU (functional form: gru_cell): input (N, input_size) or (input_size), state (N,
/// hidden_size) or (hidden_size), zeros where none is given.
class RAMET_API GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl, GRUCellOptions> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options_);
  /// The new hidden state.
  Tensor forward(const Tensor& input, const Tensor& hx = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNCellImplBase<GRUCellImpl, GRUCellOptions>;
RAMET_LISTED_MODULE(GRUCell, GRUCellOptions)

}  // namespace ramet::nn
