// Nets of containers. Styles: a subclass of SequentialImpl, a Sequential in a Sequential,
// ModuleList, ModuleDict, AnyModule, named children. Functional with functions and lambdas. A
// residual block with an optional shortcut, a subclass of LinearImpl, a layer that is replaced.
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>

using torch::nn::AnyModule;
using torch::nn::Functional;
using torch::nn::ModuleDict;
using torch::nn::ModuleList;
using torch::nn::Sequential;

// 3 x 3 convolution, norm, ReLU.
class ConvBlockImpl : public torch::nn::SequentialImpl {
 public:
  ConvBlockImpl(int64_t in, int64_t out, int64_t stride = 1) {
    using namespace torch::nn;
    push_back(Conv2d(Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false)));
    push_back(BatchNorm2d(out));
    push_back("act", ReLU(ReLUOptions().inplace(true)));
  }
  torch::Tensor forward(torch::Tensor x) { return torch::nn::SequentialImpl::forward(x); }
};
TORCH_MODULE(ConvBlock);

struct ResidualImpl : torch::nn::Module {
  ResidualImpl(int64_t in, int64_t out, int64_t stride)
      : body(ConvBlock(in, out, stride),
             torch::nn::Conv2d(torch::nn::Conv2dOptions(out, out, 1).bias(false)),
             torch::nn::BatchNorm2d(out)) {
    register_module("body", body);
    if (in != out || stride != 1) {
      shortcut = Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride)));
      register_module("shortcut", shortcut);
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const auto skip = shortcut.is_empty() ? x : shortcut->forward(x);
    return torch::relu(body->forward(x) + skip);
  }
  Sequential body;
  Sequential shortcut{nullptr};
};
TORCH_MODULE(Residual);

// A Sequential inside another one needs a forward() of its own.
struct HeadImpl : torch::nn::SequentialImpl {
  HeadImpl() : SequentialImpl(torch::nn::Flatten(), torch::nn::Linear(4, 2)) {}
  using SequentialImpl::SequentialImpl;
  torch::Tensor forward(torch::Tensor x) { return SequentialImpl::forward(x); }
};
TORCH_MODULE(Head);

Sequential make_layer(int64_t in, int64_t out, int64_t blocks) {
  Sequential layer;
  layer->push_back(Residual(in, out, 2));
  for (int64_t i = 1; i < blocks; i++)
    layer->push_back("again" + std::to_string(i), Residual(out, out, 1));
  return layer;
}

struct ResNetImpl : torch::nn::Module {
  ResNetImpl() {
    layers->push_back(make_layer(4, 8, 2));
    layers->push_back(make_layer(8, 8, 1));
    register_module("stem", stem);
    register_module("layers", layers);
    register_module("heads", heads);
  }
  torch::Tensor forward(torch::Tensor x, const std::string& head) {
    x = stem->forward(x);
    for (const auto& layer : *layers) x = layer->as<Sequential>()->forward(x);
    x = torch::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
    return heads[head]->as<torch::nn::Linear>()->forward(x);
  }
  ConvBlock stem{ConvBlock(3, 4)};
  ModuleList layers;
  ModuleDict heads{torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>(
      {{"coarse", torch::nn::Linear(8, 2).ptr()}, {"fine", torch::nn::Linear(8, 3).ptr()}})};
};
TORCH_MODULE(ResNet);

// A linear layer that limits its weights.
struct ClampedLinearImpl : public torch::nn::LinearImpl {
  ClampedLinearImpl(int64_t in, int64_t out)
      : torch::nn::LinearImpl(torch::nn::LinearOptions(in, out)) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::nn::functional::linear(x, weight.clamp(-0.1, 0.1), bias);
  }
};
TORCH_MODULE(ClampedLinear);

// Modules of two kinds as shared pointers instead of holders.
struct PointerNet : torch::nn::Module {
  PointerNet()
      : body(register_module("body", std::make_shared<torch::nn::LinearImpl>(1, 3))),
        head(register_module("head", std::make_shared<ClampedLinearImpl>(3, 2))) {}
  torch::Tensor forward(const torch::Tensor& x) { return head->forward(body->forward(x)); }
  std::shared_ptr<torch::nn::LinearImpl> body;
  std::shared_ptr<ClampedLinearImpl> head;
};

void fill_parameters(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  for (auto& p : module.parameters()) {
    if (p.dim() > 1)
      p.copy_((torch::arange(p.numel(), torch::kDouble) * 0.9).cos().mul(0.3).view(p.sizes()));
    else p.fill_(0.5);
  }
}

