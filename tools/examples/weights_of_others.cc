// Weights of other programs. A state dict of PyTorch becomes a module's parameters under other
// names. A module becomes a file that torch.load() reads. Arrays go to NumPy. It also links
// //:formats.
#include <cstdio>
#include <iostream>

#include "nn/formats/numpy/npz.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict.h"
#include "ramet.h"

namespace torch = ramet;
namespace formats = ramet::formats;

int main() {
  torch::manual_seed(1);
  // A file as a Python program would have left it: torch.save({"model": model.state_dict(),
  // "epoch": 3}, ...). The model was wrapped in DataParallel. Its first layer came from TensorFlow,
  // inputs first.
  const std::string path = "weights_of_others.pt";
  torch::IValue::GenericDict model, checkpoint;
  model.insert("module.dense/kernel", torch::randn({8, 16}));
  model.insert("module.dense/bias", torch::randn({16}));
  model.insert("module.out.weight", torch::randn({1, 16}));
  model.insert("module.out.bias", torch::randn({1}));
  checkpoint.insert("model", model);
  checkpoint.insert("epoch", 3);
  formats::save_pt(path, checkpoint);

  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::Tanh(), torch::nn::Linear(16, 1));
  const auto weights =
      formats::state_dict(path, "model");  // .pt, .npz, safetensors: whatever it is
  try {
    formats::load_state_dict(*net, weights);
  } catch (const torch::Error& e) {
    std::cout << e.what() << '\n';  // all that does not fit, as one table; the module is as it was
  }
  const formats::NameMap names = formats::NameMap()
                                     .rename_prefix("module.", "")
                                     .rename_regex("^dense/(kernel|bias)$", "0.$1")
                                     .rename("0.kernel", "0.weight")
                                     .rename_prefix("out.", "2.")
                                     .transpose("0\\.weight");
  std::cout << formats::load_state_dict(*net, weights, names);

  const torch::Tensor x = torch::ones({2, 8});
  const torch::Tensor by_hand =
      (x.mm(weights["module.dense/kernel"]) + weights["module.dense/bias"])
          .tanh()
          .mm(weights["module.out.weight"].t()) +
      weights["module.out.bias"];
  const torch::Tensor y = net->forward(x).detach();
  const bool same = torch::allclose(y, by_hand);
  std::cout << (same ? "the same as by hand\n" : "the results differ\n");

  formats::save_pt(path, formats::state_dict(*net));  // model.load_state_dict(torch.load(path))
  const bool kept = formats::state_dict(path)["2.bias"].equal(weights["module.out.bias"]);

  const std::string arrays = "weights_of_others.npz";
  torch::OrderedDict<std::string, torch::Tensor> results;
  results.insert("x", x);
  results.insert("y", y);
  formats::save_npz(arrays, results, /*compressed=*/true);  // numpy.load(arrays)["y"]
  const bool arrived = formats::load_npz(arrays)["y"].equal(y);
  std::cout << (kept && arrived ? "files hold the same bits\n" : "files hold something else\n");
  std::remove(path.c_str());
  std::remove(arrays.c_str());
  return same && kept && arrived ? 0 : 1;
}
