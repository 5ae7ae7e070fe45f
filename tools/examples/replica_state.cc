// Extra state of a module that runs on several devices. Each replica has a state, which is merged
// into the module's. A list is shared by all replicas.
#include <cstdint>
#include <iostream>
#include <numeric>
#include <vector>

#include "ramet.h"

namespace torch = ramet;

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { NetImpl::reset(); }
  void reset() override { fc = register_module("fc", torch::nn::Linear(4, 2)); }
  torch::Tensor forward(const torch::Tensor& x) {
    *rows += x.size(0);                                      // this replica's own
    largest.lock()->push_back(x.abs().max().item<float>());  // one replica at a time
    return fc(x);
  }
  torch::nn::Linear fc{nullptr};
  torch::nn::parallel::replica_state<int64_t> rows{
      0, [](const std::vector<int64_t>& of_replicas) {
        return std::accumulate(of_replicas.begin(), of_replicas.end(), int64_t{0});
      }};
  torch::nn::parallel::shared<std::vector<float>> largest;
};
RAMET_MODULE(Net);

int main() {
  torch::manual_seed(1);
  Net net;
  torch::nn::parallel::DataParallel<Net> parallel_net(
      net, {torch::Device("cpu:0"), torch::Device("cpu:1"), torch::Device("cpu:2")});
  // Seen with every gradient of a replica, before they are added.
  parallel_net.replicas().register_pre_reduce_hook(
      [](int, const std::string&, const torch::Tensor& g) { return g.clamp(-1, 1); });
  for (int step = 0; step < 4; ++step) parallel_net(torch::randn({10, 4})).sum().backward();

  for (int r = 0; r < 3; ++r)
    std::cout << "  replica " << r << ": " << *parallel_net.replicas().replica<NetImpl>(r).rows
              << " rows\n";
  std::cout << "the module: " << *net->rows << " rows in " << net->largest.load().size()
            << " forwards\n";
  return *net->rows == 40 && net->largest.load().size() == 12 ? 0 : 1;
}
