// RNN, LSTM, GRU and their cells. Options and states that tests/nn/goldens does not have meet
// numbers from PyTorch 2.15 in float64, and packed sequences meet each sequence alone.
#include "nn/layers/sequence/recurrent.h"

#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/module/sequential.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

using namespace utils::rnn;
using States = std::tuple<Tensor, Tensor>;

Tensor cosines(int64_t n, double step, double start) {
  return sines(n, step, start + std::acos(-1) / 2);
}
double weighed(const Tensor& t) {
  return (t * cosines(t.numel(), .7, 0).view(t.sizes())).sum().item<double>();
}
template <class M> void fill(M& module) {
  module->to(kDouble);
  const NoGradGuard off;
  double k = 0;
  for (const Tensor& p : module->parameters())
    p.copy_(sines(p.numel(), 1.1, .2 + k++).view(p.sizes()) / 2);
}

struct Inputs {
  Tensor x, h, c;
  Inputs(IntArrayRef x_sizes, IntArrayRef h_sizes, IntArrayRef c_sizes) {
    const auto made = [](const Tensor& t, IntArrayRef sizes) {
      return t.view(sizes).requires_grad_(true);
    };
    const auto count = [](IntArrayRef sizes) { return zeros(sizes).numel(); };
    x = made(sines(count(x_sizes), .9, 0), x_sizes);
    h = made(cosines(count(h_sizes), .3, .3), h_sizes);
    c = made(sines(count(c_sizes), .4, .8), c_sizes);
  }
};

/// Weighed sums: of the outputs, of the gradients of the inputs that it reads, of the weights'.
std::vector<double> sums(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& weights) {
  std::vector<double> all;
  Tensor loss = zeros({}, TensorOptions(kDouble));
  for (const Tensor& y : outputs) {
    all.push_back(weighed(y.detach()));
    loss = loss + (y * cosines(y.numel(), .7, 0).view(y.sizes())).sum();
  }
  loss.backward();
  for (const auto* list : {&inputs, &weights})
    for (const Tensor& t : *list) all.push_back(weighed(t.grad()));
  return all;
}

