#include "nn/layers/recurrent.h"

#include <ostream>

#include "autograd/ops.h"
#include "nn/layers/recurrent_steps_internal.h"
#include "nn/module/class_name.h"
#include "runtime/checked_size.h"
#include "runtime/logging.h"

namespace ramet::nn {

using utils::rnn::PackedSequence;

namespace detail {
namespace {

const char* name_of(const RNNOptionsBase& o) {
  // In the order of rnn_options_base_mode_t.
  constexpr const char* kNames[] = {"LSTM", "GRU", "RNN", "RNN"};
  return kNames[o.mode().index()];
}
int64_t gates_of(const RNNOptionsBase& o) {
  constexpr int64_t kGates[] = {4, 3, 1, 1};
  return kGates[o.mode().index()];
}
int64_t state_size(const RNNOptionsBase& o) {
  return o.proj_size() > 0 ? o.proj_size() : o.hidden_size();
}

void check_options(const RNNOptionsBase& o) {
  const char* const op = name_of(o);
  RAMET_CHECK(o.dropout() >= 0 && o.dropout() <= 1, op,
              "dropout should be a number in range [0, 1] representing the probability of an "
              "element being zeroed: got ",
              o.dropout());
  RAMET_CHECK(o.input_size() >= 0 && o.hidden_size() > 0 && o.num_layers() > 0, op,
              "sizes: got input_size ", o.input_size(), ", hidden_size ", o.hidden_size(),
              " and num_layers ", o.num_layers(), ", expected positive ones");
  RAMET_CHECK(o.proj_size() >= 0 && o.proj_size() < o.hidden_size(), op,
              "proj_size must be smaller than hidden_size, and 0 or more: got ", o.proj_size(),
              " and hidden_size ", o.hidden_size());
  if (o.dropout() > 0 && o.num_layers() == 1)
    log(LogLevel::Warning, "[", op,
        "] dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
        "expects num_layers greater than 1, but got dropout=",
        o.dropout(), " and num_layers=", o.num_layers());
}

// Defined, on the input's side and of this shape; zeros where it is undefined.
Tensor first_state(const RNNOptionsBase& o, const char* what, const Tensor& state, int64_t batch,
                   int64_t size, const Tensor& input) {
  const std::vector<int64_t> shape{o.num_layers() * (o.bidirectional() ? 2 : 1), batch, size};
  if (!state.defined()) return zeros(shape, input.options());
  RAMET_CHECK(state.sizes() == IntArrayRef(shape), name_of(o), "Expected ", what, " size ",
              IntArrayRef(shape), ", got ", state.sizes());
  return state;
}

// `rows` of all sequences that there are, which are input's data.
RecurrentResult run_rows(const RNNOptionsBase& o, const std::vector<Tensor>& weights,
                         RecurrentInput input, const Tensor& hidden, const Tensor& cell,
                         bool training) {
  const char* const op = name_of(o);
  RAMET_CHECK(!input.rows.empty(), op, "Expected sequence length to be larger than 0");
  const int64_t batch = input.rows[0];
  const Tensor h = first_state(o, o.mode().index() == 0 ? "hidden[0]" : "hidden", hidden, batch,
                               state_size(o), input.data);
  const Tensor c = o.mode().index() == 0
                       ? first_state(o, "hidden[1]", cell, batch, o.hidden_size(), input.data)
                       : Tensor();
  return run_recurrent(o, weights, std::move(input), h, c, training);
}
void check_input(const RNNOptionsBase& o, const Tensor& input, int64_t dim) {
  const char* const op = name_of(o);
  RAMET_CHECK(input.defined() && input.dim() == dim, op, "input must have ", dim,
              " dimensions: got ", describe(input));
  RAMET_CHECK(input.size(-1) == o.input_size(), op,
              "input.size(-1) must be equal to input_size. Expected ", o.input_size(), ", got ",
              input.size(-1));
}

}  // namespace

template <class Derived>
RNNImplBase<Derived>::RNNImplBase(const RNNOptionsBase& options_) : options_base(options_) {
  RNNImplBase::reset();
}

template <class Derived> void RNNImplBase<Derived>::reset() {
  const RNNOptionsBase& o = options_base;
  check_options(o);
  const int64_t directions = o.bidirectional() ? 2 : 1, states = state_size(o);
  const int64_t gates = checked_mul(name_of(o), "hidden_size", gates_of(o), o.hidden_size());
  // A layer takes some hundred bytes even where its tensors are small.
  check_room(name_of(o), "num_layers", static_cast<uint64_t>(o.num_layers()), 1024);
  weights_.clear();
  for (int64_t layer = 0; layer < o.num_layers(); ++layer)
    for (int64_t d = 0; d < directions; ++d) {
      const std::string suffix = "_l" + std::to_string(layer) + (d == 1 ? "_reverse" : "");
      const auto add = [&](const char* name, std::vector<int64_t> sizes) {
        weights_.push_back(this->register_parameter(name + suffix, ramet::empty(sizes)));
      };
      add("weight_ih", {gates, layer == 0 ? o.input_size() : states * directions});
      add("weight_hh", {gates, states});
      if (o.bias()) add("bias_ih", {gates}), add("bias_hh", {gates});
      if (o.proj_size() > 0) add("weight_hr", {states, o.hidden_size()});
    }
  reset_parameters();
}

template <class Derived> void RNNImplBase<Derived>::reset_parameters() {
  reset_recurrent(weights_, options_base.hidden_size());
}

template <class Derived> void RNNImplBase<Derived>::pretty_print(std::ostream& stream) const {
  const RNNOptionsBase& o = options_base;
  stream << std::boolalpha << qualified(std::string("nn::") + name_of(o))
         << "(input_size=" << o.input_size() << ", hidden_size=" << o.hidden_size()
         << ", num_layers=" << o.num_layers() << ", bias=" << o.bias()
         << ", batch_first=" << o.batch_first() << ", dropout=" << o.dropout()
         << ", bidirectional=" << o.bidirectional();
  if (o.proj_size() > 0) stream << ", proj_size=" << o.proj_size();
  stream << ")";
}

template <class Derived>
RecurrentResult RNNImplBase<Derived>::run(const Tensor& input, const Tensor& hidden,
                                          const Tensor& cell) const {
  const RNNOptionsBase& o = options_base;
  check_input(o, input, 3);
  const Tensor x = o.batch_first() ? input.transpose(0, 1) : input;
  const int64_t steps = x.size(0), batch = x.size(1);
  RecurrentResult r = run_rows(o, weights_,
                               {x.reshape({steps * batch, x.size(2)}),
                                std::vector<int64_t>(static_cast<size_t>(steps), batch)},
                               hidden, cell, this->is_training());
  r.output = r.output.view({steps, batch, r.output.size(1)});
  if (o.batch_first()) r.output = r.output.transpose(0, 1);
  return r;
}

template <class Derived>
RecurrentResult RNNImplBase<Derived>::run(const PackedSequence& input, const Tensor& hidden,
                                          const Tensor& cell) const {
  check_input(options_base, input.data(), 2);
  const auto permuted = [](const Tensor& t, const Tensor& indices) {
    return t.defined() && indices.defined() ? t.index_select(1, indices) : t;
  };
  const Tensor sizes = input.batch_sizes().contiguous();
  const int64_t* at = sizes.const_data_ptr<int64_t>();
  RecurrentResult r = run_rows(options_base, weights_, {input.data(), {at, at + sizes.numel()}},
                               permuted(hidden, input.sorted_indices()),
                               permuted(cell, input.sorted_indices()), this->is_training());
  r.hidden = permuted(r.hidden, input.unsorted_indices());
  r.cell = permuted(r.cell, input.unsorted_indices());
  return r;
}

namespace {
template <class Options>
RNNOptionsBase base_of(RNNOptionsBase::rnn_options_base_mode_t mode, const Options& o) {
  return RNNOptionsBase(mode, o.input_size(), o.hidden_size())
      .num_layers(o.num_layers())
      .bias(o.bias())
      .batch_first(o.batch_first())
      .dropout(o.dropout())
      .bidirectional(o.bidirectional());
}
// Rows that were computed in place of the input's.
PackedSequence packed_like(const PackedSequence& input, const Tensor& data) {
  return PackedSequence(data, input.batch_sizes(), input.sorted_indices(),
                        input.unsorted_indices());
}
}  // namespace

template class RNNImplBase<RNNImpl>;
template class RNNImplBase<LSTMImpl>;
template class RNNImplBase<GRUImpl>;
}  // namespace detail

template class Cloneable<RNNImpl>;
template class Cloneable<LSTMImpl>;
template class Cloneable<GRUImpl>;

using detail::RecurrentResult;

// ---- RNN ----------------------------------------------------------------------------------------

RNNImpl::RNNImpl(const RNNOptions& o)
    : detail::RNNImplBase<RNNImpl>(std::holds_alternative<enumtype::kReLU>(o.nonlinearity())
                                       ? detail::base_of(kRNN_RELU, o)
                                       : detail::base_of(kRNN_TANH, o)),
      options(o) {}
std::tuple<Tensor, Tensor> RNNImpl::forward(const Tensor& input, Tensor hx) {
  const RecurrentResult r = run(input, hx, {});
  return {r.output, r.hidden};
}
std::tuple<PackedSequence, Tensor> RNNImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      Tensor hx) {
  const RecurrentResult r = run(input, hx, {});
  return {detail::packed_like(input, r.output), r.hidden};
}

