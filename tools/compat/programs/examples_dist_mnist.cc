// pytorch's C++ example "dist-mnist", told again: two processes train one model on their halves of
// the images, and average its gradients by a process group after each backward. There the group is
// MPI's and mpirun starts the processes; here they meet in a file, over Gloo, and the program
// starts the second one itself. Only rank 0 prints.
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <iostream>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "tools/compat/programs/examples_data.h"

namespace {

const int kRanks = 2;
const size_t kEpochs = 2;
const size_t kBatches = 30;  // of an epoch and rank
const int64_t kTotalBatch = 64;

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
    x = x.view({-1, 320});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, 0.5, is_training());
    return torch::log_softmax(fc2->forward(x), 1);
  }
  torch::nn::Conv2d conv1, conv2;
  torch::nn::Dropout2d conv2_drop;
  torch::nn::Linear fc1, fc2;
};

void wait_for(const std::vector<c10::intrusive_ptr<c10d::Work>>& works) {
  for (auto& work : works) {
    try {
      work->wait();
    } catch (const std::exception& ex) {
      std::cerr << "Exception received: " << ex.what() << std::endl;
      std::exit(1);
    }
  }
}

int run(int rank, const std::string& folder) {
  torch::manual_seed(0);  // the ranks begin with one model
  auto store = c10::make_intrusive<c10d::FileStore>(folder + "store", kRanks);
  auto options = c10d::ProcessGroupGloo::Options::create();
  options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  c10d::ProcessGroupGloo pg(store, rank, kRanks, options);
  if (rank == 0) std::cout << pg.getBackendName() << ", " << pg.getSize() << " ranks" << std::endl;

  auto train_dataset = torch::data::datasets::MNIST(folder)
                           .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                           .map(torch::data::transforms::Stack<>());
  auto sampler = torch::data::samplers::DistributedRandomSampler(train_dataset.size().value(),
                                                                 kRanks, rank, false);
  auto loader =
      torch::data::make_data_loader(std::move(train_dataset), sampler, kTotalBatch / kRanks);

  auto model = std::make_shared<Model>();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  for (size_t epoch = 1; epoch <= kEpochs; ++epoch) {
    size_t batches = 0, seen = 0;
    for (auto& batch : *loader) {
      auto images = batch.data.to(torch::kF32);
      auto labels = batch.target.squeeze().to(torch::kLong);
      model->zero_grad();
      auto loss = torch::nll_loss(model->forward(images), labels);
      loss.backward();

      std::vector<std::vector<torch::Tensor>> lists;  // an operation writes into its list's tensor
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      for (auto& parameter : model->named_parameters()) {
        lists.push_back({parameter.value().grad()});
        works.push_back(pg.allreduce(lists.back()));
      }
      wait_for(works);
      for (auto& parameter : model->named_parameters()) {
        parameter.value().grad().data() = parameter.value().grad().data().div_(kRanks);
      }
      optimizer.step();
      seen += static_cast<size_t>(images.size(0));
      if (++batches == kBatches) break;
    }
    if (rank == 0) std::cout << "Epoch " << epoch << ": " << seen << " images a rank" << std::endl;
  }

  // The ranks have one model still: what rank 0 has, less what they have on average, is nothing.
  auto weight = model->fc2->weight.detach().clone();
  std::vector<torch::Tensor> mean{weight.clone()};
  pg.allreduce(mean)->wait();
  const bool same = torch::allclose(mean[0] / kRanks, weight);

  if (rank == 0) {
    auto test_dataset =
        torch::data::datasets::MNIST(folder, torch::data::datasets::MNIST::Mode::kTest)
            .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
            .map(torch::data::transforms::Stack<>());
    auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        std::move(test_dataset), 200);
    torch::NoGradGuard no_grad;
    model->eval();
    auto batch = *test_loader->begin();
    auto guess = model->forward(batch.data).argmax(1);
    const auto correct = torch::sum(guess.eq(batch.target.squeeze())).item<int64_t>();
    std::cout << "One model: " << same << ", accuracy above 0.9: " << (correct > 180) << std::endl;
  }
  pg.barrier()->wait();
  return same ? 0 : 1;
}

}  // namespace

int main() {
  std::cout << std::boolalpha;
  const std::string folder = example_data::scratch_folder("examples_dist_mnist");
  example_data::write_mnist(folder);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run(1, folder));
  int result = run(0, folder);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) result = 1;
  std::system(("rm -r '" + folder + "'").c_str());
  return result;
}
