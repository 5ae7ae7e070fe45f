// A variational autoencoder (Kingma and Welling 2014) on Fashion-MNIST. It turns pictures into 16
// numbers and back into pictures, and turns randomly drawn numbers into new pictures.
//
//   autoencoder [STEPS [FOLDER [GRID.pgm]]]     400 steps
//
// The grid: pictures, below them what is left of them, then drawn ones.
#include <fstream>
#include <iostream>
#include <string>

#include "ramet.h"

namespace torch = ramet;
namespace F = torch::nn::functional;

constexpr int64_t kPixels = 28 * 28, kWidth = 256, kNumbers = 16;

struct AutoencoderImpl : torch::nn::Module {
  AutoencoderImpl() {
    encoder = register_module(
        "encoder", torch::nn::Sequential(torch::nn::Linear(kPixels, kWidth), torch::nn::ReLU(),
                                         torch::nn::Linear(kWidth, 2 * kNumbers)));
    decoder = register_module(
        "decoder", torch::nn::Sequential(torch::nn::Linear(kNumbers, kWidth), torch::nn::ReLU(),
                                         torch::nn::Linear(kWidth, kPixels)));
  }
  struct Loss {
    torch::Tensor picture, numbers;  // nats a picture: what is lost, what the numbers say
  };
  Loss loss(const torch::Tensor& x) {
    const auto parts = encoder->forward(x).chunk(2, 1);
    const torch::Tensor &mean = parts[0], &log_variance = parts[1];
    const torch::Tensor z = mean + (log_variance / 2).exp() * torch::randn_like(mean);
    const double rows = static_cast<double>(x.size(0));
    return {F::binary_cross_entropy_with_logits(
                decoder->forward(z), x,
                F::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kSum)) /
                rows,
            (mean.square() + log_variance.exp() - log_variance - 1).sum() / (2 * rows)};
  }
  torch::Tensor picture(const torch::Tensor& z) { return decoder->forward(z).sigmoid(); }
  torch::nn::Sequential encoder{nullptr}, decoder{nullptr};
};
RAMET_MODULE(Autoencoder);

// Rows of ten pictures as a PGM file.
void write_grid(const std::string& path, const torch::Tensor& pictures) {
  const int64_t rows = pictures.size(0) / 10;
  const torch::Tensor bytes = (pictures.view({rows, 10, 28, 28}).transpose(1, 2) * 255)
                                  .round()
                                  .to(torch::kUInt8)
                                  .contiguous();
  std::ofstream file(path, std::ios::binary);
  file << "P5 280 " << 28 * rows << " 255\n";
  file.write(static_cast<const char*>(bytes.data_ptr()), bytes.numel());
}

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::stoi(argv[1]) : 400;
  const std::string folder = argc > 2 ? argv[2] : "/usr/share/datasets/fashion-mnist";
  using torch::data::datasets::MNIST;
  const MNIST train(folder), test(folder, MNIST::Mode::kTest);
  const torch::Tensor seen = train.images().view({-1, kPixels}),
                      unseen = test.images().slice(0, 0, 1000).view({-1, kPixels});

  torch::manual_seed(1);
  Autoencoder net;
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(2e-3));
  for (int step = 0; step < steps; ++step) {
    const torch::Tensor some = torch::randint(seen.size(0), {100}, torch::kLong);
    const auto loss = net->loss(seen.index_select(0, some));
    adam.zero_grad();
    (loss.picture + loss.numbers).backward();
    adam.step();
    if (step % (steps / 4 + 1) == 0)
      std::cout << "step " << step << ": " << loss.picture.item<float>() << " + "
                << loss.numbers.item<float>() << " nats a picture\n";
  }

  const torch::NoGradGuard off;
  const auto loss = net->loss(unseen);
  const double all = (loss.picture + loss.numbers).item<double>();
  std::cout << "pictures that it has not seen: " << loss.picture.item<float>() << " + "
            << loss.numbers.item<float>() << " nats\n";
  // Without any number: each pixel is as dark as on average.
  const torch::Tensor mean = seen.slice(0, 0, 1000).mean(0, true);
  const double average =
      F::binary_cross_entropy(mean.expand_as(unseen), unseen).item<double>() * kPixels;
  std::cout << "the average picture alone: " << average << " nats\n";
  if (argc > 3) {
    const torch::Tensor some = unseen.slice(0, 0, 20);
    write_grid(argv[3], torch::cat({some, net->picture(net->encoder->forward(some).chunk(2, 1)[0]),
                                    net->picture(torch::randn({20, kNumbers}))}));
  }
  return all < 0.75 * average ? 0 : 1;
}
