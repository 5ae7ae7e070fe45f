// A module trained on one, two and four GPUs: the same bits. Without GPUs on emulated ones.
#include <cstdlib>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

// The weights after some steps on a batch that is cut into pieces, one replica a GPU.
torch::Tensor train(int gpus) {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(20, 32), torch::nn::ReLU(), torch::nn::Dropout(0.2),
                            torch::nn::Linear(32, 4));
  net->to(torch::kCUDA);  // cuda:0
  std::vector<torch::Device> devices;
  for (int k = 0; k < gpus; ++k)
    devices.emplace_back(torch::kCUDA, static_cast<torch::DeviceIndex>(k));
  torch::nn::parallel::DataParallelOptions options(devices);
  options.order = torch::parallel::ReduceOrder::tree(4);
  torch::nn::parallel::DataParallel<torch::nn::Sequential> parallel_net(net, options);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  const torch::Tensor x = torch::randn({62, 20}),
                      y = torch::randint(0, 4, {62}, torch::kLong).to(torch::kCUDA);
  for (int step = 0; step < 4; ++step) {
    sgd.zero_grad();
    // The pieces of x travel from the host to each GPU; the results meet on cuda:0.
    torch::Tensor loss = torch::nn::functional::cross_entropy(parallel_net(x), y);
    loss.backward();
    sgd.step();
    std::cout << "  step " << step << ": loss " << loss.item<float>() << '\n';
  }
  return torch::nn::utils::parameters_to_vector(net->parameters()).detach();
}

int main() {
  setenv("RAMET_EMULATED_DEVICES", "4", /*overwrite=*/0);  // real ones do not read it
  const int count = static_cast<int>(torch::cuda::device_count());
  std::cout << count << " CUDA devices\n";
  if (count == 0) return 0;
  const torch::Tensor one = train(1);
  bool same = true;
  for (int n = 2; n <= 4 && n <= count; n *= 2) {
    std::cout << n << " devices\n";
    same = same && one.equal(train(n));
  }
  std::cout << (same ? "all weights are equal, bit for bit\n" : "the weights differ\n");
  return same ? 0 : 1;
}
