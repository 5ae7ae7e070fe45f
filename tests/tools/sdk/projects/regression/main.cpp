// A data set of one's own: rows of a table of numbers, read from text, to be predicted.
#include <torch/data.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace torch::indexing;
namespace F = torch::nn::functional;

class TableDataset : public torch::data::datasets::Dataset<TableDataset> {
 public:
  explicit TableDataset(std::istream& text) {
    std::string line;
    std::getline(text, line);  // names of the columns
    while (std::getline(text, line)) {
      std::stringstream cells(line);
      std::vector<float> row;
      for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stof(cell));
      rows_.push_back(
          torch::from_blob(row.data(), {static_cast<int64_t>(row.size())}, torch::kFloat32)
              .clone());
    }
  }
  torch::data::Example<> get(size_t index) override {
    const torch::Tensor& row = rows_.at(index);
    return {row.index({Slice(None, -1)}), row.index({Slice(-1, None)})};
  }
  torch::optional<size_t> size() const override { return rows_.size(); }

 private:
  std::vector<torch::Tensor> rows_;
};

// x, y, x y + sin(3 x)
std::string table(int rows) {
  std::ostringstream text;
  text << "x,y,z\n";
  for (int i = 0; i < rows; ++i) {
    const float x = std::fmod(0.618034f * static_cast<float>(i), 2.f) - 1,
                y = std::fmod(0.4142135f * static_cast<float>(i), 2.f) - 1;
    text << x << ',' << y << ',' << x * y + std::sin(3 * x) << '\n';
  }
  return text.str();
}

int main() {
  torch::manual_seed(0);
  std::istringstream text(table(512));
  auto dataset = TableDataset(text).map(torch::data::transforms::Stack<>());
  const size_t size = *dataset.size();
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(dataset), torch::data::DataLoaderOptions().batch_size(32).workers(2));

  torch::nn::Sequential net(torch::nn::Linear(2, 32), torch::nn::Tanh(),
                            torch::nn::Linear(torch::nn::LinearOptions(32, 32).bias(true)),
                            torch::nn::Functional(torch::tanh), torch::nn::Linear(32, 1));
  torch::optim::AdamW optimizer(net->parameters(),
                                torch::optim::AdamWOptions(1e-2).weight_decay(1e-4));
  torch::optim::StepLR scheduler(optimizer, /*step_size=*/20, /*gamma=*/0.5);

  double mean = 0;
  for (int epoch = 0; epoch < 60; ++epoch) {
    double sum = 0;
    for (auto& batch : *loader) {
      auto prediction = net->forward(batch.data);
      auto loss =
          F::mse_loss(prediction, batch.target, F::MSELossFuncOptions().reduction(torch::kMean));
      optimizer.zero_grad();
      loss.backward();
      torch::nn::utils::clip_grad_norm_(net->parameters(), 1.0);
      optimizer.step();
      sum += loss.item<double>() * static_cast<double>(batch.data.size(0));
    }
    scheduler.step();
    mean = sum / static_cast<double>(size);
  }
  std::cout << "mean squared error " << mean << "\n" << net << std::endl;
  return mean < 5e-3 ? 0 : 1;
}
