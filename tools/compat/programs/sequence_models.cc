// Sequences. Styles: an LSTM that classifies sequences of several lengths, packed and in any order;
// a GRU that forecasts, its state carried over by hand; a cell in a loop; a stack of layers with
// dropout that is off; weights by name; RMSprop; a normalisation over groups of channels.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <tuple>
#include <utility>
#include <vector>

namespace rnn = torch::nn::utils::rnn;

// The same on every machine.
void fill_parameters(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  int64_t k = 0;
  for (auto& p : module.parameters())
    p.copy_(
        torch::arange(p.numel(), torch::kDouble).mul(1.1).add(0.2 * k++).sin().div(2).view_as(p));
}

struct ClassifierImpl : torch::nn::Module {
  ClassifierImpl(int64_t words, int64_t width, int64_t classes)
      : embed(words, width),
        lstm(torch::nn::LSTMOptions(width, width)
                 .num_layers(2)
                 .bidirectional(true)
                 .batch_first(true)),
        norm(torch::nn::GroupNormOptions(2, 2 * width)),
        head(2 * width, classes) {
    register_module("embed", embed);
    register_module("lstm", lstm);
    register_module("norm", norm);
    register_module("head", head);
    fill_parameters(*this);
  }
  torch::Tensor forward(const torch::Tensor& ids, const torch::Tensor& lengths) {
    auto packed = rnn::pack_padded_sequence(embed(ids), lengths, /*batch_first=*/true,
                                            /*enforce_sorted=*/false);
    rnn::PackedSequence output = packed;
    std::tuple<torch::Tensor, torch::Tensor> states;
    std::tie(output, states) = lstm->forward_with_packed_input(packed);
    const auto& hidden = std::get<0>(states);
    auto last = torch::cat({hidden[-2], hidden[-1]}, 1);
    return head(norm(last));
  }
  torch::nn::Embedding embed;
  torch::nn::LSTM lstm;
  torch::nn::GroupNorm norm;
  torch::nn::Linear head;
};
TORCH_MODULE(Classifier);

void classify() {
  Classifier net(7, 4, 3);
  const auto ids = torch::arange(20).mul(3).remainder(7).view({4, 5});
  const auto lengths = torch::tensor({3, 5, 1, 4}, torch::kLong);
  const auto labels = torch::tensor({0, 2, 1, 2}, torch::kLong);
  torch::optim::RMSprop optimizer(net->parameters(),
                                  torch::optim::RMSpropOptions(0.01).alpha(0.9).momentum(0.5));
  for (int step = 0; step < 30; ++step) {
    optimizer.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(net(ids, lengths), labels);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
    optimizer.step();
    if (step % 10 == 0) std::printf("step %d: %.4f\n", step, loss.item<float>());
  }
  std::cout << net(ids, lengths).argmax(1) << "\n";
}

struct ForecasterImpl : torch::nn::Module {
  ForecasterImpl()
      : gru(register_module("gru", torch::nn::GRU(1, 6))),
        out(register_module("out", torch::nn::Linear(6, 1))) {
    fill_parameters(*this);
  }
  std::pair<torch::Tensor, torch::Tensor> forward(torch::Tensor x, torch::Tensor state = {}) {
    auto [y, next] = gru->forward(x, state);
    return {out->forward(y), next};
  }
  torch::nn::GRU gru;
  torch::nn::Linear out;
};
TORCH_MODULE(Forecaster);

void forecast() {
  Forecaster model;
  const auto wave =
      torch::arange(40, torch::kDouble).mul(0.4).sin().to(torch::kFloat).view({40, 1, 1});
  torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.02));
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    auto [y, state] = model->forward(wave.slice(0, 0, 39));
    auto loss = torch::mse_loss(y, wave.slice(0, 1, 40));
    loss.backward();
    adam.step();
    if (step % 20 == 19) std::printf("forecast %d: %.3f\n", step, loss.item<float>());
  }
  // On from its own output.
  torch::NoGradGuard no_grad;
  auto [y, state] = model->forward(wave);
  auto value = y[-1].unsqueeze(0);
  for (int i = 0; i < 3; ++i) std::tie(value, state) = model->forward(value, state);
  std::printf("on: %.2f %.2f\n", value.item<float>(), state.norm().item<float>());
}

int main() {
  classify();
  forecast();

  torch::nn::LSTMCell cell(3, 2);
  fill_parameters(*cell);
  std::tuple<torch::Tensor, torch::Tensor> state{torch::zeros({2, 2}), torch::zeros({2, 2})};
  for (int t = 0; t < 4; ++t)
    state = cell(torch::arange(6, torch::kFloat).add(t).cos().view({2, 3}), state);
  std::cout << std::get<0>(state) << "\n" << cell << "\n";

  torch::nn::RNN stack(
      torch::nn::RNNOptions(3, 4).num_layers(3).nonlinearity(torch::kReLU).dropout(0.5));
  fill_parameters(*stack);
  stack->eval();
  auto [output, hidden] = stack->forward(torch::arange(18, torch::kFloat).sin().view({3, 2, 3}));
  std::cout << output.sizes() << hidden.sizes() << " " << stack << "\n";
  std::printf("%.4f %.4f\n", output.sum().item<float>(), hidden.abs().sum().item<float>());
  for (const auto& weight : stack->named_parameters())
    std::cout << weight.key() << weight.value().sizes() << " ";
  std::cout << stack->all_weights().size() << "\n";

  const std::vector<torch::Tensor> list = {torch::ones({3, 2}), torch::full({1, 2}, 2.0),
                                           torch::full({2, 2}, 3.0)};
  const auto packed = rnn::pack_sequence(list, /*enforce_sorted=*/false);
  std::cout << packed.data().select(1, 0) << "\n" << packed.batch_sizes() << "\n";
  const auto [padded, lengths] = rnn::pad_packed_sequence(packed, true, -1.0, 4);
  std::cout << padded.select(2, 1) << "\n" << lengths << "\n";
  std::cout << rnn::pad_sequence(list, true).sizes() << "\n";
  return 0;
}
