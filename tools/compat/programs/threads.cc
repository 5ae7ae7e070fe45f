// Threads and guards. Styles: std::thread and std::async with tensors, parallel_for and
// parallel_reduce, set_num_threads, guards that hold for one thread. DeviceGuard, data_parallel and
// parallel_apply on the CPU, clones, mutexes.
#include <torch/nn/parallel/data_parallel.h>
#include <torch/torch.h>

#include <atomic>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

struct PolicyImpl : torch::nn::Cloneable<PolicyImpl> {
  PolicyImpl() { reset(); }
  void reset() override {
    fc = register_module("fc", torch::nn::Linear(3, 2));
    torch::NoGradGuard no_grad;
    fc->weight.copy_(torch::linspace(-1, 1, 6).view({2, 3}));
    fc->bias.zero_();
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc(x).tanh(); }
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Policy);

double fitness(Policy& policy, int64_t task) {
  torch::NoGradGuard no_grad;
  const auto x = (torch::arange(6, torch::kFloat) + task).sin().view({2, 3});
  return policy->forward(x).sum().item<double>();
}

int main() {
  std::cout.precision(4);
  torch::set_num_threads(2);
  std::cout << "threads " << torch::get_num_threads() << ", " << at::get_num_threads() << "\n";

  // Work on parts of a range.
  std::vector<int64_t> squares(1000);
  at::parallel_for(0, 1000, /*grain_size=*/64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) squares[i] = i * i;
  });
  std::cout << std::accumulate(squares.begin(), squares.end(), int64_t{0}) << "\n";
  const auto sum = at::parallel_reduce(
      0, 1000, 100, int64_t{0},
      [&](int64_t begin, int64_t end, int64_t start) {
        for (int64_t i = begin; i < end; ++i) start += squares[i] % 7;
        return start;
      },
      [](int64_t a, int64_t b) { return a + b; });
  std::cout << sum << " in parallel: " << at::in_parallel_region() << "\n";

  // Each in a thread of its own, on a clone.
  Policy parent;
  std::vector<std::future<double>> futures;
  for (int64_t i = 0; i < 4; ++i) {
    futures.push_back(std::async(std::launch::async, [i, &parent] {
      Policy child(std::dynamic_pointer_cast<PolicyImpl>(parent->clone()));
      torch::NoGradGuard no_grad;
      child->fc->bias.add_(0.1 * static_cast<double>(i));
      return fitness(child, i);
    }));
  }
  for (auto& future : futures) std::cout << future.get() << " ";
  std::cout << "parent's bias " << parent->fc->bias.sum().item<float>() << "\n";

  // What a guard says holds for its thread only.
  {
    torch::NoGradGuard no_grad;
    bool elsewhere = false;
    std::thread([&] { elsewhere = torch::GradMode::is_enabled(); }).join();
    std::cout << torch::GradMode::is_enabled() << elsewhere << "\n";
  }

  // Gradients of several threads come together under a lock.
  std::mutex mutex;
  std::atomic<int> done{0};
  parent->zero_grad();
  std::vector<torch::Tensor> total;
  for (const auto& p : parent->parameters()) total.push_back(torch::zeros_like(p));
  std::vector<std::thread> workers;
  for (int w = 0; w < 3; ++w) {
    workers.emplace_back([&, w] {
      const auto x = torch::full({2, 3}, 0.25f * static_cast<float>(w));
      const auto grads =
          torch::autograd::grad({parent->forward(x).pow(2).sum()}, parent->parameters());
      std::lock_guard<std::mutex> lock(mutex);
      for (size_t i = 0; i < grads.size(); ++i) total[i].add_(grads[i]);
      ++done;
    });
  }
  for (auto& worker : workers) worker.join();
  std::cout << done.load() << " workers\n" << total[0] << "\n" << total[1] << "\n";

  // A backward in a thread adds to the same gradients.
  std::thread([&] { parent->forward(torch::ones({1, 3})).sum().backward(); }).join();
  std::cout << parent->fc->bias.grad() << "\n";

  // One device only: data_parallel is the module itself.
  const torch::Device cpu(torch::kCPU);
  const auto x = torch::arange(12, torch::kFloat).view({4, 3}) / 10;
  const auto output =
      torch::nn::parallel::data_parallel(parent.ptr(), x, std::vector<torch::Device>{cpu});
  std::cout << output.sizes() << torch::allclose(output, parent->forward(x)) << "\n";
  std::vector<Policy> replicas{parent,
                               Policy(std::dynamic_pointer_cast<PolicyImpl>(parent->clone()))};
  const auto outputs = torch::nn::parallel::parallel_apply(
      replicas, std::vector<torch::Tensor>{x.slice(0, 0, 2), x.slice(0, 2)});
  std::cout << torch::cat(outputs).allclose(output) << outputs.size() << "\n";

  // Guards of devices and of modes.
  {
    c10::DeviceGuard guard(cpu);
    torch::InferenceMode inference(true);
    std::cout << guard.current_device() << " " << torch::InferenceMode::is_enabled()
              << parent->forward(x).requires_grad() << "\n";
  }
  std::cout << torch::InferenceMode::is_enabled() << parent->forward(x).requires_grad() << "\n";
  return 0;
}