const std::map<std::string, std::vector<double>>& numbers() {
  static const std::map<std::string, std::vector<double>> all = {
      {"rnn",
       {0.882712017882726, 1.13918724183624, 0.697764031797197, -0.0249248741464312,
        1.79551540726585, -0.843199950588937, -0.773922044045139, -0.773922044045139}},
      {"rnn relu, 2 layers, bidirectional",
       {1.5703751540929,       1.53221796614917,  0.137454682689425,   1.12323105463323,
        2.33835960027533,      0.195951344571744, 0.498065937774331,   0.498065937774332,
        -0.000146302200477802, -2.41974175012596, 1.24181132281782,    1.24181132281782,
        -1.53020764913687,     0.77602327452702,  -0.0558343546739346, -0.0558343546739346,
        0.442209922982889,     0.164232598465305, -0.0704708710895864, -0.0704708710895864}},
      {"rnn without bias",
       {1.16267179080363, 0.487815430094221, 0.748995329630666, 0.10424923914335, 2.46322785263856,
        0.0160528038185374}},
      {"lstm, 2 layers, bidirectional",
       {0.581201960415081,  1.72139162768179,   3.00890605908702,  0.624444819887701,
        0.521145059068748,  3.61861482753113,   0.636664066657221, 0.586809570193916,
        -0.900909279200399, -0.900909279200399, 0.724444351120911, -0.0650040466577253,
        1.1494284505243,    1.1494284505243,    0.214539707660101, -0.0864267335466335,
        0.760538285445273,  0.760538285445273,  0.262611592032344, -0.279849388949179,
        -1.22285924162575,  -1.22285924162575}},
      {"lstm, projected, 2 layers",
       {0.186976486925599, -0.107676767392099, 0.699523949609116, 0.0336410079334357,
        0.0378524234369731, 0.874483890089211, -0.121305744137993, -0.0716089835027604,
        -0.207420854139457, -0.207420854139457, 0.159616668370116, 0.0133678284323876,
        -0.00446484565654513, 0.832958271640844, 0.832958271640844, -0.238971685622607}},
      {"gru, 2 layers, bidirectional",
       {0.944022039164387,  1.59122800922819,    -0.456813392307522, 3.510127531254,
        1.22352849995699,   0.320970085750591,   -0.807136608343269, -0.600537122458086,
        0.288587778176172,  0.528140675567652,   0.238990123860418,  0.245387693881252,
        0.385192933800795,  -0.0596621929453458, -0.050299129876011, -0.13310559238079,
        0.0474317300255998, 0.165909105695418,   -0.690199814293866, -0.144792901135973}},
      {"packed lstm",
       {-0.756736155595134, 0.831477901141154,  0.283201131129647,  0.537430718527747,
        0.985857467861562,  7.15805737084274,   -0.799650092774842, 1.3440201211774,
        -0.668827135452714, -0.668827135452714, -0.980913374641081, 0.435051450528843,
        -1.5277499522684,   -1.5277499522684,   -0.376015932176777, -1.9569580590643,
        -0.337888140045603, -0.337888140045603, 1.74150592885719,   -0.0451531034762782,
        -0.497298844049593, -0.497298844049593}},
      {"packed rnn",
       {0.323731701104724, -0.194594877650637, -1.0368303874588, 0.206099574403193,
        0.283492371058703, 1.75205883949045, 1.02668270143937, 1.02668270143937, 3.62127102992605,
        -2.08193340131721, 0.750686250606515, 0.750686250606515}},
      {"RNNCell", {1.02556635358286}},
      {"RNNCell relu", {0.970605808484193}},
      {"LSTMCell", {0.262205569205734, 0.454247749752097}},
      {"GRUCell", {1.27372419698404}},
  };
  return all;
}

// The module's sums over padded, or packed, sequences of [steps, batch, 2].
template <class M>
void expect_numbers(const char* name, M module, int64_t rows, IntArrayRef lengths = {}) {
  SCOPED_TRACE(name);
  fill(module);
  const int64_t batch = lengths.empty() ? 2 : 3,
                states = std::max<int64_t>(module->options_base.proj_size(), 0);
  const Inputs in({lengths.empty() ? 3 : 4, batch, 2}, {rows, batch, states ? states : 3},
                  {rows, batch, 3});
  std::vector<Tensor> outputs, inputs = {in.x, in.h};
  const auto take = [&](const auto& result) {
    const auto& [y, last] = result;
    if constexpr (std::is_same_v<std::decay_t<decltype(y)>, PackedSequence>)
      outputs.push_back(y.data());
    else outputs.push_back(y);
    if constexpr (std::is_same_v<std::decay_t<decltype(last)>, States>)
      outputs.push_back(std::get<0>(last)), outputs.push_back(std::get<1>(last));
    else outputs.push_back(last);
  };
  const auto run = [&](const auto& first) {
    if (lengths.empty()) return take(module->forward(in.x, first));
    take(module->forward_with_packed_input(
        pack_padded_sequence(in.x, tensor(lengths.vec()), false, /*enforce_sorted=*/false), first));
  };
  if constexpr (std::is_same_v<M, LSTM>) {
    run(std::optional<States>({in.h, in.c}));
    inputs.push_back(in.c);
  } else {
    run(in.h);
  }
  const std::vector<double> got = sums(outputs, inputs, module->all_weights()),
                            want = numbers().at(name);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << "at " << i;
}

