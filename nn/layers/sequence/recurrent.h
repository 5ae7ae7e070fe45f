// RNN, LSTM, GRU: layers of recurrent cells over whole sequences.
#pragma once
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nn/layers/sequence/packed_sequence.h"
#include "nn/module/any_module.h"
#include "nn/module/enum.h"
#include "nn/module/listed_module.h"

namespace ramet::autograd {
struct RecurrentResult;
}  // namespace ramet::autograd

namespace ramet::nn {

namespace detail {
/// What all three have.
struct RAMET_API RNNOptionsBase {
  using rnn_options_base_mode_t =
      OneOf<enumtype::kLSTM, enumtype::kGRU, enumtype::kRNN_TANH, enumtype::kRNN_RELU>;
  RNNOptionsBase(rnn_options_base_mode_t mode, int64_t input_size, int64_t hidden_size)
      : mode_(mode), input_size_(input_size), hidden_size_(hidden_size) {}
  RAMET_ARG(rnn_options_base_mode_t, mode);
  RAMET_ARG(int64_t, input_size);
  RAMET_ARG(int64_t, hidden_size);
  RAMET_ARG(int64_t, num_layers) = 1;
  RAMET_ARG(bool, bias) = true;
  /// [batch, time, features] instead of [time, batch, features]; states have no such form.
  RAMET_ARG(bool, batch_first) = false;
  /// Between layers, in training.
  RAMET_ARG(double, dropout) = 0.0;
  RAMET_ARG(bool, bidirectional) = false;
  /// Of an LSTM: above 0 the states' size, below hidden_size.
  RAMET_ARG(int64_t, proj_size) = 0;
};
}  // namespace detail

// What the options of all three have: setters that return Options.
#define RAMET_RECURRENT_OPTIONS(Options)                      \
  Options(int64_t input_size, int64_t hidden_size)            \
      : input_size_(input_size), hidden_size_(hidden_size) {} \
  RAMET_ARG(int64_t, input_size);                             \
  RAMET_ARG(int64_t, hidden_size);                            \
  RAMET_ARG(int64_t, num_layers) = 1;                         \
  RAMET_ARG(bool, bias) = true;                               \
  RAMET_ARG(bool, batch_first) = false;                       \
  RAMET_ARG(double, dropout) = 0.0;                           \
  RAMET_ARG(bool, bidirectional) = false;
struct RAMET_API RNNOptions {
  using nonlinearity_t = OneOf<enumtype::kTanh, enumtype::kReLU>;
  RAMET_RECURRENT_OPTIONS(RNNOptions)
  RAMET_ARG(nonlinearity_t, nonlinearity) = kTanh;
};
struct RAMET_API LSTMOptions {
  RAMET_RECURRENT_OPTIONS(LSTMOptions)
  RAMET_ARG(int64_t, proj_size) = 0;
};
struct RAMET_API GRUOptions {
  RAMET_RECURRENT_OPTIONS(GRUOptions)
};
#undef RAMET_RECURRENT_OPTIONS

namespace detail {

/// Parameters: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0, then those of
/// _l0_reverse, _l1, ... Their sizes are [gates * hidden, features]. The gates have LibTorch's
/// order: i, f, g, o of an LSTM, r, z, n of a GRU. Values are drawn from uniform(-1, 1) /
/// sqrt(hidden_size).
template <class Derived, class Options>
class RAMET_API RNNImplBase : public ListedModule<Derived, Options> {
 public:
  RNNImplBase(const RNNOptionsBase& base, const Options& options_);
  void reset() override;
  void reset_parameters();
  /// Does nothing: weights need no common memory here.
  void flatten_parameters() {}
  /// In the order above, those that there are.
  std::vector<Tensor> all_weights() const { return weights_; }

  RNNOptionsBase options_base;

 protected:
  /// The whole forward of [time, batch, features] (or batch first); hidden, cell: undefined for
  /// zeros.
  autograd::RecurrentResult run(const Tensor& input, const Tensor& hidden,
                                const Tensor& cell) const;
  /// The same of rows as they are packed, with the module's hooks.
  autograd::RecurrentResult run(const utils::rnn::PackedSequence& input, Tensor hidden,
                                Tensor cell);

 private:
  autograd::RecurrentResult run_rows(const utils::rnn::PackedSequence& input, const Tensor& rows,
                                     const Tensor& hidden, const Tensor& cell) const;
  // Whole tensors, where the registry has a rank's shards of them (fully_shard).
  std::vector<Tensor> weights_;
};

}  // namespace detail

/// An Elman network: h' = tanh(W x + b + W_h h + b_h), or relu.
class RAMET_API RNNImpl : public detail::RNNImplBase<RNNImpl, RNNOptions> {
 public:
  RNNImpl(int64_t input_size, int64_t hidden_size) : RNNImpl(RNNOptions(input_size, hidden_size)) {}
  explicit RNNImpl(const RNNOptions& options_);
  /// input: [time, batch, input_size]; hx: [num_layers * directions, batch, hidden_size], zeros by
  /// default. The output of the last layer, [time, batch, directions * hidden_size], and the last
  /// states.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  /// The same for packed rows. Unlike other calls of a method, it runs the module's hooks; they see
  /// the rows and the states.
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, Tensor hx = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNImplBase<RNNImpl, RNNOptions>;
RAMET_LISTED_MODULE(RNN, RNNOptions)

/// Long short-term memory (Hochreiter and Schmidhuber 1997).
class RAMET_API LSTMImpl : public detail::RNNImplBase<LSTMImpl, LSTMOptions> {
 public:
  /// h and c.
  using States = std::tuple<Tensor, Tensor>;
  LSTMImpl(int64_t input_size, int64_t hidden_size)
      : LSTMImpl(LSTMOptions(input_size, hidden_size)) {}
  explicit LSTMImpl(const LSTMOptions& options_);
  /// As RNN's; the states are h (of proj_size where that is above 0) and c.
  std::tuple<Tensor, States> forward(const Tensor& input, std::optional<States> hx_opt = {});
  std::tuple<utils::rnn::PackedSequence, States> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, std::optional<States> hx_opt = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNImplBase<LSTMImpl, LSTMOptions>;
RAMET_LISTED_MODULE(LSTM, LSTMOptions)

/// Gated recurrent units (Cho et al. 2014).
class RAMET_API GRUImpl : public detail::RNNImplBase<GRUImpl, GRUOptions> {
 public:
  GRUImpl(int64_t input_size, int64_t hidden_size) : GRUImpl(GRUOptions(input_size, hidden_size)) {}
  explicit GRUImpl(const GRUOptions& options_);
  /// As RNN's.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, Tensor hx = {});
  std::tuple<utils::rnn::PackedSequence, Tensor> forward_with_packed_input(
      const utils::rnn::PackedSequence& packed_input, Tensor hx = {});

 protected:
  RAMET_FORWARD_DEFAULT_ARGS_ELSEWHERE();
};
extern template class detail::RNNImplBase<GRUImpl, GRUOptions>;
RAMET_LISTED_MODULE(GRU, GRUOptions)

}  // namespace ramet::nn
