// pytorch's C++ example "dcgan", told again: a generator of digits and a judge of them are trained
// against each other, with checkpoints. The generator's layers there are ConvTranspose2d; here a
// module of our own does what they do, by a convolution over an image spread out with zeros.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <string>

#include "tools/compat/programs/examples_data.h"

using namespace torch;

namespace {

const int64_t kNoiseSize = 16;
const int64_t kBatchSize = 16;
const int64_t kBatches = 12;
const int64_t kCheckpointEvery = 6;
const int64_t kLogEvery = 4;
const int64_t kSamples = 4;

// A transposed convolution without bias: out = (in - 1) * stride - 2 * padding + kernel.
struct GrowImpl : nn::Module {
  GrowImpl(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1, int64_t padding = 0)
      : stride(stride),
        border(kernel - 1 - padding),
        conv(nn::Conv2dOptions(in, out, kernel).bias(false)) {
    register_module("conv", conv);
  }
  Tensor forward(const Tensor& x) {
    using indexing::Slice;
    const int64_t height = (x.size(2) - 1) * stride + 1, width = (x.size(3) - 1) * stride + 1;
    auto wide =
        torch::zeros({x.size(0), x.size(1), height + 2 * border, width + 2 * border}, x.options());
    wide.index_put_({Slice(), Slice(), Slice(border, border + height, stride),
                     Slice(border, border + width, stride)},
                    x);
    return conv(wide);
  }
  int64_t stride, border;
  nn::Conv2d conv;
};
TORCH_MODULE(Grow);

struct DCGANGeneratorImpl : nn::Module {
  explicit DCGANGeneratorImpl(int64_t noise)
      : grow1(noise, 32, 4),
        norm1(32),
        grow2(32, 16, 3, 2, 1),
        norm2(16),
        grow3(16, 8, 4, 2, 1),
        norm3(8),
        grow4(8, 1, 4, 2, 1) {
    register_module("grow1", grow1);
    register_module("grow2", grow2);
    register_module("grow3", grow3);
    register_module("grow4", grow4);
    register_module("norm1", norm1);
    register_module("norm2", norm2);
    register_module("norm3", norm3);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(norm1(grow1(x)));
    x = torch::relu(norm2(grow2(x)));
    x = torch::relu(norm3(grow3(x)));
    return torch::tanh(grow4(x));
  }
  Grow grow1;
  nn::BatchNorm2d norm1;
  Grow grow2;
  nn::BatchNorm2d norm2;
  Grow grow3;
  nn::BatchNorm2d norm3;
  Grow grow4;
};
TORCH_MODULE(DCGANGenerator);

nn::Sequential make_discriminator() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, 8, 4).stride(2).padding(1).bias(false)),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(8, 16, 4).stride(2).padding(1).bias(false)), nn::BatchNorm2d(16),
      nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(16, 32, 4).stride(2).padding(1).bias(false)),
      nn::BatchNorm2d(32), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)),
      nn::Conv2d(nn::Conv2dOptions(32, 1, 3).stride(1).padding(0).bias(false)), nn::Sigmoid());
}

}  // namespace

int main() {
  torch::manual_seed(1);
  std::cout << std::boolalpha;
  const std::string folder = example_data::scratch_folder("examples_dcgan");
  example_data::write_mnist(folder);

  torch::Device device(torch::kCPU);
  if (torch::cuda::is_available()) device = torch::Device(torch::kCUDA);

  DCGANGenerator generator(kNoiseSize);
  generator->to(device);
  nn::Sequential discriminator = make_discriminator();
  discriminator->to(device);
  std::cout << generator << "\n" << discriminator << std::endl;

  auto dataset = torch::data::datasets::MNIST(folder)
                     .map(torch::data::transforms::Normalize<>(0.5, 0.5))
                     .map(torch::data::transforms::Stack<>());
  const int64_t batches_per_epoch =
      static_cast<int64_t>(std::ceil(dataset.size().value() / static_cast<double>(kBatchSize)));
  auto data_loader = torch::data::make_data_loader(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(kBatchSize).workers(2));

  torch::optim::Adam generator_optimizer(
      generator->parameters(), torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam discriminator_optimizer(
      discriminator->parameters(),
      torch::optim::AdamOptions(2e-3).betas(std::make_tuple(0.5, 0.5)));

  int64_t checkpoints = 0, batch_index = 0;
  for (torch::data::Example<>& batch : *data_loader) {
    // The judge, with real images and with made ones.
    discriminator->zero_grad();
    torch::Tensor real_images = batch.data.to(device);
    torch::Tensor real_labels = torch::empty(batch.data.size(0), device).uniform_(0.8, 1.0);
    torch::Tensor real_output = discriminator->forward(real_images).reshape(real_labels.sizes());
    torch::Tensor d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
    d_loss_real.backward();

    torch::Tensor noise = torch::randn({batch.data.size(0), kNoiseSize, 1, 1}, device);
    torch::Tensor fake_images = generator->forward(noise);
    torch::Tensor fake_labels = torch::zeros(batch.data.size(0), device);
    torch::Tensor fake_output =
        discriminator->forward(fake_images.detach()).reshape(fake_labels.sizes());
    torch::Tensor d_loss_fake = torch::binary_cross_entropy(fake_output, fake_labels);
    d_loss_fake.backward();
    torch::Tensor d_loss = d_loss_real + d_loss_fake;
    discriminator_optimizer.step();

    // The generator.
    generator->zero_grad();
    fake_labels.fill_(1);
    fake_output = discriminator->forward(fake_images).reshape(fake_labels.sizes());
    torch::Tensor g_loss = torch::binary_cross_entropy(fake_output, fake_labels);
    g_loss.backward();
    generator_optimizer.step();

    if (++batch_index % kLogEvery == 0) {
      std::printf("[%2ld/%3ld] losses are finite: %d %d\n", static_cast<long>(batch_index),
                  static_cast<long>(batches_per_epoch), std::isfinite(d_loss.item<float>()),
                  std::isfinite(g_loss.item<float>()));
    }
    if (batch_index % kCheckpointEvery == 0) {
      torch::Tensor samples =
          generator->forward(torch::randn({kSamples, kNoiseSize, 1, 1}, device));
      torch::save((samples + 1.0) / 2.0, torch::str(folder, "sample-", ++checkpoints, ".pt"));
      torch::save(generator, folder + "generator.pt");
      torch::save(generator_optimizer, folder + "generator_optimizer.pt");
      torch::save(discriminator, folder + "discriminator.pt");
      torch::save(discriminator_optimizer, folder + "discriminator_optimizer.pt");
      std::cout << "-> checkpoint " << checkpoints << std::endl;
    }
    if (batch_index == kBatches) break;
  }

  // What the last checkpoint kept.
  DCGANGenerator again(kNoiseSize);
  torch::load(again, folder + "generator.pt");
  torch::load(generator_optimizer, folder + "generator_optimizer.pt");
  generator->eval();
  again->eval();
  auto noise = torch::ones({2, kNoiseSize, 1, 1}, device);
  again->to(device);
  torch::Tensor sample;
  torch::load(sample, torch::str(folder, "sample-", checkpoints, ".pt"));
  std::cout << "samples: " << sample.sizes()
            << ", restored: " << torch::equal(generator->forward(noise), again->forward(noise))
            << std::endl;
  std::system(("rm -r '" + folder + "'").c_str());
}