TEST(Recurrent, ComputesWhatPyTorchDoes) {
  expect_numbers("rnn", RNN(2, 3), 1);
  expect_numbers("rnn relu, 2 layers, bidirectional",
                 RNN(RNNOptions(2, 3).num_layers(2).nonlinearity(kReLU).bidirectional(true)), 4);
  expect_numbers("rnn without bias", RNN(RNNOptions(2, 3).bias(false)), 1);
  expect_numbers("lstm, 2 layers, bidirectional",
                 LSTM(LSTMOptions(2, 3).num_layers(2).bidirectional(true)), 4);
  expect_numbers("lstm, projected, 2 layers", LSTM(LSTMOptions(2, 3).num_layers(2).proj_size(2)),
                 2);
  expect_numbers("gru, 2 layers, bidirectional",
                 GRU(GRUOptions(2, 3).num_layers(2).bidirectional(true)), 4);
}
TEST(Recurrent, TakesPackedSequences) {
  expect_numbers("packed lstm", LSTM(LSTMOptions(2, 3).num_layers(2).bidirectional(true)), 4,
                 {2, 4, 1});
  expect_numbers("packed rnn", RNN(RNNOptions(2, 3).num_layers(2)), 2, {3, 3, 2});
}

// Each sequence gives what it gives alone.
TEST(Recurrent, PackedSequencesDoNotMeet) {
  GRU gru(GRUOptions(2, 3).num_layers(2).bidirectional(true).batch_first(true));
  fill(gru);
  const std::vector<int64_t> lengths = {3, 1, 5, 3};
  const Tensor x = sines(4 * 5 * 2).view({4, 5, 2}), h = sines(4 * 4 * 3, .5).view({4, 4, 3});
  const auto [packed, last] = gru->forward_with_packed_input(
      pack_padded_sequence(x, tensor(lengths), /*batch_first=*/true, /*enforce_sorted=*/false), h);
  const auto [padded, found] = pad_packed_sequence(packed, true, -7, 6);
  EXPECT_EQ(padded.sizes(), IntArrayRef({4, 6, 6}));
  expect_values(found, {3, 1, 5, 3});
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t n = lengths[static_cast<size_t>(i)];
    const auto [y, end] = gru->forward(x.slice(0, i, i + 1).slice(1, 0, n), h.slice(1, i, i + 1));
    expect_values(padded[i].slice(0, 0, n), values(y));
    expect_values(last.slice(1, i, i + 1), values(end));
    EXPECT_TRUE(padded[i].slice(0, n).eq(-7).all().item<bool>());
  }
}

// The call of a method passes hooks by; this one is a forward.
TEST(Recurrent, PackedSequencesMeetTheHooks) {
  LSTM lstm(2, 3);
  GRU gru(2, 3);
  fill(lstm), fill(gru);
  const PackedSequence x = pack_padded_sequence(sines(12).view({3, 2, 2}), tensor({3, 2}));
  const Tensor h = sines(6).view({1, 2, 3});
  const auto want = lstm->forward_with_packed_input(x, States(h, h));
  const auto doubled = lstm->forward_with_packed_input(
      PackedSequence(x.data() * 2, x.batch_sizes()), States(h * 2, h * 2));
  std::vector<size_t> seen;
  bool doubles = false;
  const auto before = [&](nn::Module&, std::vector<Tensor>& in) {
    seen.push_back(in.size());
    if (!doubles) return;
    for (Tensor& t : in) t = t * 2;
  };
  const auto after = [&](nn::Module&, const std::vector<Tensor>&, std::vector<Tensor>& out) {
    seen.push_back(out.size());
    if (doubles) out[0] = out[0] + 1;
  };
  for (nn::Module* m :
       {static_cast<nn::Module*>(lstm.get()), static_cast<nn::Module*>(gru.get())}) {
    m->register_forward_pre_hook(before);
    m->register_forward_hook(after);
  }
  const auto same = lstm->forward_with_packed_input(x, States(h, h));
  expect_values(std::get<0>(same).data(), values(std::get<0>(want).data()), 0);
  lstm->forward_with_packed_input(x);
  gru->forward_with_packed_input(x);
  gru->forward_with_packed_input(x, h);
  EXPECT_EQ(seen, (std::vector<size_t>{3, 3, 1, 3, 1, 2, 2, 2}));
  doubles = true;
  const auto changed = lstm->forward_with_packed_input(x, States(h, h));
  expect_values(std::get<0>(changed).data(), values(std::get<0>(doubled).data() + 1), 0);
  expect_values(std::get<1>(std::get<1>(changed)), values(std::get<1>(std::get<1>(doubled))), 0);
}

