// A classifier of words by their letters. Styles: a vocabulary in std::map, words to padded
// tensors, Embedding with a padding_idx, Conv1d over letters, pooling over time, CrossEntropyLoss
// with weights, a batch by hand, a confusion matrix by scatter, tables by iomanip, free functions.
#include <torch/torch.h>

#include <algorithm>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace torch;

class Vocabulary {
 public:
  explicit Vocabulary(const std::string& letters) {
    for (const char c : letters) index_.emplace(c, static_cast<int64_t>(index_.size()) + 1);
  }
  int64_t operator[](char c) const {
    const auto found = index_.find(c);
    return found == index_.end() ? 0 : found->second;
  }
  int64_t size() const { return static_cast<int64_t>(index_.size()) + 1; }

 private:
  std::map<char, int64_t> index_;
};

struct CharCNNImpl : nn::Module {
  CharCNNImpl(int64_t letters, int64_t classes, const std::vector<int64_t>& kernels = {2, 3}) {
    embedding = register_module("embedding",
                                nn::Embedding(nn::EmbeddingOptions(letters, 6).padding_idx(0)));
    for (const auto kernel : kernels) {
      convolutions->push_back(nn::Conv1d(nn::Conv1dOptions(6, 5, kernel).padding(kernel / 2)));
    }
    register_module("convolutions", convolutions);
    classifier =
        register_module("classifier", nn::Sequential(nn::Linear(5 * kernels.size(), 8), nn::ReLU(),
                                                     nn::Dropout(0.5), nn::Linear(8, classes)));
  }

  Tensor forward(const Tensor& words) {
    const auto x = embedding->forward(words).transpose(1, 2);
    std::vector<Tensor> pooled;
    for (auto& module : *convolutions) {
      const auto y = torch::relu(module->as<nn::Conv1d>()->forward(x));
      pooled.push_back(std::get<0>(y.max(2)));
    }
    return classifier->forward(torch::cat(pooled, 1));
  }

  nn::Embedding embedding{nullptr};
  nn::ModuleList convolutions;
  nn::Sequential classifier{nullptr};
};
TORCH_MODULE(CharCNN);

Tensor encode(const std::vector<std::string>& words, const Vocabulary& vocabulary, size_t length) {
  auto batch = torch::zeros({static_cast<long>(words.size()), static_cast<long>(length)},
                            torch::dtype(torch::kInt64));
  auto accessor = batch.accessor<int64_t, 2>();
  for (size_t i = 0; i < words.size(); ++i) {
    for (size_t j = 0; j < std::min(length, words[i].size()); ++j)
      accessor[i][j] = vocabulary[words[i][j]];
  }
  return batch;
}

// How often each class is taken for each.
Tensor confusion(const Tensor& predicted, const Tensor& expected, int64_t classes) {
  return torch::zeros({classes * classes}, kLong)
      .scatter_add_(0, expected * classes + predicted, torch::ones_like(expected))
      .view({classes, classes});
}

int main() {
  const Vocabulary vocabulary("abcdefghijklmnopqrstuvwxyz");
  const std::vector<std::string> languages{"english", "german", "french"};
  const std::unordered_map<std::string, std::vector<std::string>> words{
      {"english", {"the", "with", "thing", "whether"}},
      {"german", {"zwischen", "schatz", "jetzt", "zug"}},
      {"french", {"eau", "beau", "jour", "oiseau"}}};
  std::vector<std::string> all;
  std::vector<int64_t> labels;
  for (size_t i = 0; i < languages.size(); ++i) {
    for (const auto& word : words.at(languages[i])) all.push_back(word), labels.push_back(i);
  }
  const auto inputs = encode(all, vocabulary, 8);
  const auto targets = torch::tensor(labels, torch::kLong);
  std::cout << vocabulary.size() << " letters\n"
            << inputs.slice(0, 0, 3) << "\n"
            << targets.unsqueeze(0) << "\n";

  CharCNN model(vocabulary.size(), 3);
  {
    NoGradGuard no_grad;
    for (auto& p : model->named_parameters()) {
      p->copy_(torch::arange(p->numel(), torch::kDouble)
                   .mul(0.77)
                   .add(static_cast<double>(p.key().size()))
                   .sin()
                   .mul(0.5)
                   .view_as(*p));
      if (p.key() == "embedding.weight") (*p)[0].zero_();
    }
  }
  std::cout << model << "\n";
  model->classifier[2]->as<nn::Dropout>()->options.p(0);

  nn::CrossEntropyLoss criterion(
      nn::CrossEntropyLossOptions().weight(torch::tensor({1.0, 1.0, 1.5})).label_smoothing(0.1));
  optim::SGD optimizer(model->parameters(), optim::SGDOptions(0.2).momentum(0.8));
  std::stringstream table;
  for (int epoch = 0; epoch < 6; ++epoch) {
    model->train();
    double total = 0;
    for (int64_t begin = 0; begin < inputs.size(0); begin += 4) {
      // Every third word, so that a batch has all languages.
      const auto rows = torch::arange(4).mul(3).add(begin / 4);
      const auto loss = criterion(model(inputs.index_select(0, rows)), targets.index({rows}));
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
    }
    table << std::setw(3) << epoch << " |" << std::setw(8) << std::fixed << std::setprecision(3)
          << total / 3 << "\n";
  }
  std::cout << table.str();

  model->eval();
  NoGradGuard no_grad;
  const auto scores = torch::softmax(model(inputs), 1);
  const auto [best, predicted] = scores.max(1);
  std::cout << confusion(predicted, targets, 3) << "\n"
            << best.gt(0.4).sum().item<int64_t>() << " sure\n";
  for (int64_t i = 0; i < predicted.size(0); i += 4) {
    std::cout << std::left << std::setw(10) << all[i] << std::right << std::setw(8)
              << languages[predicted[i].item<int64_t>()] << "\n";
  }
  std::cout << "padding stays zero: " << model->embedding->weight[0].eq(0).all().item<bool>()
            << "\n";
  std::cout << nn::functional::cross_entropy(
                   scores.slice(0, 0, 2), targets.slice(0, 0, 2),
                   nn::functional::CrossEntropyFuncOptions().reduction(kSum))
                   .gt(0)
                   .item<bool>()
            << " " << model(encode({"unknown!"}, vocabulary, 8)).sizes() << "\n";
  return 0;
}
