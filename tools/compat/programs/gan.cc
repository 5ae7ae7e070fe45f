// A generative adversarial network on a wave. Styles: two nets and two optimizers, betas by
// make_tuple, labels filled in place, detach(), BatchNorm in both modes, apply() with weights by
// the kind of module, Sequential built by push_back, samples kept in a list.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <tuple>
#include <vector>

const int64_t kNoiseSize = 4;
const int64_t kBatchSize = 6;
const int64_t kWidth = 8;
const int64_t kEpochs = 4;

// Noise that is the same each time: sines of different speed.
torch::Tensor noise(int64_t step) {
  const auto i = torch::arange(kBatchSize * kNoiseSize, torch::kFloat64);
  return ((i + 1) * (1.7 + 0.3 * static_cast<double>(step)))
      .sin()
      .to(torch::kFloat32)
      .view({kBatchSize, kNoiseSize});
}

// Waves of different phase: what the generator is to make.
torch::Tensor real_waves(int64_t step) {
  const auto phase = torch::arange(kBatchSize, torch::kFloat64)
                         .add(static_cast<double>(step))
                         .mul(0.5)
                         .unsqueeze(1);
  const auto position = torch::linspace(0, 2 * M_PI, kWidth, torch::kFloat64).unsqueeze(0);
  return torch::sin(position + phase).to(torch::kFloat).unsqueeze(1);
}

struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl(int64_t noise_size, int64_t width)
      : project(torch::nn::LinearOptions(noise_size, 2 * width).bias(false)),
        norm(torch::nn::BatchNorm1dOptions(4)),
        conv1(torch::nn::Conv1dOptions(4, 6, 3).padding(1).bias(false)),
        conv2(torch::nn::Conv1dOptions(6, 1, 5).padding(2)) {
    register_module("project", project);
    register_module("norm", norm);
    register_module("conv1", conv1);
    register_module("conv2", conv2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = project(x).view({x.size(0), 4, -1});
    x = torch::relu(norm(x));
    x = x.unsqueeze(3)
            .expand({-1, -1, -1, 2})
            .reshape({x.size(0), x.size(1), 2 * x.size(2)});  // twice as long
    x = torch::leaky_relu(conv1(x), 0.2);
    return torch::tanh(conv2(x));
  }

  torch::nn::Linear project;
  torch::nn::BatchNorm1d norm;
  torch::nn::Conv1d conv1, conv2;
};
TORCH_MODULE(Generator);

torch::nn::Sequential make_discriminator() {
  torch::nn::Sequential net;
  net->push_back(
      torch::nn::Conv1d(torch::nn::Conv1dOptions(1, 4, 4).stride(2).padding(1).bias(false)));
  net->push_back(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)));
  net->push_back(
      torch::nn::Conv1d(torch::nn::Conv1dOptions(4, 8, 4).stride(2).padding(1).bias(false)));
  net->push_back(torch::nn::BatchNorm1d(8));
  net->push_back(torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)));
  net->push_back(torch::nn::Flatten());
  net->push_back(torch::nn::Linear(16, 1));
  net->push_back(torch::nn::Sigmoid());
  return net;
}

void initialise(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  const auto wave = [](torch::Tensor& t, double size) {
    t.copy_(torch::arange(t.numel(), torch::kDouble).mul(2.3).cos().mul(size).view_as(t));
  };
  if (auto* conv = module.as<torch::nn::Conv1d>()) {
    wave(conv->weight, 0.4);
    if (conv->bias.defined()) torch::nn::init::constant_(conv->bias, 0.01);
  } else if (auto* linear = module.as<torch::nn::Linear>()) {
    wave(linear->weight, 0.3);
    if (linear->options.bias()) linear->bias.zero_();
  } else if (auto* norm = module.as<torch::nn::BatchNorm1d>()) {
    torch::nn::init::ones_(norm->weight);
    torch::nn::init::zeros_(norm->bias);
  }
}

int main(int argc, const char* argv[]) {
  (void)argc, (void)argv;
  torch::Device device = torch::kCPU;

  Generator generator(kNoiseSize, kWidth);
  auto discriminator = make_discriminator();
  generator->apply(initialise);
  discriminator->apply(initialise);
  generator->to(device);
  discriminator->to(device);
  std::cout << generator << "\n" << discriminator << std::endl;

  torch::optim::Adam generator_optimizer(
      generator->parameters(), torch::optim::AdamOptions(4e-3).betas(std::make_tuple(0.5, 0.9)));
  torch::optim::Adam discriminator_optimizer(
      discriminator->parameters(),
      torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.9)));

  std::vector<torch::Tensor> samples;
  for (int64_t epoch = 1; epoch <= kEpochs; ++epoch) {
    generator->train();
    double d_total = 0, g_total = 0, d_of_real = 0;
    for (int64_t step = 0; step < 2; ++step) {
      // The discriminator, with real waves.
      discriminator->zero_grad();
      const torch::Tensor real = real_waves(step).to(device);
      torch::Tensor real_labels = torch::empty(real.size(0), device).fill_(0.9);
      torch::Tensor real_output = discriminator->forward(real).squeeze(1);
      torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
      d_loss_real.backward();

      // And with fake ones.
      torch::Tensor fake = generator->forward(noise(2 * epoch + step));
      torch::Tensor fake_labels = torch::zeros(fake.size(0), device);
      torch::Tensor fake_output = discriminator->forward(fake.detach()).squeeze(1);
      torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
      d_loss_fake.backward();
      const torch::Tensor d_loss = d_loss_real + d_loss_fake;
      discriminator_optimizer.step();

      // The generator.
      generator->zero_grad();
      fake_labels.fill_(1);
      fake_output = discriminator->forward(fake).reshape({-1});
      const torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
      g_loss.backward();
      generator_optimizer.step();

      d_total += d_loss.item<float>();
      g_total += g_loss.item().to<double>();
      d_of_real += real_output.mean().item<double>();
    }
    std::printf("[%2ld/%2ld] D_loss: %.3f | G_loss: %.3f | D(x): %.3f\n", static_cast<long>(epoch),
                static_cast<long>(kEpochs), d_total / 2, g_total / 2, d_of_real / 2);

    generator->eval();
    torch::NoGradGuard no_grad;
    samples.push_back(generator->forward(noise(0)).slice(0, 0, 2).squeeze(1));
  }
  std::fflush(stdout);

  const torch::Tensor labels = torch::empty(kBatchSize, device).uniform_(0.8, 1.0);
  std::cout << torch::str("sample-", samples.size(), ".pt") << " "
            << torch::randn({kBatchSize, kNoiseSize, 1}, device).sizes()
            << ((labels >= 0.8).all() & (labels <= 1).all()).item<bool>() << "\n";

  const auto grid = torch::stack(samples);
  std::cout << "samples " << grid.sizes()
            << ", between -1 and 1: " << ((grid >= -1).all() & (grid <= 1).all()).item<bool>()
            << "\n"
            << (grid.select(0, kEpochs - 1) * 100).round() << "\n";
  std::cout << "batches seen by the norms: " << generator->norm->num_batches_tracked.item<int64_t>()
            << " "
            << discriminator[3]->as<torch::nn::BatchNorm1d>()->num_batches_tracked.item<int64_t>()
            << "\n";
  std::cout << "gradients kept: " << generator->parameters()[0].grad().defined() << ", steps "
            << static_cast<torch::optim::AdamParamState&>(
                   *generator_optimizer.state().at(
                       generator->parameters()[0].unsafeGetTensorImpl()))
                   .step()
            << "\n";
  return 0;
}
