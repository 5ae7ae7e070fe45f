// A model that Python wrote as TorchScript: torch.jit.save(torch.jit.script(net), "net.pt"). It
// runs, trains here and is saved again. PyTorch loads the result. It also links //:script. The
// argument is a file of a model that maps 5 numbers to 3 classes.
#include "nn/script/script.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "nn/script/translate.h"
#include "ramet.h"

namespace torch = ramet;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cout << "usage: script net.pt (in Python: torch.jit.script(net).save(\"net.pt\"))\n";
    return 0;
  }
  torch::manual_seed(1);
  const torch::Tensor x = torch::randn({64, 5});
  const torch::Tensor classes = (x.select(1, 0) > 0).to(torch::kLong) + (x.select(1, 1) > 0);

  // As in a LibTorch program: torch::jit::load(), forward() with IValues.
  torch::jit::script::Module scripted = torch::jit::load(argv[1]);
  std::cout << scripted.type_name() << ": " << scripted.parameters().size() << " parameters, output "
            << scripted.forward({x}).toTensor().sizes() << '\n';

  // As a module: whatever trains modules trains it.
  const auto net = torch::script::load(argv[1]);
  net->train();
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

  // The code as it was, with the new weights.
  const std::string path = "script_trained.pt";
  net->eval();
  net->script().save(path, {{"steps", "40"}});
  torch::jit::ExtraFilesMap extra = {{"steps", ""}};
  const torch::jit::Module again = torch::jit::load(path, torch::kCPU, extra);
  const bool same = again.forward({x}).toTensor().equal(net->forward(x));
  std::cout << "after " << extra["steps"] << " steps, saved and loaded: "
            << (same ? "the same" : "something else") << '\n';
  std::remove(path.c_str());

  // As C++: a struct that needs neither the file nor //:script. ./tools/translate writes it, too.
  const auto cpp = torch::script::translate(scripted, "Classifier");
  std::cout << "as C++: " << std::count(cpp.header.begin(), cpp.header.end(), '\n')
            << " lines and " << cpp.tensors.size() << " tensors\n";
  return same && last < first / 2 ? 0 : 1;
}
