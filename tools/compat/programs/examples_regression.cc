// pytorch's C++ example "regression", told again: a polynomial of degree four is found from samples
// of it by one Linear layer over the powers of x.
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "tools/compat/programs/examples_data.h"

#define DEGREE 4

namespace {

// One column each for x, x^2, ..., x^DEGREE.
torch::Tensor powers(torch::Tensor x) {
  x = x.unsqueeze(1);
  std::vector<torch::Tensor> columns;
  for (int64_t i = 1; i <= DEGREE; ++i) columns.push_back(x.pow(i));
  return torch::cat(columns, 1);
}

torch::Tensor polynomial(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
  return x.mm(weight) + bias.item();
}

std::string describe(torch::Tensor weight, torch::Tensor bias) {
  std::ostringstream text;
  text << "y =";
  for (int64_t i = weight.size(0) - 1; i >= 0; --i) {
    const float w = std::round(weight[i].item<float>() * 10) / 10;
    text << (w < 0 ? " - " : " + ") << std::abs(w) << " x^" << i + 1;
  }
  text << " + " << std::round(bias[0].item<float>() * 10) / 10;
  return text.str();
}

std::pair<torch::Tensor, torch::Tensor> batch(example_data::Numbers& numbers, torch::Tensor weight,
                                              torch::Tensor bias, int64_t size = 32) {
  auto values = numbers.between(-1.5, 1.5, static_cast<size_t>(size));
  auto x = powers(torch::from_blob(values.data(), {size}).clone());
  auto y = polynomial(x, weight, bias);
  return std::make_pair(x, y);
}

}  // namespace

int main() {
  torch::manual_seed(3);
  example_data::Numbers numbers(7);
  auto target_weight = torch::tensor({2.4, -1.3, 0.8, 3.1}).to(torch::kFloat).view({DEGREE, 1});
  auto target_bias = torch::full({1}, 1.7);

  auto fc = torch::nn::Linear(target_weight.size(0), 1);
  torch::optim::SGD optimizer(fc->parameters(), .1);

  float loss = 0;
  int64_t batches = 0;
  while (++batches < 20000) {
    torch::Tensor x, y;
    std::tie(x, y) = batch(numbers, target_weight, target_bias);
    optimizer.zero_grad();
    auto output = torch::smooth_l1_loss(fc(x), y);
    loss = output.item<float>();
    output.backward();
    optimizer.step();
    if (loss < 1e-6f) break;
  }

  std::cout << "Found: " << (loss < 1e-6f ? "yes" : "no") << std::endl;
  std::cout << "Learned: " << describe(fc->weight.view({-1}), fc->bias) << std::endl;
  std::cout << "Actual:  " << describe(target_weight.view({-1}), target_bias) << std::endl;
  return 0;
}
