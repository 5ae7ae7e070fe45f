// Numbers as pictures: curves of a training, a weight, filters, a histogram, as PNG and SVG and in
// the terminal.
#include <filesystem>
#include <iostream>
#include <vector>

#include "ramet.h"
#include "tools/see/plot.h"
#include "tools/see/show.h"

namespace torch = ramet;
namespace see = ramet::see;

int main(int argc, char** argv) {
  torch::manual_seed(1);
  const std::filesystem::path folder =
      argc > 1 ? argv[1] : std::filesystem::temp_directory_path() / "ramet_pictures";
  std::filesystem::create_directories(folder);
  const auto file = [&](const char* name) { return (folder / name).string(); };

  // Edges of brightness, upright or lying: a convolution finds filters for them.
  torch::Tensor images = torch::rand({64, 1, 12, 12}) * 0.3;
  torch::Tensor labels = torch::arange(64) % 2;
  for (int64_t i = 0; i < 64; ++i) images[i][0].slice(i % 2, 0, 3 + i % 7).add_(0.6);
  see::show(images, file("images.png"), see::ShowOptions().title("What is learned from"));

  torch::nn::Sequential net(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 3)), torch::nn::Tanh(),
                            torch::nn::Flatten(), torch::nn::Linear(800, 2));
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05));
  std::vector<double> losses, norms;
  for (int step = 0; step < 60; ++step) {
    sgd.zero_grad();
    torch::Tensor loss = torch::cross_entropy_loss(net->forward(images), labels);
    loss.backward();
    sgd.step();
    losses.push_back(loss.item<double>());
    norms.push_back(net->parameters()[0].grad().norm().item<double>());
  }

  // Two curves; the ending says what the file is. On a logarithmic axis small numbers are seen,
  // too.
  const std::vector<see::Curve> curves = {{"loss", losses},
                                          {"norm of the filters' gradient", norms}};
  const auto options = see::PlotOptions()
                           .title("Training")
                           .x(see::AxisOptions("step").whole(true))
                           .y(see::AxisOptions().log(true));
  see::plot(curves, file("training.png"), options);
  see::plot(curves, file("training.svg"), see::PlotOptions(options).dark(true));

  // A weight by its shape: 8 filters of 3 x 3. A matrix, with its numbers in the cells where they
  // fit. A histogram: how often each number occurs.
  const torch::Tensor filters = net->parameters()[0], weight = net->parameters()[2];
  see::show(filters.squeeze(1), file("filters.png"), see::ShowOptions().title("Filters"));
  see::show(weight.grad().view({2, 8, 100}).sum(2), file("gradient.png"),
            see::ShowOptions().title("Gradient by class and filter"));
  see::show(weight, file("histogram.svg"),
            see::ShowOptions().kind(see::Kind::kHistogram).title("Last weight"));

  // The same where only a terminal is. (Without columns() as wide as that is.)
  std::cout << see::plot_text(curves, see::PlotOptions(options).columns(72).lines(10))
            << see::show_text(filters.squeeze(1), see::ShowOptions().columns(72))
            << see::show_text(weight,
                              see::ShowOptions().kind(see::Kind::kHistogram).columns(72).bins(8))
            << "pictures in " << folder.string() << '\n';
  return losses.back() < losses.front() / 2 ? 0 : 1;
}
