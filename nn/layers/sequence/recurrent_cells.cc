#include "nn/layers/sequence/recurrent_cells.h"

#include "autograd/ops/layers/recurrent_internal.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/shape/view.h"
#include "nn/layers/sequence/recurrent_internal.h"
#include "nn/module/listed_module_internal.h"
#include "runtime/base/checked_size.h"

namespace ramet::nn {
namespace detail {
namespace {

// By the number of gates.
const char* name_of(const RNNCellOptionsBase& o) {
  return o.num_chunks() == 4 ? "LSTMCell" : o.num_chunks() == 3 ? "GRUCell" : "RNNCell";
}
autograd::RecurrentCell cell_of(const RNNCellOptionsBase& o, bool relu) {
  using Cell = autograd::RecurrentCell;
  return o.num_chunks() == 4   ? Cell::kLstm
         : o.num_chunks() == 3 ? Cell::kGru
         : relu                ? Cell::kRelu
                               : Cell::kTanh;
}

}  // namespace

template <class Derived, class Options>
RNNCellImplBase<Derived, Options>::RNNCellImplBase(const Options& options_, int64_t num_chunks)
    : RNNCellImplBase::ListedModule(options_),
      options_base(options_.input_size(), options_.hidden_size(), options_.bias(), num_chunks) {
  RNNCellImplBase::reset();
}

template <class Derived, class Options> void RNNCellImplBase<Derived, Options>::reset() {
  const RNNCellOptionsBase& o = options_base;
  RAMET_CHECK(o.input_size() >= 0 && o.hidden_size() > 0, name_of(o), "sizes: got input_size ",
              o.input_size(), " and hidden_size ", o.hidden_size(), ", expected positive ones");
  const int64_t gates = checked_mul(name_of(o), "hidden_size", o.num_chunks(), o.hidden_size());
  weight_ih = this->register_parameter("weight_ih", ramet::empty({gates, o.input_size()}));
  weight_hh = this->register_parameter("weight_hh", ramet::empty({gates, o.hidden_size()}));
  const auto bias = [&](const char* name) {
    return o.bias() ? this->register_parameter(name, ramet::empty({gates}))
                    : this->register_parameter(name, Tensor(), /*requires_grad=*/false);
  };
  bias_ih = bias("bias_ih");
  bias_hh = bias("bias_hh");
  reset_parameters();
}

template <class Derived, class Options> void RNNCellImplBase<Derived, Options>::reset_parameters() {
  reset_recurrent(this->parameters(), options_base.hidden_size());
}

template <class Derived, class Options>
std::pair<Tensor, Tensor> RNNCellImplBase<Derived, Options>::step(const Tensor& input,
                                                                  const Tensor& hidden,
                                                                  const Tensor& cell,
                                                                  bool relu) const {
  const RNNCellOptionsBase& o = options_base;
  const char* const op = name_of(o);
  RAMET_CHECK(input.defined() && (input.dim() == 1 || input.dim() == 2), op,
              "Expected input to be 1D or 2D, got ", describe(input));
  const bool alone = input.dim() == 1;
  std::vector<int64_t> shape{o.hidden_size()};
  if (!alone) shape.insert(shape.begin(), input.size(0));
  const auto rows = [&](const Tensor& t) { return alone ? t.unsqueeze(0) : t; };
  const auto state = [&](const char* what, const Tensor& given) {
    if (!given.defined()) return rows(zeros(shape, input.options()));
    RAMET_CHECK(given.sizes() == IntArrayRef(shape), op, what, ": got ", describe(given),
                ", expected ", IntArrayRef(shape));
    return rows(given);
  };
  const autograd::RecurrentState after = autograd::run_cell(
      op, cell_of(o, relu), {weight_ih, weight_hh, bias_ih, bias_hh, {}}, rows(input),
      {state("hidden", hidden), o.num_chunks() == 4 ? state("cell", cell) : Tensor()});
  const auto back = [&](const Tensor& t) { return alone && t.defined() ? t.squeeze(0) : t; };
  return {back(after.hidden), back(after.cell)};
}

template class RNNCellImplBase<RNNCellImpl, RNNCellOptions>;
template class RNNCellImplBase<LSTMCellImpl, LSTMCellOptions>;
template class RNNCellImplBase<GRUCellImpl, GRUCellOptions>;

}  // namespace detail

RAMET_DEFINE_FORWARD_DEFAULT_ARGS(RNNCellImpl, {1, AnyValue(Tensor())})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(LSTMCellImpl,
                                  {1, AnyValue(std::optional<std::tuple<Tensor, Tensor>>())})
RAMET_DEFINE_FORWARD_DEFAULT_ARGS(GRUCellImpl, {1, AnyValue(Tensor())})

namespace detail {
namespace {
template <class Options> std::vector<Field> cell_fields(Options& o) {
  return {{"input_size", &o.input_size(), kBare},
          {"hidden_size", &o.hidden_size(), kBare},
          {"bias", &o.bias(), kIfChanged}};
}
}  // namespace
}  // namespace detail

RAMET_FIELDS(RNNCell, with(cell_fields(o), {"nonlinearity", &o.nonlinearity(), kIfChanged}))
RAMET_FIELDS(LSTMCell, cell_fields(o))
RAMET_FIELDS(GRUCell, cell_fields(o))

RNNCellImpl::RNNCellImpl(const RNNCellOptions& o) : RNNCellImplBase(o, 1) {}
Tensor RNNCellImpl::forward(const Tensor& input, const Tensor& hx) {
  return step(input, hx, {}, holds_alternative<enumtype::kReLU>(options.nonlinearity())).first;
}

LSTMCellImpl::LSTMCellImpl(const LSTMCellOptions& o) : RNNCellImplBase(o, 4) {}
std::tuple<Tensor, Tensor> LSTMCellImpl::forward(const Tensor& input,
                                                 std::optional<std::tuple<Tensor, Tensor>> hx_opt) {
  const auto [hidden, cell] = hx_opt.value_or(std::tuple<Tensor, Tensor>());
  return step(input, hidden, cell);
}

GRUCellImpl::GRUCellImpl(const GRUCellOptions& o) : RNNCellImplBase(o, 3) {}
Tensor GRUCellImpl::forward(const Tensor& input, const Tensor& hx) {
  return step(input, hx, {}).first;
}

}  // namespace ramet::nn
