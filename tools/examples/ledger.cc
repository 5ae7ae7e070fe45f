// A ledger: any step of a run can be checked later, on another machine or other devices.
#include "tools/ledger/ledger.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

struct Job {
  torch::nn::Sequential net{torch::nn::Linear(8, 32), torch::nn::Tanh(), torch::nn::Dropout(0.2),
                            torch::nn::Linear(32, 1)};
  torch::nn::parallel::DataParallel<torch::nn::Sequential> replicas;
  torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(0.01)};

  explicit Job(int devices) : replicas(net, options(devices)) {}

  static torch::nn::parallel::DataParallelOptions options(int devices) {
    std::vector<torch::Device> all;
    for (int i = 0; i < devices; ++i) all.emplace_back(torch::kCPU, i);
    torch::nn::parallel::DataParallelOptions o(all);
    o.order = torch::parallel::ReduceOrder::tree(4);  // the same bits on 1, 2 and 4 devices
    return o;
  }

  // Writes the ledger, or checks a step where ./tools/verify asks for one.
  int run(int64_t steps) {
    torch::Checkpoint parts;  // all that the run needs to go on
    parts.add("net", *net).add("adam", adam);
    torch::ledger::LedgerOptions options{"ledger_example.ledger"};
    options.checkpoint_every = 20;
    options.order = "tree:4";
    torch::ledger::Ledger ledger(parts, options);
    ledger.watch(*net).watch(adam);
    return ledger.run(steps, [&] {
      const torch::Tensor x = torch::randn({16, 8});
      ledger.batch({x});
      adam.zero_grad();
      torch::mse_loss(replicas(x), x.sum(1, true)).backward();
      ledger.gradients();
      adam.step();
    });
  }
};

int main() {
  torch::manual_seed(1);
  const int code = Job(2).run(50);
  if (torch::ledger::to_verify()) return code;
  std::cout << "50 steps on two devices are in ledger_example.ledger\n" << std::flush;

  // What `./tools/verify ledger_example.ledger --step 42` does, here on four devices.
  setenv("RAMET_LEDGER_VERIFY", "42:ledger_example.ledger", 1);
  torch::manual_seed(99);  // another process would start anywhere
  const int checked = Job(4).run(50);
  torch::ledger::remove_ledger("ledger_example.ledger");
  return checked;
}