TEST(Recurrent, StatesAreZerosByDefault) {
  const Tensor x = sines(12).view({3, 2, 2}), none = zeros({1, 2, 3}, kDouble);
  RNN rnn(2, 3);
  LSTM lstm(2, 3);
  fill(rnn), fill(lstm);
  const Tensor y = std::get<0>(rnn->forward(x, none));
  expect_values(std::get<0>(lstm->forward(x)),
                values(std::get<0>(lstm->forward(x, States(none, none)))));
  AnyModule any(rnn);
  expect_values(std::get<0>(any.forward<std::tuple<Tensor, Tensor>>(x)), values(y));
}

TEST(Recurrent, DropsBetweenLayersInTraining) {
  LSTM lstm(LSTMOptions(2, 4).num_layers(2).dropout(1.));
  fill(lstm);
  const Tensor x = sines(12).view({3, 2, 2}), quiet = zeros({3, 2, 4}, TensorOptions(kDouble));
  LSTM second(LSTMOptions(4, 4));
  second->to(kDouble);
  for (size_t i = 0; i < 4; ++i)
    second->all_weights()[i].set_data(lstm->all_weights()[4 + i].detach());
  expect_values(std::get<0>(lstm->forward(x)), values(std::get<0>(second->forward(quiet))));
  lstm->eval();
  EXPECT_GT((std::get<0>(lstm->forward(x)) - std::get<0>(second->forward(quiet)))
                .abs()
                .max()
                .item<double>(),
            1e-3);
}

TEST(Recurrent, NamesWeightsAsPyTorch) {
  LSTM lstm(LSTMOptions(5, 4).num_layers(2).bidirectional(true).proj_size(3));
  std::string names;
  for (const auto& item : lstm->named_parameters())
    names += item.key() + text_of(item.value().sizes()) + " ";
  EXPECT_EQ(
      names,
      "weight_ih_l0[16, 5] weight_hh_l0[16, 3] bias_ih_l0[16] bias_hh_l0[16] weight_hr_l0[3, 4] "
      "weight_ih_l0_reverse[16, 5] weight_hh_l0_reverse[16, 3] bias_ih_l0_reverse[16] "
      "bias_hh_l0_reverse[16] weight_hr_l0_reverse[3, 4] "
      "weight_ih_l1[16, 6] weight_hh_l1[16, 3] bias_ih_l1[16] bias_hh_l1[16] weight_hr_l1[3, 4] "
      "weight_ih_l1_reverse[16, 6] weight_hh_l1_reverse[16, 3] bias_ih_l1_reverse[16] "
      "bias_hh_l1_reverse[16] weight_hr_l1_reverse[3, 4] ");
  for (const Tensor& w : lstm->all_weights()) {
    EXPECT_LE(w.abs().max().item<double>(), .5);
    EXPECT_GT(w.abs().max().item<double>(), 0);
  }
  EXPECT_EQ(GRU(GRUOptions(2, 3).bias(false))->all_weights().size(), 2u);
}