int main() {
  ResNet net;
  fill_parameters(*net);
  net->eval();
  std::cout << net << "\n";
  const auto x = torch::arange(2 * 3 * 8 * 8, torch::kFloat).div(96).sin().view({2, 3, 8, 8});
  std::cout << net->forward(x, "coarse") << "\n" << net->forward(x, "fine") << "\n";

  int64_t count = 0;
  for (const auto& p : net->parameters()) count += p.numel();
  std::cout << count << " parameters, " << net->modules(/*include_self=*/false).size()
            << " modules, " << net->named_modules().size() << " with itself\n";
  for (const auto& child : net->named_children())
    std::cout << child.key() << ": " << child.value()->name() << "\n";
  std::cout << net->named_parameters().keys()[2] << ", "
            << net->named_parameters()["heads.fine.bias"] << "\n";

  // Functions between modules.
  Sequential mixed(torch::nn::Linear(4, 4), Functional(torch::relu),
                   Functional(torch::leaky_relu, /*negative_slope=*/0.1),
                   Functional([](torch::Tensor t) { return t * 2; }), Head(),
                   torch::nn::Softmax(torch::nn::SoftmaxOptions(1)));
  fill_parameters(*mixed);
  std::cout << mixed << "\n" << mixed->forward(torch::ones({1, 4})) << "\n";
  for (size_t i = 0; i < mixed->size(); ++i) std::cout << i << " " << mixed[i]->name() << "\n";
  std::cout << mixed->at<torch::nn::LinearImpl>(0).options.in_features() << " in\n";

  mixed[5]->as<torch::nn::Softmax>()->options.dim(0);
  std::cout << mixed->forward(torch::ones({1, 4})) << "\n";

  // Functions with arguments: pools, a shape.
  auto stride = torch::ExpandingArray<2>({2, 2});
  torch::ExpandingArray<2> shape({-1, 4});
  Sequential pooled(Functional(torch::max_pool2d, 3, stride, 0, 1, false),
                    Functional(torch::reshape, shape));
  const auto squares = torch::arange(25, torch::kFloat).div_(2).view({1, 1, 5, 5});
  std::cout << pooled->forward(squares) << "\n";
  pooled->push_back(Functional(torch::log_softmax, 1, torch::nullopt));
  std::cout << pooled->forward(torch::zeros({1, 1, 5, 5})) << "\n";

  // Names in front of modules, one list into another.
  Sequential named({{"fc", torch::nn::Linear(2, 2)}, {"act", torch::nn::Tanh()}});
  named->extend(*Sequential(torch::nn::Identity()));
  std::cout << named << "\n";

  // Any module, whatever its forward takes.
  AnyModule any(torch::nn::Linear(2, 1));
  fill_parameters(*any.ptr());
  std::cout << any.forward(torch::ones({1, 2})) << "\n";
  AnyModule again = any.clone();
  again.get<torch::nn::Linear>()->bias.data().fill_(0);
  std::cout << again.forward<torch::Tensor>(torch::ones({1, 2})).item<float>() -
                   any.forward(torch::ones({1, 2})).item<float>()
            << "\n";

  PointerNet pointers;
  pointers.apply(fill_parameters);
  std::cout << pointers << pointers.forward(torch::ones({1, 1})) << "\n";
  pointers.head = pointers.replace_module("head", std::make_shared<ClampedLinearImpl>(3, 4));
  pointers.apply(fill_parameters);
  std::cout << pointers.forward(torch::ones({1, 1})) << "\n";

  ModuleList stack(torch::nn::Linear(3, 3), torch::nn::ReLU());
  stack->insert(1, torch::nn::LayerNorm(torch::nn::LayerNormOptions({3}).eps(1e-3)));
  stack->extend(std::vector<std::shared_ptr<torch::nn::Module>>{torch::nn::Sigmoid().ptr()});
  std::cout << stack << " of " << stack->size() << "\n";
  ModuleDict dict;
  std::vector<std::pair<std::string, std::shared_ptr<torch::nn::Module>>> entries{
      {"drop", torch::nn::Dropout(0.25).ptr()},
      {"gelu", torch::nn::GELU().ptr()},
      {"embed", torch::nn::Embedding(5, 2).ptr()}};
  dict->update(entries);
  std::cout << dict << " " << dict->contains("gelu") << dict->contains("relu") << "\n";
  dict->pop("drop");
  for (const auto& key : dict->keys()) std::cout << key << " ";
  std::cout << "\n";
  return 0;
}
