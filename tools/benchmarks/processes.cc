// One rank of ./tools/bench processes: all-reduces and training steps over a process group, each
// rank with one thread. Rank 0 prints `name, best, median` in milliseconds, separated by tabs.
// tools/benchmarks/processes_torch.py measures the same of PyTorch's DistributedDataParallel.
//
//   tools/launch --nproc 2 --no-prefix -- processes SECONDS [TEXT]
//     rows with TEXT in their names, that long each
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "parallel/distributed/ddp/data_parallel.h"
#include "ramet.h"

namespace {

using namespace ramet;
using Clock = std::chrono::steady_clock;

struct Job {
  std::shared_ptr<distributed::ProcessGroup> group;
  double seconds = 1;
  std::string only;

  double time(const std::function<void()>& work) const {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

  void row(const std::string& name, const std::function<void()>& work) const {
    if (name.find(only) == std::string::npos) return;
    for (int i = 0; i < 3; ++i) work();
    // All ranks run equally often.
    Tensor guess = full({1}, time(work), kDouble);
    group->all_reduce(guess, distributed::ReduceOp::max).wait();
    const int rounds =
        std::clamp(static_cast<int>(seconds * 1e3 / guess.item<double>()), 5, 100000);
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) times.push_back(time(work));
    std::ranges::sort(times);
    if (group->rank() == 0)
      std::printf("%s\t%.4f\t%.4f\n", name.c_str(), times[0], times[times.size() / 2]);
    std::fflush(stdout);
  }

  // With and without synchronisation: the difference is what communication adds to the step.
  void training(const std::string& name, nn::Sequential model, const Tensor& x, const Tensor& y) {
    if (name.find(only) == std::string::npos && (name + ", alone").find(only) == std::string::npos)
      return;
    distributed::DistributedDataParallel<nn::Sequential> ddp(model, group);
    optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.01));
    const auto step = [&] {
      optimizer.zero_grad();
      cross_entropy_loss(ddp(x), y).backward();
      optimizer.step();
    };
    row(name, step);
    ddp.set_requires_gradient_sync(false);
    row(name + ", alone", step);
  }
};

Tensor labels(int64_t rows) { return randint(0, 10, {rows}, kLong); }

nn::Sequential cnn() {
  return nn::Sequential(
      nn::Conv2d(nn::Conv2dOptions(1, 32, 3).padding(1)), nn::BatchNormReLUMaxPool2d(32),
      nn::Conv2d(nn::Conv2dOptions(32, 64, 3).padding(1)), nn::BatchNormReLUMaxPool2d(64),
      nn::Flatten(), nn::Linear(3136, 128), nn::ReLU(), nn::Linear(128, 10));
}

}  // namespace

int main(int count, char** words) {
  set_num_threads(1);
  manual_seed(1);
  Job job;
  job.group = distributed::init_process_group();
  if (count > 1) job.seconds = std::strtod(words[1], nullptr);
  if (count > 2) job.only = words[2];
  const int64_t ranks = job.group->size();
  for (const auto& [name, elements] : {std::pair<const char*, int64_t>{"all-reduce 64 B", 16},
                                       {"all-reduce 2.7 MB", 669706},
                                       {"all-reduce 43 MB", 10750000}}) {
    const Tensor t = zeros({elements});
    job.row(name, [&] { job.group->all_reduce(t).wait(); });
  }
  job.training("MLP 784-512-512-10, 128 rows",
               nn::Sequential(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                              nn::Linear(512, 10)),
               randn({128 / ranks, 784}), labels(128 / ranks));
  job.training("10.5 M parameters, 64 rows",
               nn::Sequential(nn::Linear(1024, 2048), nn::ReLU(), nn::Linear(2048, 2048),
                              nn::ReLU(), nn::Linear(2048, 2048), nn::ReLU(), nn::Linear(2048, 10)),
               randn({64 / ranks, 1024}), labels(64 / ranks));
  job.training("CNN, 128 rows", cnn(), randn({128 / ranks, 1, 28, 28}), labels(128 / ranks));
  job.group->barrier().wait();
  return 0;
}