// ---- LSTM ---------------------------------------------------------------------------------------

LSTMImpl::LSTMImpl(const LSTMOptions& o)
    : detail::RNNImplBase<LSTMImpl>(detail::base_of(kLSTM, o).proj_size(o.proj_size())),
      options(o) {}
std::tuple<Tensor, LSTMImpl::States> LSTMImpl::forward(const Tensor& input,
                                                       std::optional<States> hx_opt) {
  const auto [hidden, cell] = hx_opt.value_or(States());
  const RecurrentResult r = run(input, hidden, cell);
  return {r.output, {r.hidden, r.cell}};
}
std::tuple<PackedSequence, LSTMImpl::States> LSTMImpl::forward_with_packed_input(
    const PackedSequence& input, std::optional<States> hx_opt) {
  const auto [hidden, cell] = hx_opt.value_or(States());
  const RecurrentResult r = run(input, hidden, cell);
  return {detail::packed_like(input, r.output), {r.hidden, r.cell}};
}

// ---- GRU ----------------------------------------------------------------------------------------

GRUImpl::GRUImpl(const GRUOptions& o)
    : detail::RNNImplBase<GRUImpl>(detail::base_of(kGRU, o)), options(o) {}
std::tuple<Tensor, Tensor> GRUImpl::forward(const Tensor& input, Tensor hx) {
  const RecurrentResult r = run(input, hx, {});
  return {r.output, r.hidden};
}
std::tuple<PackedSequence, Tensor> GRUImpl::forward_with_packed_input(const PackedSequence& input,
                                                                      Tensor hx) {
  const RecurrentResult r = run(input, hx, {});
  return {detail::packed_like(input, r.output), r.hidden};
}

}  // namespace ramet::nn
