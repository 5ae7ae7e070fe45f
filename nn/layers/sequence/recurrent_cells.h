// RNNCell, LSTMCell, GRUCell: one step.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "nn/module/any_module.h"
#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/enum.h"
#include "nn/module/module_holder.h"

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

struct RAMET_API RNNCellOptions {
  using nonlinearity_t = OneOf<enumtype::kTanh, enumtype::kReLU>;
  RNNCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RAMET_ARG(int64_t, input_size);
  RAMET_ARG(int64_t, hidden_size);
  RAMET_ARG(bool, bias) = true;
  RAMET_ARG(nonlinearity_t, nonlinearity) = kTanh;
};
struct RAMET_API LSTMCellOptions {
  LSTMCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RAMET_ARG(int64_t, input_size);
  RAMET_ARG(int64_t, hidden_size);
  RAMET_ARG(bool, bias) = true;
};
struct RAMET_API GRUCellOptions {
  GRUCellOptions(int64_t input_size, int64_t hidden_size)
      : input_size_(input_size), hidden_size_(hidden_size) {}
  RAMET_ARG(int64_t, input_size);
  RAMET_ARG(int64_t, hidden_size);
  RAMET_ARG(bool, bias) = true;
};

namespace detail {

/// weight_ih [gates, input_size], weight_hh [gates, hidden_size] and biases [gates], with
/// LibTorch's order of gates, drawn from uniform(-1, 1) / sqrt(hidden_size). input: [batch,
/// input_size] or [input_size]; states: [batch, hidden_size] or [hidden_size], zeros by default.
template <class Derived> class RAMET_API RNNCellImplBase : public Cloneable<Derived> {
 public:
  explicit RNNCellImplBase(const RNNCellOptionsBase& options_);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  RNNCellOptionsBase options_base;
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;

 protected:
  /// The states after the step; cell: of an LSTM, else undefined.
  std::pair<Tensor, Tensor> step(const Tensor& input, const Tensor& hidden, const Tensor& cell,
                                 bool relu = false) const;
  virtual std::string get_nonlinearity_str() const { return ""; }
};

}  // namespace detail

/// One step of an RNN (functional form: rnn_tanh_cell, rnn_relu_cell): input (N, input_size) or
/// (input_size), state (N, hidden_size) or (hidden_size), zeros where none is given.
class RAMET_API RNNCellImpl : public detail::RNNCellImplBase<RNNCellImpl> {
 public:
  RNNCellImpl(int64_t input_size, int64_t hidden_size)
      : RNNCellImpl(RNNCellOptions(input_size, hidden_size)) {}
  explicit RNNCellImpl(const RNNCellOptions& options_);
  /// The new hidden state.
  Tensor forward(const Tensor& input, const Tensor& hx = {});

  RNNCellOptions options;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
  std::string get_nonlinearity_str() const override;
};
extern template class Cloneable<RNNCellImpl>;
extern template class detail::RNNCellImplBase<RNNCellImpl>;
RAMET_MODULE(RNNCell);

/// One step of an LSTM (functional form: lstm_cell): input (N, input_size) or (input_size), states
/// (N, hidden_size) or (hidden_size), zeros where none are given.
class RAMET_API LSTMCellImpl : public detail::RNNCellImplBase<LSTMCellImpl> {
 public:
  LSTMCellImpl(int64_t input_size, int64_t hidden_size)
      : LSTMCellImpl(LSTMCellOptions(input_size, hidden_size)) {}
  explicit LSTMCellImpl(const LSTMCellOptions& options_);
  /// The new states h and c.
  std::tuple<Tensor, Tensor> forward(const Tensor& input,
                                     std::optional<std::tuple<Tensor, Tensor>> hx_opt = {});

  LSTMCellOptions options;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class Cloneable<LSTMCellImpl>;
extern template class detail::RNNCellImplBase<LSTMCellImpl>;
RAMET_MODULE(LSTMCell);

/// One step of a GRU (functional form: gru_cell): input (N, input_size) or (input_size), state (N,
/// hidden_size) or (hidden_size), zeros where none is given.
class RAMET_API GRUCellImpl : public detail::RNNCellImplBase<GRUCellImpl> {
 public:
  GRUCellImpl(int64_t input_size, int64_t hidden_size)
      : GRUCellImpl(GRUCellOptions(input_size, hidden_size)) {}
  explicit GRUCellImpl(const GRUCellOptions& options_);
  /// The new hidden state.
  Tensor forward(const Tensor& input, const Tensor& hx = {});

  GRUCellOptions options;

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class Cloneable<GRUCellImpl>;
extern template class detail::RNNCellImplBase<GRUCellImpl>;
RAMET_MODULE(GRUCell);

}  // namespace ramet::nn
