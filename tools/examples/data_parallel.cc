// A module trained on one, two and four devices: the same bits.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

// The weights after ten steps on a batch that is cut into pieces, one replica a device.
torch::Tensor train(std::vector<torch::Device> devices) {
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(20, 32), torch::nn::ReLU(), torch::nn::Dropout(0.2),
                            torch::nn::Linear(32, 4));
  torch::nn::parallel::DataParallelOptions options(std::move(devices));
  // Sums as a tree over four shards, however many devices compute them.
  options.order = torch::parallel::ReduceOrder::tree(4);
  torch::nn::parallel::DataParallel<torch::nn::Sequential> parallel_net(net, options);
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));

  const torch::Tensor x = torch::randn({62, 20}), y = torch::randint(0, 4, {62}, torch::kLong);
  for (int step = 0; step < 10; ++step) {
    sgd.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(parallel_net(x), y);
    loss.backward();  // the replicas' gradients arrive in net's parameters
    sgd.step();
    if (step % 3 == 0) std::cout << "  step " << step << ": loss " << loss.item<float>() << '\n';
  }
  return torch::nn::utils::parameters_to_vector(net->parameters()).detach();
}

int main() {
  const torch::Device d0("cpu:0"), d1("cpu:1"), d2("cpu:2"), d3("cpu:3");
  std::cout << "one device\n";
  const torch::Tensor one = train({d0});
  std::cout << "two devices\n";
  const torch::Tensor two = train({d0, d1});
  std::cout << "four devices\n";
  const torch::Tensor four = train({d0, d1, d2, d3});
  const bool same = one.equal(two) && one.equal(four);
  std::cout << (same ? "all weights are equal, bit for bit\n" : "the weights differ\n");
  return same ? 0 : 1;
}
