// Sequences. Styles: an LSTM that classifies packed sequences of several lengths. A GRU that
// forecasts, with its state passed on by hand. A cell in a loop, a stack of layers with dropout
// that is off, weights by name, RMSprop, group norm. Attention: an encoder of padded sequences with
// its own norm. A Transformer with another encoder and a function as activation. Heads' weights,
// the function with options.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <functional>
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

struct TaggerImpl : torch::nn::Module {
  TaggerImpl() : embed(8, 4), out(4, 3) {
    namespace nn = torch::nn;
    nn::TransformerEncoderLayer layer(
        nn::TransformerEncoderLayerOptions(4, 2).dim_feedforward(6).dropout(0.0).activation(
            torch::kGELU));
    encoder = nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, 2).norm(
        nn::AnyModule(nn::LayerNorm(nn::LayerNormOptions({4})))));
    register_module("embed", embed);
    register_module("encoder", encoder);
    register_module("out", out);
    fill_parameters(*this);
  }
  torch::Tensor forward(const torch::Tensor& ids) {
    const auto padding = ids.eq(0);
    return out(encoder(embed(ids).transpose(0, 1), torch::Tensor(), padding)).transpose(0, 1);
  }
  torch::nn::Embedding embed;
  torch::nn::TransformerEncoder encoder{nullptr};
  torch::nn::Linear out;
};
TORCH_MODULE(Tagger);

void tag() {
  Tagger tagger;
  const auto ids = torch::tensor({1, 5, 2, 0, 3, 3, 7, 6, 4, 1, 0, 0}, torch::kLong).view({3, 4});
  const auto tags = ids.remainder(3);
  torch::optim::Adam adam(tagger->parameters(), torch::optim::AdamOptions(0.02));
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    auto loss = torch::nn::functional::cross_entropy(tagger(ids).reshape({-1, 3}), tags.flatten());
    loss.backward();
    adam.step();
    if (step % 20 == 0) std::printf("tags %d: %.3f\n", step, loss.item<float>());
  }
  std::cout << tagger << "\n";
}

// Its masks are not looked at.
struct MixImpl : torch::nn::Cloneable<MixImpl> {
  MixImpl() { reset(); }
  void reset() override { mix = register_module("mix", torch::nn::Linear(4, 4)); }
  torch::Tensor forward(const torch::Tensor& src, const torch::Tensor&, const torch::Tensor&) {
    return torch::tanh(mix(src));
  }
  torch::nn::Linear mix{nullptr};
};
TORCH_MODULE(Mix);

void translate() {
  namespace nn = torch::nn;
  const std::function<torch::Tensor(const torch::Tensor&)> square = [](const torch::Tensor& x) {
    return x * x;
  };
  nn::Transformer model(nn::TransformerOptions(4, 2, 1, 1)
                            .dim_feedforward(5)
                            .dropout(0.1)
                            .activation(square)
                            .custom_encoder(nn::AnyModule(Mix())));
  fill_parameters(*model);
  model->eval();
  const auto src = torch::arange(24, torch::kFloat).sin().view({3, 2, 4}),
             tgt = torch::arange(16, torch::kFloat).cos().view({2, 2, 4});
  const auto mask = nn::TransformerImpl::generate_square_subsequent_mask(2);
  const auto y = model(src, tgt, torch::Tensor(), mask);
  (y * src.slice(0, 0, 2)).sum().backward();
  std::cout << mask << "\n" << y.sizes() << "\n";
  for (const auto& item : model->named_parameters())
    std::printf("%s %.3f\n", item.key().c_str(), item.value().grad().norm().item<float>());

  nn::MultiheadAttention attention(
      nn::MultiheadAttentionOptions(4, 2).kdim(4).vdim(4).add_bias_kv(true).add_zero_attn(true));
  fill_parameters(*attention);
  auto [seen, weights] = attention(tgt, src, src, torch::zeros({2, 3}, torch::kBool), true,
                                   torch::arange(6, torch::kFloat).view({2, 3}));
  std::cout << seen.sizes() << "\n" << weights.mul(100).round().div(100) << "\n";
  namespace F = torch::nn::functional;
  std::tie(seen, weights) = F::multi_head_attention_forward(
      tgt, src, src,
      F::MultiheadAttentionForwardFuncOptions(
          4, 2, attention->in_proj_weight, attention->in_proj_bias, {}, {}, false, 0.0,
          attention->out_proj->weight, attention->out_proj->bias)
          .average_attn_weights(false));
  std::printf("%.4f %.4f\n", seen.sum().item<float>(), weights.square().sum().item<float>());
}

int main() {
  classify();
  forecast();
  tag();
  translate();

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

  torch::nn::Embedding padded_words(torch::nn::EmbeddingOptions(3, 2).padding_idx(0));
  padded_words(torch::tensor({0, 1, 1})).sum().backward();
  std::cout << padded_words->weight.grad() << padded_words->weight[0].eq(0).all().item<bool>()
            << "\n";

  const std::vector<torch::Tensor> list = {torch::ones({3, 2}), torch::full({1, 2}, 2.0),
                                           torch::full({2, 2}, 3.0)};
  const auto packed = rnn::pack_sequence(list, /*enforce_sorted=*/false);
  std::cout << packed.data().select(1, 0) << "\n" << packed.batch_sizes() << "\n";
  const auto [padded, lengths] = rnn::pad_packed_sequence(packed, true, -1.0, 4);
  std::cout << padded.select(2, 1) << "\n" << lengths << "\n";
  std::cout << rnn::pad_sequence(list, true).sizes() << "\n";
  return 0;
}
