// Ten small trainings after a seed. Their losses are LibTorch's, since torch::manual_seed makes the
// program draw LibTorch's numbers (RANDOM.md): parameters, dropout, noise, the order of samples.
#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <cstdio>
#include <functional>
#include <vector>

namespace nn = torch::nn;
using torch::Tensor;

// Prints the losses of eight steps.
template <class Module>
void train(const char* name, Module module, const std::function<Tensor()>& loss_of) {
  torch::optim::SGD sgd(module->parameters(), torch::optim::SGDOptions(0.05));
  std::printf("%-12s", name);
  for (int step = 0; step < 8; ++step) {
    sgd.zero_grad();
    Tensor loss = loss_of();
    loss.backward();
    sgd.step();
    std::printf(" %.4f", loss.item<double>());
  }
  std::printf("\n");
}

nn::Sequential layers(int64_t in, int64_t hidden, int64_t out, double p = 0) {
  nn::Sequential net;
  net->push_back(nn::Linear(in, hidden));
  net->push_back(nn::Tanh());
  if (p > 0) net->push_back(nn::Dropout(p));
  net->push_back(nn::Linear(hidden, out));
  return net;
}

void regression() {
  torch::manual_seed(1);
  nn::Sequential net = layers(4, 16, 1);
  Tensor x = torch::randn({32, 4}), y = x.sum(1, true).sin();
  train("regression", net, [&] { return torch::mse_loss(net->forward(x), y); });
}

void classifier_with_dropout() {
  torch::manual_seed(2);
  nn::Sequential net = layers(6, 32, 3, 0.3);
  Tensor x = torch::rand({24, 6}), y = torch::randint(0, 3, {24});
  train("dropout", net, [&] { return torch::cross_entropy_loss(net->forward(x), y); });
}

void images() {
  torch::manual_seed(3);
  nn::Sequential net;
  net->push_back(nn::Conv2d(nn::Conv2dOptions(2, 6, 3)));
  net->push_back(nn::BatchNorm2d(6));
  net->push_back(nn::ReLU());
  net->push_back(nn::Dropout2d(0.25));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(6 * 6 * 6, 4));
  Tensor x = torch::randn({8, 2, 8, 8}), y = torch::randperm(8).remainder(4);
  train("images", net, [&] { return torch::cross_entropy_loss(net->forward(x), y); });
}

void sequences() {
  torch::manual_seed(4);
  nn::LSTM lstm(nn::LSTMOptions(5, 8).num_layers(2).dropout(0.2));
  Tensor x = torch::randn({7, 3, 5}), y = torch::rand({7, 3, 8});
  train("lstm", lstm, [&] { return torch::mse_loss(std::get<0>(lstm->forward(x)), y); });
}

void gated() {
  torch::manual_seed(5);
  nn::GRU gru(nn::GRUOptions(4, 6).bidirectional(true));
  Tensor x = torch::empty({5, 2, 4}).uniform_(-1, 1), y = torch::zeros({5, 2, 12}).exponential_();
  train("gru", gru, [&] { return torch::l1_loss(std::get<0>(gru->forward(x)), y); });
}

void attention() {
  torch::manual_seed(6);
  nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(8, 2).dim_feedforward(16));
  Tensor x = torch::randn({4, 3, 8}), y = torch::randn({4, 3, 8});
  train("attention", layer, [&] { return torch::mse_loss(layer->forward(x), y); });
}

void words() {
  torch::manual_seed(7);
  nn::Embedding words(nn::EmbeddingOptions(20, 6));
  Tensor index = torch::randint(20, {12, 4}), y = torch::randn({12, 6});
  train("embedding", words, [&] { return torch::mse_loss(words->forward(index).mean(1), y); });
}

// A variational autoencoder: the noise of each step.
void variational() {
  torch::manual_seed(8);
  nn::Sequential net = layers(6, 12, 4);
  Tensor x = torch::bernoulli(torch::full({16, 6}, 0.4));
  train("variational", net, [&] {
    Tensor code = net->forward(x), mean = code.narrow(1, 0, 2), deviation = code.narrow(1, 2, 2);
    Tensor z = mean + torch::randn_like(mean) * deviation.exp();
    return torch::mse_loss(z.sum(1), x.sum(1)) + deviation.pow(2).mean();
  });
}

// A policy. Its actions are drawn by their probabilities.
void policy() {
  torch::manual_seed(9);
  nn::Sequential net = layers(3, 10, 4);
  Tensor x = torch::randn({20, 3});
  train("policy", net, [&] {
    Tensor chances = torch::softmax(net->forward(x), 1);
    Tensor action = torch::multinomial(chances.detach(), 1);
    Tensor reward = (action == 2).to(torch::kFloat) + torch::empty({20, 1}).normal_(0, 0.1);
    return -(chances.gather(1, action).log() * reward).mean();
  });
}

struct Points : torch::data::datasets::Dataset<Points> {
  Tensor x = torch::randn({40, 3}), y = x.prod(1, true);
  torch::data::Example<> get(size_t i) override {
    return {x[static_cast<int64_t>(i)], y[static_cast<int64_t>(i)]};
  }
  torch::optional<size_t> size() const override { return 40; }
};

// The loader shuffles by a RandomSampler.
void shuffled() {
  torch::manual_seed(10);
  nn::Sequential net = layers(3, 16, 1, 0.1);
  auto loader =
      torch::data::make_data_loader(Points().map(torch::data::transforms::Stack<>()),
                                    torch::data::DataLoaderOptions().batch_size(5).workers(0));
  auto batch = loader->begin();
  train("shuffled", net, [&] {
    Tensor loss = torch::mse_loss(net->forward(batch->data), batch->target);
    ++batch;
    return loss;
  });
}

int main() {
  torch::set_num_threads(1);
  regression();
  classifier_with_dropout();
  images();
  sequences();
  gated();
  attention();
  words();
  variational();
  policy();
  shuffled();
  // Modules that clone their layers draw while they do.
  torch::manual_seed(11);
  nn::Transformer model(nn::TransformerOptions(8, 2, 2, 2).dim_feedforward(16));
  double sum = 0;
  for (const Tensor& p : model->parameters()) sum += p.abs().sum().item<double>();
  std::printf("transformer  %.3f, next %ld\n", sum,
              static_cast<long>(torch::randint(0, 1 << 27, {1}).item<int64_t>()));
  torch::manual_seed(12);
  for (const Tensor& w :
       {nn::init::orthogonal_(torch::empty({4, 3})), nn::init::orthogonal_(torch::empty({2, 5}), 2),
        nn::init::sparse_(torch::empty({6, 2}), 0.4)}) {
    std::printf("init        ");
    const Tensor rows = w.flatten();
    for (int64_t i = 0; i < rows.numel(); ++i) std::printf(" %.4f", rows[i].item<double>());
    std::printf("\n");
  }
  torch::data::samplers::DistributedRandomSampler sampler(11, 2, 1);
  sampler.set_epoch(3);
  sampler.reset();
  std::printf("order       ");
  const auto drawn = sampler.next(6);
  for (const size_t index : *drawn) std::printf(" %zu", index);
  std::printf("\n");
  // The state is LibTorch's, too.
  auto generator = at::make_generator<at::CPUGeneratorImpl>(12);
  torch::randn({3}, generator);
  Tensor state = generator.get_state();
  std::printf("state        %ld bytes, sum %ld\n", static_cast<long>(state.numel()),
              static_cast<long>(state.sum().item<int64_t>()));
}
