// pytorch's C++ example "custom-dataset", told again: pictures that a text file lists (path, label,
// which set) feed a network of the kind of AlexNet, written as a Sequential with functions in it.
// Pictures are PPM files that the program writes, and everything is small.
#include <torch/torch.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tools/compat/programs/examples_data.h"

namespace {

struct Options {
  int image_size = 30;
  size_t train_batch_size = 10;
  size_t test_batch_size = 20;
  size_t iterations = 12;
  size_t log_interval = 4;
  std::string folder;  // ends in '/'
  torch::DeviceType device = torch::kCPU;
};
Options options;

using Data = std::vector<std::pair<std::string, long>>;

class CustomDataset : public torch::data::datasets::Dataset<CustomDataset> {
  using Example = torch::data::Example<>;
  Data data;

 public:
  CustomDataset(const Data& data) : data(data) {}

  Example get(size_t index) override {
    int side = 0;
    std::vector<uint8_t> bytes = example_data::read_ppm(options.folder + data[index].first, side);
    assert(side == options.image_size);
    auto pixels = torch::from_blob(bytes.data(), {side, side, 3}, torch::kUInt8);
    auto image = pixels.permute({2, 0, 1}).to(torch::kFloat).div_(255);
    auto label = torch::from_blob(&data[index].second, {1}, torch::kLong);
    return {image, label};
  }
  torch::optional<size_t> size() const override { return data.size(); }
};

void write_pictures() {
  std::ofstream info(options.folder + "info.txt");
  for (int i = 0; i < 60; ++i) {
    const std::string name = "picture" + std::to_string(i) + ".ppm";
    const int label = i % 10;
    example_data::write_ppm(options.folder + name, label, options.image_size,
                            static_cast<uint32_t>(i));
    info << name << " " << label << " " << (i < 40 ? "train" : "test") << "\n";
  }
}

std::pair<Data, Data> read_info() {
  Data train, test;
  std::ifstream stream(options.folder + "info.txt");
  assert(stream.is_open());
  std::string path, set;
  long label = 0;
  while (stream >> path >> label >> set) {
    if (set == "train") {
      train.push_back(std::make_pair(path, label));
    } else {
      test.push_back(std::make_pair(path, label));
    }
  }
  return std::make_pair(train, test);
}

struct NetworkImpl : torch::nn::SequentialImpl {
  NetworkImpl() {
    using namespace torch::nn;
    auto stride = torch::ExpandingArray<2>({2, 2});
    torch::ExpandingArray<2> shape({-1, 24 * 2 * 2});
    push_back(Conv2d(Conv2dOptions(3, 12, 7).stride(2).padding(2)));
    push_back(Functional(torch::relu));
    push_back(Functional(torch::max_pool2d, 3, stride, 0, 1, false));
    push_back(Conv2d(Conv2dOptions(12, 24, 5).padding(2)));
    push_back(Functional(torch::relu));
    push_back(Conv2d(Conv2dOptions(24, 24, 3).padding(1)));
    push_back(Functional(torch::relu));
    push_back(Functional(torch::max_pool2d, 3, stride, 0, 1, false));
    push_back(Functional(torch::reshape, shape));
    push_back(Dropout(0.1));
    push_back(Linear(24 * 2 * 2, 64));
    push_back(Functional(torch::relu));
    push_back(Linear(64, 10));
    push_back(Functional(torch::log_softmax, 1, torch::nullopt));
  }
};
TORCH_MODULE(Network);

template <typename DataLoader>
void train(Network& network, DataLoader& loader, torch::optim::Optimizer& optimizer, size_t epoch,
           size_t data_size) {
  network->train();
  size_t index = 0;
  float loss_sum = 0, right = 0;
  for (auto& batch : loader) {
    auto data = batch.data.to(options.device);
    auto targets = batch.target.to(options.device).view({-1});
    auto output = network->forward(data);
    auto loss = torch::nll_loss(output, targets);
    assert(!std::isnan(loss.template item<float>()));
    auto acc = output.argmax(1).eq(targets).sum();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    loss_sum += loss.template item<float>();
    right += acc.template item<float>();
    if (index++ % options.log_interval == 0) {
      auto end = std::min(data_size, index * options.train_batch_size);
      std::cout << "Train epoch " << epoch << ": " << end << "/" << data_size
                << ", finite: " << (loss_sum + right < 1e6f) << std::endl;
    }
  }
}

template <typename DataLoader> float test(Network& network, DataLoader& loader, size_t data_size) {
  network->eval();
  torch::NoGradGuard no_grad;
  float right = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(options.device);
    auto targets = batch.target.to(options.device).view({-1});
    auto output = network->forward(data);
    assert(!std::isnan(torch::nll_loss(output, targets).template item<float>()));
    right += output.argmax(1).eq(targets).sum().template item<float>();
  }
  return right / data_size;
}

}  // namespace

int main() {
  torch::manual_seed(1);
  std::cout << std::boolalpha;
  if (torch::cuda::is_available()) options.device = torch::kCUDA;
  options.folder = example_data::scratch_folder("examples_custom_dataset");
  write_pictures();
  auto data = read_info();

  auto train_set = CustomDataset(data.first).map(torch::data::transforms::Stack<>());
  auto train_size = train_set.size().value();
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(train_set), options.train_batch_size);
  auto test_set = CustomDataset(data.second).map(torch::data::transforms::Stack<>());
  auto test_size = test_set.size().value();
  auto test_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      std::move(test_set), options.test_batch_size);

  Network network;
  network->to(options.device);
  std::cout << network << std::endl;
  torch::optim::SGD optimizer(network->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  float accuracy = 0;
  for (size_t i = 0; i < options.iterations; ++i) {
    train(network, *train_loader, optimizer, i + 1, train_size);
    accuracy = test(network, *test_loader, test_size);
  }
  std::cout << "Tested " << test_size << " pictures, accuracy above 0.8: " << (accuracy > 0.8f)
            << std::endl;
  std::system(("rm -r '" + options.folder + "'").c_str());
  return 0;
}
