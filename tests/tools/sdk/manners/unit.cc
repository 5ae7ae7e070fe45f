// A user's unit: a bit of everything that templates of the headers are made of.
#include <ramet.h>

#include <iostream>
#include <memory>
#include <utility>
#include <vector>

struct NetImpl : ramet::nn::Module {
  explicit NetImpl(int64_t width)
      : first(register_module("first",
                              ramet::nn::Conv2d(ramet::nn::Conv2dOptions(1, width, 3).padding(1)))),
        norm(register_module("norm", ramet::nn::BatchNorm2d(width))),
        last(register_module("last", ramet::nn::Linear(width, 3))) {}
  ramet::Tensor forward(const ramet::Tensor& x) {
    return last(ramet::relu(norm(first(x))).mean(ramet::IntArrayRef{2, 3}));
  }
  ramet::nn::Conv2d first;
  ramet::nn::BatchNorm2d norm;
  ramet::nn::Linear last;
};
RAMET_MODULE(Net);

struct Squares : ramet::data::Dataset<Squares> {
  ramet::data::Example<> get(size_t index) override {
    return {ramet::full({1, 4, 4}, static_cast<float>(index)),
            ramet::tensor(static_cast<int64_t>(index % 3))};
  }
  ramet::optional<size_t> size() const override { return 9; }
};

struct Cube : ramet::autograd::Function<Cube> {
  static ramet::Tensor forward(ramet::autograd::AutogradContext* ctx, const ramet::Tensor& x) {
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static ramet::autograd::variable_list backward(ramet::autograd::AutogradContext* ctx,
                                                 ramet::autograd::variable_list grads) {
    const ramet::Tensor x = ctx->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

int main() {
  ramet::manual_seed(3);
  Net net(4);
  ramet::optim::AdamW adam(net->parameters(), ramet::optim::AdamWOptions(1e-2).weight_decay(0.1));
  auto loader = ramet::data::make_data_loader(Squares().map(ramet::data::transforms::Stack<>()),
                                              ramet::data::DataLoaderOptions().batch_size(3));
  for (auto& batch : *loader) {
    adam.zero_grad();
    ramet::Tensor loss = ramet::nn::functional::cross_entropy(net(batch.data), batch.target);
    loss.backward();
    adam.step();
  }
  ramet::nn::Sequential chain(ramet::nn::Linear(2, 2), ramet::nn::Functional(ramet::tanh));
  ramet::Tensor x = ramet::ones({2, 2}, ramet::requires_grad());
  Cube::apply(chain->forward(x)).sum().backward();
  try {
    ramet::ones({2}).view({3});
    return 1;
  } catch (const ramet::Error& error) { std::cout << error.what() << '\n'; }
  const auto sorted = std::get<0>(ramet::sort(x.index({ramet::indexing::Slice(), 0})));
  std::cout << sorted << chain << x.grad().accessor<float, 2>()[0][0] << '\n';
  return 0;
}
