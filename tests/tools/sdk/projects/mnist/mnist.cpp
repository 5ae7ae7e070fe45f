// Images in the four files of MNIST, a small network, a few hundred batches.
#include <torch/torch.h>

#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>

struct Net : torch::nn::Module {
  Net() {
    conv1 =
        register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 8, 5).stride(2)));
    conv2 = register_module("conv2", torch::nn::Conv2d(8, 16, 3));
    drop = register_module("drop", torch::nn::Dropout2d(0.1));
    fc = register_module("fc", torch::nn::Linear(16 * 5 * 5, 10));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(conv1->forward(x));
    x = torch::relu(torch::max_pool2d(drop(conv2->forward(x)), 2));
    x = fc->forward(x.view({x.size(0), -1}));
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Dropout2d drop{nullptr};
  torch::nn::Linear fc{nullptr};
};

template <typename DataLoader>
void train(Net& model, torch::Device device, DataLoader& data_loader,
           torch::optim::Optimizer& optimizer, size_t batches) {
  model.train();
  size_t batch_idx = 0;
  for (auto& batch : data_loader) {
    if (batch_idx++ == batches) break;
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    if (batch_idx % 50 == 0)
      std::printf("[%5zu] loss: %.4f\n", batch_idx, loss.template item<float>());
  }
}

template <typename DataLoader>
double test(Net& model, torch::Device device, DataLoader& data_loader, size_t batches) {
  torch::NoGradGuard no_grad;
  model.eval();
  size_t seen = 0;
  int64_t correct = 0;
  for (const auto& batch : data_loader) {
    if (seen / 500 == batches) break;
    auto output = model.forward(batch.data.to(device));
    correct += output.argmax(1).eq(batch.target.to(device)).sum().template item<int64_t>();
    seen += batch.data.size(0);
  }
  return static_cast<double>(correct) / static_cast<double>(seen);
}

int main(int argc, const char* argv[]) {
  const std::string folder = argc > 1 ? argv[1] : "./data";
  torch::manual_seed(1);
  torch::DeviceType device_type = torch::cuda::is_available() ? torch::kCUDA : torch::kCPU;
  torch::Device device(device_type);

  Net model;
  model.to(device);
  auto train_dataset = torch::data::datasets::MNIST(folder)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), 64);
  auto test_dataset =
      torch::data::datasets::MNIST(folder, torch::data::datasets::MNIST::Mode::kTest)
          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
          .map(torch::data::transforms::Stack<>());
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), 500);

  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.02).momentum(0.9));
  train(model, device, *train_loader, optimizer, 200);
  const double accuracy = test(model, device, *test_loader, 4);
  std::cout << "accuracy " << accuracy << std::endl;
  return accuracy > 0.65 ? 0 : 1;
}
