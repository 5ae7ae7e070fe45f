// A variational autoencoder. Styles: a struct of outputs, encode/decode/reparameterize, functional
// losses with their options, sums of losses, exp of half a log variance, a KL term by hand, a
// custom dataset of tensors, training and test functions over a loader, samples at the end.
#include <torch/torch.h>

#include <cstdio>
#include <iostream>
#include <utility>

namespace F = torch::nn::functional;
using torch::indexing::Slice;

struct VAEOutput {
  torch::Tensor reconstruction;
  torch::Tensor mu;
  torch::Tensor log_var;
};

// Numbers in the place of random ones, of mean 0 and about unit size.
torch::Tensor fixed_noise(torch::IntArrayRef sizes) {
  int64_t n = 1;
  for (const auto size : sizes) n *= size;
  return torch::arange(n, torch::kDouble).mul(2.4).sin().mul(1.4).to(torch::kFloat).view(sizes);
}

class VAEImpl : public torch::nn::Module {
 public:
  VAEImpl(int64_t image_size, int64_t h_dim, int64_t z_dim)
      : fc1(image_size, h_dim),
        fc2(h_dim, z_dim),
        fc3(h_dim, z_dim),
        fc4(z_dim, h_dim),
        fc5(h_dim, image_size) {
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("fc3", fc3);
    register_module("fc4", fc4);
    register_module("fc5", fc5);
  }

  std::pair<torch::Tensor, torch::Tensor> encode(const torch::Tensor& x) {
    auto h = F::relu(fc1->forward(x));
    return {fc2->forward(h), fc3->forward(h)};
  }

  torch::Tensor reparameterize(const torch::Tensor& mu, const torch::Tensor& log_var) {
    if (!is_training()) return mu;
    auto std = log_var.div(2).exp_();
    auto eps = fixed_noise(std.sizes());
    return eps.mul(std).add_(mu);
  }

  torch::Tensor decode(torch::Tensor z) {
    auto h = F::relu(fc4->forward(z), F::ReLUFuncOptions().inplace(false));
    return torch::sigmoid(fc5->forward(h));
  }

  VAEOutput forward(torch::Tensor x) {
    auto [mu, log_var] = encode(x);
    auto z = reparameterize(mu, log_var);
    return {decode(z), mu, log_var};
  }

 private:
  torch::nn::Linear fc1, fc2, fc3, fc4, fc5;
};
TORCH_MODULE(VAE);

// Pictures of one bar, across or upright.
class Bars : public torch::data::datasets::Dataset<Bars> {
 public:
  explicit Bars(int64_t side) : side_(side) {
    images_ = torch::full({2 * side, side, side}, 0.1);
    for (int64_t i = 0; i < side; ++i) {
      images_.index_put_({i, i, Slice()}, 0.9);
      images_.index_put_({side + i, Slice(), i}, 0.9);
    }
    kinds_ = torch::cat({torch::zeros({side}, torch::kLong), torch::ones({side}, torch::kLong)});
  }
  torch::data::Example<> get(size_t index) override { return {images_[index], kinds_[index]}; }
  torch::optional<size_t> size() const override { return images_.size(0); }
  const torch::Tensor& images() const { return images_; }

 private:
  int64_t side_;
  torch::Tensor images_, kinds_;
};

torch::Tensor loss_function(const VAEOutput& output, const torch::Tensor& x) {
  auto reconstruction_loss = F::binary_cross_entropy(
      output.reconstruction, x, F::BinaryCrossEntropyFuncOptions().reduction(torch::kSum));
  auto kl_divergence =
      -0.5 * torch::sum(1 + output.log_var - output.mu.pow(2) - output.log_var.exp());
  return reconstruction_loss + kl_divergence;
}

template <typename Loader>
double train(VAE& model, Loader& loader, torch::optim::Optimizer& optimizer, int64_t image_size) {
  model->train();
  double total = 0;
  for (auto& batch : *loader) {
    auto images = batch.data.reshape({-1, image_size}).to(torch::kCPU);
    auto output = model->forward(images);
    auto loss = loss_function(output, images);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    total += loss.template item<double>();
  }
  return total;
}

int main() {
  const int64_t side = 4, image_size = side * side;
  VAE model(image_size, /*h_dim=*/10, /*z_dim=*/2);
  {
    torch::NoGradGuard no_grad;
    double phase = 0.3;
    for (auto& p : model->parameters()) {
      if (p.dim() == 2)
        p.copy_((torch::arange(p.numel(), torch::kDouble) * 1.7 + phase)
                    .sin()
                    .mul(0.5)
                    .view({p.size(0), p.size(1)}));
      else torch::nn::init::zeros_(p);
      phase += 1;
    }
  }

  auto bars = Bars(side);
  const auto images = bars.images().view({-1, image_size});
  auto dataset = bars.map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(3));

  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(1e-2));
  for (int epoch = 1; epoch <= 5; ++epoch) {
    const auto loss = train(model, loader, optimizer, image_size);
    std::printf("epoch %d, loss %.2f\n", epoch, loss);
  }
  std::fflush(stdout);

  model->eval();
  torch::NoGradGuard no_grad;
  const auto output = model(images);
  std::printf("test loss %.2f\n", loss_function(output, images).item<double>());
  std::fflush(stdout);
  std::cout << "codes " << output.mu.sizes() << "\n" << output.mu.mul(10).round() << "\n";
  const auto samples = model->decode(fixed_noise({3, 2}));
  std::cout << "samples " << samples.view({-1, 1, side, side}).sizes() << "\n"
            << (samples.view({3, side, side})[0] * 10).round().to(torch::kInt) << "\n";

  // The same losses in other words.
  const auto x = images.slice(0, 0, 2), y = output.reconstruction.slice(0, 0, 2);
  std::printf(
      "%.3f %.3f %.3f %.3f\n",
      torch::nn::BCELoss(torch::nn::BCELossOptions().reduction(torch::kMean))(y, x).item<double>(),
      F::mse_loss(y, x, torch::kMean).item<double>(),
      F::l1_loss(y, x, F::L1LossFuncOptions(torch::kSum)).item<double>(),
      F::smooth_l1_loss(y, x, F::SmoothL1LossFuncOptions().beta(0.5)).item<double>());
  std::fflush(stdout);
  for (const auto& named : model->named_parameters())
    std::cout << named.key() << (named.value().grad().defined() ? " learnt" : " did not learn")
              << "\n";
  return 0;
}
