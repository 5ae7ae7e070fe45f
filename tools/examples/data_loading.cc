// A dataset of one's own, shuffled, transformed and loaded in batches by two workers.
#include <iostream>

#include "ramet.h"

namespace torch = ramet;

// Points on the plane and whether they lie inside the unit circle.
struct Circle : torch::data::datasets::Dataset<Circle> {
  torch::data::Example<> get(size_t index) override {
    const float x = static_cast<float>(index % 32) / 16 - 1,
                y = static_cast<float>(index / 32) / 16 - 1;
    return {torch::tensor({x, y}), torch::tensor(x * x + y * y < 1 ? 1.f : 0.f)};
  }
  torch::optional<size_t> size() const override { return 1024; }
};

int main() {
  torch::manual_seed(1);
  using Example = torch::data::Example<>;
  const auto noisy = [](Example e) { return Example(e.data + torch::randn({2}) * 0.01, e.target); };
  auto data = Circle()
                  .map(torch::data::transforms::Lambda<Example>(noisy))
                  .map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(data), torch::data::DataLoaderOptions(64).workers(2));

  torch::nn::Sequential net(torch::nn::Linear(2, 32), torch::nn::ReLU(), torch::nn::Linear(32, 1));
  torch::optim::AdamW adam(net->parameters(), torch::optim::AdamWOptions(0.05));
  double right = 0;
  for (int epoch = 1; epoch <= 12; ++epoch) {
    right = 0;
    for (auto& batch : *loader) {
      adam.zero_grad();
      const torch::Tensor z = net->forward(batch.data).squeeze(1);
      torch::nn::functional::binary_cross_entropy_with_logits(z, batch.target).backward();
      adam.step();
      right += ((z > 0) == (batch.target > 0.5)).sum().item<double>();
    }
    if (epoch % 4 == 0) std::cout << "epoch " << epoch << ": " << right / 1024 << " right\n";
  }
  return right > 0.93 * 1024 ? 0 : 1;
}
