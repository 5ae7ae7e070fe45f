// pytorch's C++ example "mnist", told again: a small convolutional network is trained on images in
// IDX files and tested after every epoch. Batches are few: the files hold generated bars.
#include <torch/torch.h>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "tools/compat/programs/examples_data.h"

namespace {

const int64_t kTrainBatchSize = 64;
const int64_t kTestBatchSize = 200;
const size_t kEpochs = 4;
const size_t kTrainBatches = 20;  // of an epoch
const size_t kTestBatches = 1;
const size_t kLogEvery = 5;

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 10, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(10, 20, /*kernel_size=*/5)),
        fc1(320, 50),
        fc2(50, 10) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("conv2_drop", conv2_drop);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(conv1->forward(x), 2));
    x = torch::relu(torch::max_pool2d(conv2_drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 320});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.5, /*train=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1;
  torch::nn::Linear fc2;
};

template <typename DataLoader>
void train(size_t epoch, Net& model, torch::Device device, DataLoader& loader,
           torch::optim::Optimizer& optimizer, size_t dataset_size) {
  model.train();
  size_t index = 0;
  for (auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    AT_ASSERT(!std::isnan(loss.template item<float>()));
    loss.backward();
    optimizer.step();
    if (++index % kLogEvery == 0) {
      std::printf("Train epoch %zu [%5zu/%5zu]\n", epoch,
                  index * static_cast<size_t>(batch.data.size(0)), dataset_size);
    }
    if (index == kTrainBatches) break;
  }
}

template <typename DataLoader> double test(Net& model, torch::Device device, DataLoader& loader) {
  torch::NoGradGuard no_grad;
  model.eval();
  double loss = 0;
  int64_t correct = 0, seen = 0;
  size_t index = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    loss += torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum)
                .template item<float>();
    auto guess = output.argmax(1);
    correct += guess.eq(targets).sum().template item<int64_t>();
    seen += targets.size(0);
    if (++index == kTestBatches) break;
  }
  std::printf("Test: %d images, the loss is a number: %s\n", static_cast<int>(seen),
              std::isfinite(loss / static_cast<double>(seen)) ? "yes" : "no");
  return static_cast<double>(correct) / static_cast<double>(seen);
}

}  // namespace

int main() {
  torch::manual_seed(1);
  const std::string root = example_data::scratch_folder("examples_mnist");
  example_data::write_mnist(root);

  torch::DeviceType device_type = torch::kCPU;
  if (torch::cuda::is_available()) device_type = torch::kCUDA;
  torch::Device device(device_type);

  Net model;
  model.to(device);

  auto train_dataset = torch::data::datasets::MNIST(root)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  const size_t train_size = train_dataset.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_dataset), kTrainBatchSize);

  auto test_dataset = torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
                          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                          .map(torch::data::transforms::Stack<>());
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), kTestBatchSize);

  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  double accuracy = 0;
  for (size_t epoch = 1; epoch <= kEpochs; ++epoch) {
    train(epoch, model, device, *train_loader, optimizer, train_size);
    accuracy = test(model, device, *test_loader);
  }
  std::printf("Accuracy above 0.9: %s\n", accuracy > 0.9 ? "yes" : "no");
  std::system(("rm -r '" + root + "'").c_str());
}
