// The subject of PyTorch's C++ example "dist-mnist". Every process trains the same network on its
// part of the images. Gradients are averaged after each backward pass: over MPI, or over Gloo where
// LibTorch was built without MPI.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupMPI.hpp>
#include <vector>

#include "tools/compat/programs/examples_data.h"

namespace {

const int64_t kBatchSize = 64;
const size_t kEpochs = 2;
const size_t kBatches = 20;  // of an epoch
const int64_t kTestBatchSize = 200;

struct Model : torch::nn::Module {
  Model()
      : conv1(torch::nn::Conv2dOptions(1, 10, 5)),
        conv2(torch::nn::Conv2dOptions(10, 20, 5)),
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
    x = torch::relu(fc1->forward(x.view({-1, 320})));
    x = torch::dropout(x, 0.5, is_training());
    return torch::log_softmax(fc2->forward(x), 1);
  }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1, fc2;
};

#ifdef USE_C10D_GLOO
auto meet() {
  const char* file = std::getenv("MEETING_FILE");
  const char* rank = std::getenv("RANK");
  const char* size = std::getenv("WORLD_SIZE");
  const std::string path = file ? file : example_data::scratch_folder("dist_mnist_store") + "store";
  const int ranks = size ? std::atoi(size) : 1;
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1"));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(
      c10::make_intrusive<c10d::FileStore>(path, ranks), rank ? std::atoi(rank) : 0, ranks,
      options);
}
#else
auto meet() { return c10d::ProcessGroupMPI::createProcessGroupMPI(); }
#endif

template <class Group>
void wait_work(const Group& pg, const std::vector<c10::intrusive_ptr<c10d::Work>>& works) {
  for (const auto& work : works) {
    try {
      work->wait();
    } catch (const std::exception& ex) {
      std::cerr << "Exception received: " << ex.what() << std::endl;
      pg->abort();
    }
  }
}

}  // namespace

int main() {
  auto pg = meet();
  const auto numranks = pg->getSize();
  const auto rank = pg->getRank();

  const std::string root = example_data::scratch_folder("examples_dist_mnist");
  example_data::write_mnist(root);

  auto train_dataset = torch::data::datasets::MNIST(root)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  auto sampler = torch::data::samplers::DistributedRandomSampler(
      train_dataset.size().value(), numranks, rank, /*allow_duplicates=*/false);
  auto loader = torch::data::make_data_loader(std::move(train_dataset), sampler, kBatchSize);

  torch::manual_seed(0);  // the same parameters everywhere
  auto model = std::make_shared<Model>();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));

  for (size_t epoch = 1; epoch <= kEpochs; ++epoch) {
    size_t index = 0, correct = 0, seen = 0;
    for (auto& batch : *loader) {
      auto output = model->forward(batch.data);
      auto loss = torch::nll_loss(output, batch.target);
      optimizer.zero_grad();
      loss.backward();
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      for (auto& param : model->named_parameters()) {
        std::vector<torch::Tensor> tmp = {param.value().grad().data()};
        works.push_back(pg->allreduce(tmp));
      }
      wait_work(pg, works);
      for (auto& param : model->named_parameters())
        param.value().grad().data() = param.value().grad().data() / numranks;
      optimizer.step();
      correct += output.argmax(1).eq(batch.target).sum().item<int64_t>();
      seen += batch.target.size(0);
      if (++index == kBatches) break;
    }
    std::printf("Epoch %zu: rank %d of %d has seen %zu images, more right than by chance: %s\n",
                epoch, static_cast<int>(rank), static_cast<int>(numranks), seen,
                5 * correct > seen ? "yes" : "no");
  }

  torch::NoGradGuard no_grad;
  double sum = 0;
  for (const auto& p : model->parameters())
    sum += p.to(torch::kDouble).square().sum().item<double>();
  std::vector<torch::Tensor> least = {torch::tensor({sum}, torch::kDouble)},
                             most = {least[0].clone()};
  c10d::AllreduceOptions options;
  options.reduceOp = c10d::ReduceOp::MIN;
  pg->allreduce(least, options)->wait();
  options.reduceOp = c10d::ReduceOp::MAX;
  pg->allreduce(most, options)->wait();
  std::printf("The same parameters on all ranks: %s\n", least[0].equal(most[0]) ? "yes" : "no");

  if (rank == 0) {
    model->eval();
    auto test_loader = torch::data::make_data_loader(
        torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
            .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
            .map(torch::data::transforms::Stack<>()),
        kTestBatchSize);
    auto batch = *test_loader->begin();
    auto output = model->forward(batch.data);
    const double loss = torch::nll_loss(output, batch.target).item<float>();
    const auto right = output.argmax(1).eq(batch.target).sum().item<int64_t>();
    std::printf("Test: %d images, loss below 1: %s, accuracy above 0.9: %s\n",
                static_cast<int>(batch.target.size(0)), loss < 1 ? "yes" : "no",
                10 * right > 9 * batch.target.size(0) ? "yes" : "no");
  }
  std::system(("rm -r '" + root + "'").c_str());
}
