// A model that Python exported: torch.export.save(torch.export.export(net, (x,)), "net.pt2"). It
// runs, trains here, and is saved as TorchScript, which PyTorch loads. It also links //:script. The
// argument is a file of a model that maps images of 2 x 6 x 6 to three classes.
#include <cstdio>
#include <iostream>

#include "nn/script/script.h"
#include "ramet.h"

namespace torch = ramet;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cout << "usage: exported net.pt2 (in Python: torch.export.save(...))\n";
    return 0;
  }
  torch::manual_seed(1);
  const auto net = torch::script::load(argv[1]);
  net->to(torch::kFloat);  // it was exported in float64
  for (const auto& p : net->named_parameters())
    std::cout << p.key() << ' ' << p.value().sizes() << '\n';

  // The classes are quarters of the brightness.
  const torch::Tensor x =
      torch::randn({16, 2, 6, 6}) + torch::linspace(-1, 1, 16).view({16, 1, 1, 1});
  const torch::Tensor brightness = x.mean({1, 2, 3});
  const torch::Tensor classes = (brightness > -0.4).to(torch::kLong) + (brightness > 0.4);
  torch::optim::Adam adam(net->parameters(), torch::optim::AdamOptions(0.03));
  double first = 0, last = 0;
  for (int step = 0; step < 40; ++step) {
    adam.zero_grad();
    const torch::Tensor loss = torch::nn::functional::nll_loss(net->forward(x), classes);
    loss.backward();
    adam.step();
    last = loss.item<double>();
    if (step == 0) first = last;
  }
  std::cout << "loss: " << first << " to " << last << '\n';

  // A graph's text is written with the new weights.
  const std::string path = "exported_trained.pt";
  net->script().save(path);
  const torch::jit::Module again = torch::jit::load(path);
  const bool same = again.forward({x}).toTensor().equal(net->forward(x));
  std::cout << "saved as TorchScript and loaded: " << (same ? "the same" : "something else")
            << '\n';
  // Inputs are compared with those at export, before anything runs.
  try {
    net->forward(torch::zeros({4, 3, 6, 6}));
    return 1;
  } catch (const torch::Error& e) { std::cout << e.what() << '\n'; }
  std::remove(path.c_str());
  return same && last < first / 2 ? 0 : 1;
}
