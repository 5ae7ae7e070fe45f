#include "nn/layers/sequence/recurrent.h"

#include "autograd/ops/layers/recurrent_internal.h"
#include "autograd/ops/make/factory.h"
#include "nn/layers/sequence/recurrent_internal.h"
#include "nn/module/listed_module_internal.h"
#include "nn/module/module_hooks.h"
#include "runtime/base/checked_size.h"
#include "runtime/base/logging.h"

namespace ramet::nn {

using autograd::RecurrentResult;
using utils::rnn::PackedSequence;

namespace detail {
namespace {

const char* name_of(const RNNOptionsBase& o) {
  // In the order of rnn_options_base_mode_t.
  constexpr const char* kNames[] = {"LSTM", "GRU", "RNN", "RNN"};
  return kNames[o.mode().index()];
}
autograd::RecurrentCell cell_of(const RNNOptionsBase& o) {
  using Cell = autograd::RecurrentCell;
  constexpr Cell kCells[] = {Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu};
  return kCells[o.mode().index()];
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

autograd::Recurrence recurrence(const RNNOptionsBase& o, bool training) {
  return {name_of(o),  cell_of(o), o.bias(),         o.num_layers(),
          o.dropout(), training,   o.bidirectional()};
}

}  // namespace

template <class Derived, class Options>
RNNImplBase<Derived, Options>::RNNImplBase(const RNNOptionsBase& base, const Options& options_)
    : RNNImplBase::ListedModule(options_), options_base(base) {
  RNNImplBase::reset();
}

template <class Derived, class Options> void RNNImplBase<Derived, Options>::reset() {
  const RNNOptionsBase& o = options_base;
  check_options(o);
  const int64_t directions = o.bidirectional() ? 2 : 1, states = state_size(o);
  const int64_t gates =
      checked_mul(name_of(o), "hidden_size", autograd::gates_of(cell_of(o)), o.hidden_size());
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

template <class Derived, class Options> void RNNImplBase<Derived, Options>::reset_parameters() {
  reset_recurrent(weights_, options_base.hidden_size());
}

template <class Derived, class Options>
RecurrentResult RNNImplBase<Derived, Options>::run(const Tensor& input, const Tensor& hidden,
                                                   const Tensor& cell) const {
  return autograd::run_recurrence(recurrence(options_base, this->is_training()), weights_, input,
                                  options_base.batch_first(), hidden, cell);
}

// forward_with_packed_input() is a forward, but LibTorch's programs call it as a method. So the
// module's hooks run here: one of fully_shard gathers the weights, one of weight_norm computes
// them.
template <class Derived, class Options>
RecurrentResult RNNImplBase<Derived, Options>::run(const PackedSequence& input, Tensor hidden,
                                                   Tensor cell) {
  const std::shared_ptr<const ModuleHooks> hooks = this->forward_hooks();
  if (RAMET_LIKELY(!hooks)) return run_rows(input, input.data(), hidden, cell);
  const auto scopes = hooks->enter(*this);
  Tensor rows = input.data();
  // Hooks see and replace the rows and the states that are given, then those that come out.
  const auto run_them = [](const std::vector<Tensor*>& all, const auto& run) {
    std::vector<Tensor*> there;
    std::vector<Tensor> tensors;
    for (Tensor* t : all)
      if (t->defined()) there.push_back(t), tensors.push_back(*t);
    run(tensors);
    for (size_t i = 0; i < there.size(); ++i) *there[i] = tensors[i];
    return tensors;
  };
  const std::vector<Tensor> inputs =
      run_them({&rows, &hidden, &cell}, [&](auto& t) { hooks->run_pre(*this, t); });
  RecurrentResult r = run_rows(input, rows, hidden, cell);
  run_them({&r.output, &r.hidden, &r.cell}, [&](auto& t) { hooks->run_post(*this, inputs, t); });
  return r;
}

template <class Derived, class Options>
RecurrentResult RNNImplBase<Derived, Options>::run_rows(const PackedSequence& input,
                                                        const Tensor& rows, const Tensor& hidden,
                                                        const Tensor& cell) const {
  const auto permuted = [](const Tensor& t, const Tensor& indices) {
    return t.defined() && indices.defined() ? t.index_select(1, indices) : t;
  };
  RecurrentResult r = autograd::run_recurrence(
      recurrence(options_base, this->is_training()), weights_, rows, input.batch_sizes(),
      permuted(hidden, input.sorted_indices()), permuted(cell, input.sorted_indices()));
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

template class RNNImplBase<RNNImpl, RNNOptions>;
template class RNNImplBase<LSTMImpl, LSTMOptions>;
template class RNNImplBase<GRUImpl, GRUOptions>;

// What all three print.
template <class Options> std::vector<Field> recurrent_fields(Options& o) {
  return {{"input_size", &o.input_size(), kCount},    {"hidden_size", &o.hidden_size(), kCount},
          {"num_layers", &o.num_layers(), kPositive}, {"bias", &o.bias()},
          {"batch_first", &o.batch_first()},          {"dropout", &o.dropout()},
          {"bidirectional", &o.bidirectional()}};
}
}  // namespace detail

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(RNNImpl, {1, AnyValue(Tensor())})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(LSTMImpl, {1, AnyValue(std::optional<States>())})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(GRUImpl, {1, AnyValue(Tensor())})

RAMET_FIELDS(RNN, with(recurrent_fields(o), {"nonlinearity", &o.nonlinearity(), kNotPrinted}))
RAMET_FIELDS(LSTM,
             with(recurrent_fields(o), {"proj_size", &o.proj_size(), kIfChanged | kNotNegative}))
RAMET_FIELDS(GRU, recurrent_fields(o))

// ---- RNN ----------------------------------------------------------------------------------------

RNNImpl::RNNImpl(const RNNOptions& o)
    : RNNImplBase(holds_alternative<enumtype::kReLU>(o.nonlinearity())
                      ? detail::base_of(kRNN_RELU, o)
                      : detail::base_of(kRNN_TANH, o),
                  o) {}
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
    : RNNImplBase(detail::base_of(kLSTM, o).proj_size(o.proj_size()), o) {}
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

GRUImpl::GRUImpl(const GRUOptions& o) : RNNImplBase(detail::base_of(kGRU, o), o) {}
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