TEST(Recurrent, PrintsAsPyTorch) {
  EXPECT_EQ(
      text_of(LSTM(LSTMOptions(5, 4).num_layers(2).dropout(.25).proj_size(3))),
      "ramet::nn::LSTM(input_size=5, hidden_size=4, num_layers=2, bias=true, batch_first=false, "
      "dropout=0.25, bidirectional=false, proj_size=3)");
  EXPECT_EQ(
      text_of(GRU(GRUOptions(5, 4).bias(false).batch_first(true).bidirectional(true))),
      "ramet::nn::GRU(input_size=5, hidden_size=4, num_layers=1, bias=false, batch_first=true, "
      "dropout=0, bidirectional=true)");
  EXPECT_EQ(text_of(RNNCell(RNNCellOptions(5, 4).bias(false).nonlinearity(kReLU))),
            "ramet::nn::RNNCell(5, 4, bias=false, nonlinearity=kReLU)");
  EXPECT_EQ(text_of(LSTMCell(5, 4)), "ramet::nn::LSTMCell(5, 4)");
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  LSTM lstm(LSTMOptions(2, 3).num_layers(2));
  const Tensor x = zeros({3, 2, 2}), h = zeros({2, 2, 3});
  EXPECT_ERROR_TEXT(lstm->forward(zeros({3, 2})), "[LSTM] input must have 3 dimensions: got");
  EXPECT_ERROR_TEXT(lstm->forward(zeros({3, 2, 4})), "Expected 2, got 4");
  EXPECT_ERROR_TEXT(lstm->forward(zeros({0, 2, 2})),
                    "Expected sequence length to be larger than 0");
  EXPECT_ERROR_TEXT(lstm->forward(x, States(zeros({1, 2, 3}), h)),
                    "[LSTM] Expected hidden[0] size [2, 2, 3], got [1, 2, 3]");
  EXPECT_ERROR_TEXT(lstm->forward(x, States(h, zeros({2, 2, 2}))),
                    "Expected hidden[1] size [2, 2, 3]");
  EXPECT_ERROR_TEXT(GRU(2, 3)->forward(x, h),
                    "[GRU] Expected hidden size [1, 2, 3], got [2, 2, 3]");
  EXPECT_ERROR_TEXT(lstm->forward(Tensor()), "input must have 3 dimensions");
  EXPECT_EQ(std::get<0>(lstm->forward(zeros({3, 0, 2}))).sizes(), IntArrayRef({3, 0, 3}));
  EXPECT_ERROR_TEXT(LSTM(LSTMOptions(2, 3).dropout(1.5)),
                    "dropout should be a number in range [0, 1]");
  EXPECT_ERROR_TEXT(LSTM(LSTMOptions(2, 3).proj_size(3)),
                    "proj_size must be smaller than hidden_size");
  EXPECT_ERROR_TEXT(GRU(2, 0), "hidden_size 0");
  EXPECT_ERROR_TEXT(RNN(RNNOptions(2, 3).num_layers(0)), "num_layers 0");
  EXPECT_ERROR_TEXT(RNN(2, INT64_MAX), "expected fewer than 2^63 elements");
  EXPECT_ERROR_TEXT(GRU(2, INT64_MAX), "[GRU] hidden_size: 3 * 9223372036854775807");
  EXPECT_ERROR_TEXT(GRUCell(2, 3)->forward(zeros({4, 3})),
                    "inconsistent input_size: got 3 expected 2");
  EXPECT_ERROR_TEXT(GRUCell(2, 3)->forward(zeros({4, 2}), zeros({4, 2})), "expected [4, 3]");
}

TEST(RecurrentCells, ComputeWhatPyTorchDoes) {
  const Inputs in({2, 2}, {2, 3}, {2, 3});
  const auto expect = [&](const char* name, const std::vector<Tensor>& got) {
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(weighed(got[i]), numbers().at(name)[i], 1e-12) << name;
  };
  RNNCell rnn(2, 3), relu(RNNCellOptions(2, 3).nonlinearity(kReLU));
  LSTMCell lstm(2, 3);
  GRUCell gru(2, 3);
  fill(rnn), fill(relu), fill(lstm), fill(gru);
  expect("RNNCell", {rnn->forward(in.x, in.h)});
  expect("RNNCell relu", {relu->forward(in.x, in.h)});
  const auto [h, c] = lstm->forward(in.x, States(in.h, in.c));
  expect("LSTMCell", {h, c});
  expect("GRUCell", {gru->forward(in.x, in.h)});
  // One row alone.
  const auto [h0, c0] = lstm->forward(in.x[0], States(in.h[0], in.c[0]));
  expect_values(h0, values(h[0]));
  expect_values(c0, values(c[0]));
  EXPECT_EQ(gru->forward(in.x[0]).sizes(), IntArrayRef({3}));
}

