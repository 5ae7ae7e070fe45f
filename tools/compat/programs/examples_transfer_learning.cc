// pytorch's C++ example "transfer-learning", told again: a network that has been trained before and
// stays as it is gives the features, and one new Linear layer learns to tell cats from dogs by
// them. There the network is a TorchScript file; here one that the program saves and loads itself.
#include <dirent.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "tools/compat/programs/examples_data.h"

namespace {

const int kSide = 20;

torch::Tensor read_data(const std::string& location) {
  int side = 0;
  std::vector<uint8_t> bytes = example_data::read_ppm(location, side);
  auto image = torch::from_blob(bytes.data(), {side, side, 3}, torch::kByte);
  return image.permute({2, 0, 1}).clone();
}

torch::Tensor read_label(int label) { return torch::full({1}, label).clone(); }

std::vector<torch::Tensor> process_images(const std::vector<std::string>& images) {
  std::vector<torch::Tensor> states;
  for (auto it = images.begin(); it != images.end(); ++it) states.push_back(read_data(*it));
  return states;
}

std::vector<torch::Tensor> process_labels(const std::vector<int>& list) {
  std::vector<torch::Tensor> labels;
  for (int label : list) labels.push_back(read_label(label));
  return labels;
}

// Every .ppm of each folder; the folder's place in the list is the label.
std::pair<std::vector<std::string>, std::vector<int>> load_folders(
    const std::vector<std::string>& folders) {
  std::vector<std::string> images;
  std::vector<int> labels;
  int label = 0;
  for (auto const& folder : folders) {
    std::vector<std::string> names;
    DIR* directory = opendir(folder.c_str());
    if (directory == nullptr) {
      std::cout << "Could not open " << folder << std::endl;
    } else {
      while (const dirent* entry = readdir(directory)) {
        const std::string name = entry->d_name;
        if (name.length() > 4 && name.substr(name.length() - 3) == "ppm") names.push_back(name);
      }
      closedir(directory);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      images.push_back(folder + "/" + name);
      labels.push_back(label);
    }
    ++label;
  }
  return std::make_pair(images, labels);
}

class CustomDataset : public torch::data::Dataset<CustomDataset> {
 public:
  CustomDataset(const std::vector<std::string>& images, const std::vector<int>& labels)
      : states(process_images(images)), labels(process_labels(labels)) {}
  torch::data::Example<> get(size_t index) override {
    torch::Tensor image = states.at(index), label = labels.at(index);
    return {image.clone(), label.clone()};
  }
  torch::optional<size_t> size() const override { return states.size(); }

 private:
  std::vector<torch::Tensor> states, labels;
};

torch::nn::Sequential make_backbone() {
  return torch::nn::Sequential(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 8, 5).stride(2)), torch::nn::ReLU(),
      torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2)),
      torch::nn::Conv2d(torch::nn::Conv2dOptions(8, 16, 3).padding(1)), torch::nn::ReLU(),
      torch::nn::AdaptiveAvgPool2d(torch::nn::AdaptiveAvgPool2dOptions({4, 4})));
}

template <typename Dataloader>
float test(torch::nn::Sequential net, torch::nn::Linear lin, Dataloader& loader, size_t size) {
  net->eval();
  torch::NoGradGuard no_grad;
  float right = 0;
  for (const auto& batch : *loader) {
    auto targets = batch.target.squeeze().to(torch::kInt64);
    auto output = net->forward(batch.data.to(torch::kF32) / 255);
    output = lin(output.view({output.size(0), -1}));
    right += output.argmax(1).eq(targets).sum().template item<float>();
  }
  return right / size;
}

template <typename Dataloader>
void train(torch::nn::Sequential net, torch::nn::Linear lin, Dataloader& loader,
           torch::optim::Optimizer& optimizer, size_t size, const std::string& folder) {
  float best = 0;
  bool finite = true, saved = false;
  for (int epoch = 0; epoch < 25; ++epoch) {
    for (auto& batch : *loader) {
      auto data = batch.data.to(torch::kF32) / 255;
      auto target = batch.target.squeeze().to(torch::kInt64);
      optimizer.zero_grad();
      auto output = net->forward(data);
      output = lin(output.view({output.size(0), -1}));
      auto loss = torch::nll_loss(torch::log_softmax(output, 1), target);
      loss.backward();
      optimizer.step();
      finite = finite && std::isfinite(loss.template item<float>());
    }
    const float accuracy = test(net, lin, loader, size);
    if (accuracy > best) {
      best = accuracy;
      torch::save(lin, folder + "model_linear.pt");
      saved = true;
    }
  }
  std::cout << "Losses finite: " << finite << ", saved: " << saved
            << ", accuracy above 0.9: " << (best > 0.9f) << std::endl;
}

}  // namespace

int main() {
  torch::manual_seed(0);
  std::cout << std::boolalpha;
  const std::string folder = example_data::scratch_folder("examples_transfer");
  std::vector<std::string> folders;
  for (int label = 0; label < 2; ++label) {
    folders.push_back(folder + (label == 0 ? "cats" : "dogs"));
    ::mkdir(folders.back().c_str(), 0700);
    for (int i = 0; i < 12; ++i) {
      example_data::write_ppm(folders.back() + "/" + std::to_string(10 + i) + ".ppm", 5 * label + 1,
                              kSide, static_cast<uint32_t>(100 * label + i));
    }
  }
  torch::save(make_backbone(), folder + "backbone.pt");

  const auto found = load_folders(folders);
  std::cout << "Images: " << found.first.size() << ", labels: " << found.second.size() << std::endl;
  auto dataset = CustomDataset(found.first, found.second).map(torch::data::transforms::Stack<>());
  const size_t size = dataset.size().value();

  torch::nn::Sequential backbone = make_backbone();
  torch::load(backbone, folder + "backbone.pt");
  for (auto& parameter : backbone->parameters()) parameter.set_requires_grad(false);
  const auto before = backbone->parameters()[0].clone();

  torch::nn::Linear lin(16 * 4 * 4, 2);
  torch::optim::Adam optimizer(lin->parameters(), torch::optim::AdamOptions(1e-2));
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), /*batch_size=*/4);
  train(backbone, lin, loader, optimizer, size, folder);

  torch::nn::Linear again(16 * 4 * 4, 2);
  torch::load(again, folder + "model_linear.pt");
  std::cout << "Backbone unchanged: " << torch::equal(before, backbone->parameters()[0])
            << ", loaded: " << again->weight.sizes() << " " << again << std::endl;
  std::system(("rm -r '" + folder + "'").c_str());
  return 0;
}
