// What LibTorch writes: make_goldens.py says how this is compiled. Values as there.
#include <torch/torch.h>

#include <fstream>

using torch::Tensor;

static Tensor values(torch::IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return (torch::arange(n) * 0.5 - 1.25).to(torch::kFloat).view(sizes);
}

struct Net : torch::nn::Module {
  torch::nn::Linear fc{nullptr};
  torch::nn::BatchNorm1d bn{nullptr};
  torch::nn::Sequential body{nullptr};
  Tensor scale;
  Net() {
    fc = register_module("fc", torch::nn::Linear(3, 2));
    bn = register_module("bn", torch::nn::BatchNorm1d(2));
    body = register_module("body", torch::nn::Sequential(torch::nn::Linear(2, 2), torch::nn::ReLU()));
    scale = register_buffer("scale", torch::ones({2}, torch::kDouble));
  }
};

// An optimizer after two steps of known gradients, its parameters then, and after one more.
template <class Optimizer, class Options>
static void train(const std::string& file, const Options& options) {
  std::vector<Tensor> params = {values({2, 3}).requires_grad_(), values({2}).requires_grad_()};
  Optimizer optimizer(params, options);
  const auto step = [&] {
    for (Tensor& p : params) p.mutable_grad() = values(p.sizes());
    optimizer.step();
  };
  step(), step();
  torch::save(optimizer, file + ".pt");
  std::vector<Tensor> list = {params[0].detach().clone(), params[1].detach().clone()};
  step();
  list.push_back(params[0].detach()), list.push_back(params[1].detach());
  torch::save(list, file + "_steps.pt");
}

int main(int, char** argv) {
  const std::string folder = std::string(argv[1]) + "/libtorch_";
  auto net = std::make_shared<Net>();
  {
    torch::NoGradGuard no_grad;
    for (auto& p : net->named_parameters()) p.value().copy_(values(p.value().sizes()));
    net->bn->running_mean.copy_(values({2}));
    net->scale.mul_(0.1);
  }
  torch::save(net, folder + "module.pt");
  torch::save(values({2, 3}), folder + "tensor.pt");
  torch::save(std::vector<Tensor>{values({2}), torch::arange(3)}, folder + "list.pt");

  train<torch::optim::Adam>(folder + "adam", torch::optim::AdamOptions(0.125).betas({0.5, 0.75}));
  train<torch::optim::SGD>(folder + "sgd", torch::optim::SGDOptions(0.25).momentum(0.5));

  c10::Dict<std::string, Tensor> dict;
  dict.insert("w", values({2, 2}));
  dict.insert("v", values({3}).to(torch::kHalf));
  const std::vector<char> bytes = torch::pickle_save(dict);
  std::ofstream(folder + "pickle.pt", std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  c10::impl::GenericList list(c10::AnyType::get());
  list.push_back(3);
  list.push_back(std::vector<double>{0.5, 2.0});
  list.push_back(std::string("text"));
  list.push_back(true);
  list.push_back(c10::IValue());
  const std::vector<char> more = torch::pickle_save(list);
  std::ofstream(folder + "values.pt", std::ios::binary).write(more.data(), static_cast<std::streamsize>(more.size()));
}