TEST(PackedSequence, GoesThereAndBack) {
  const Tensor x = sines(4 * 3).view({4, 3, 1}).requires_grad_(true);
  const PackedSequence packed = pack_padded_sequence(x, tensor({4, 3, 3}));
  EXPECT_EQ(packed.data().sizes(), IntArrayRef({10, 1}));
  expect_values(packed.batch_sizes(), {3, 3, 3, 1});
  EXPECT_FALSE(packed.sorted_indices().defined());
  const auto [y, lengths] = pad_packed_sequence(packed);
  expect_values(lengths, {4, 3, 3});
  (y * y).sum().backward();
  Tensor want = x.detach() * 2;
  want[3].slice(0, 1).fill_(0);
  expect_values(x.grad(), values(want));
  const PackedSequence other = pack_padded_sequence(x, tensor({2, 4, 1}), false, false);
  expect_values(other.sorted_indices(), {1, 0, 2});
  expect_values(other.unsorted_indices(), {1, 0, 2});
  expect_values(other.to(TensorOptions(kFloat)).data(), values(other.data()), 1e-6);
}

TEST(PackedSequence, PadsListsOfSequences) {
  const std::vector<Tensor> list = {doubles({1, 2}), doubles({3, 4, 5}), doubles({6})};
  expect_values(pad_sequence(list, true, -1), {1, 2, -1, 3, 4, 5, 6, -1, -1});
  expect_values(pad_sequence(list), {1, 3, 6, 2, 4, 0, 0, 5, 0});
  expect_values(pad_sequence(list, true, 0, "left"), {0, 1, 2, 3, 4, 5, 0, 0, 6});
  const PackedSequence packed = pack_sequence(list, /*enforce_sorted=*/false);
  expect_values(packed.data(), {3, 1, 6, 4, 2, 5});
  expect_values(packed.batch_sizes(), {3, 2, 1});
}

TEST(PackedSequence, RefusesWhatDoesNotFit) {
  const Tensor x = zeros({4, 3, 2});
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({2, 4, 1})), "sorted in decreasing order");
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({4, 3, 0})), "has to be greater than 0");
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({4, 3})), "Expected `len(lengths)` to be equal");
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({5, 3, 1})), "got 5, expected at most 4");
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({INT64_MAX, int64_t{3}, int64_t{1}})),
                    "expected at most 4");
  EXPECT_ERROR_TEXT(pack_padded_sequence(x, tensor({1.5, 1., 1.})), "1D CPU int64 tensor");
  EXPECT_ERROR_TEXT(pack_padded_sequence(zeros({4, 0, 2}), zeros({0}, TensorOptions(kLong))),
                    "Cannot pack empty tensors");
  EXPECT_ERROR_TEXT(pad_packed_sequence(pack_padded_sequence(x, tensor({3, 2, 1})), false, 0, 2),
                    "Expected total_length to be at least");
  EXPECT_ERROR_TEXT(pad_sequence({}), "empty list");
  EXPECT_ERROR_TEXT(pad_sequence({zeros({2}), zeros({2, 1})}), "alike but for the first size");
  EXPECT_ERROR_TEXT(pad_sequence({zeros({2})}, false, 0, "middle"), "one of left or right");
}

}  // namespace
}  // namespace ramet::nn
