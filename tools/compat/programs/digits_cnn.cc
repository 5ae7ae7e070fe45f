// A small convolutional classifier. Styles: a net with members by value behind TORCH_MODULE,
// members `{nullptr}` that register_module assigns, chains of options, arguments of the program,
// the choice of a device, at::globalContext().
#include <torch/torch.h>

#include <cstddef>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

struct Options {
  int64_t batch_size = 4;
  int64_t epochs = 2;
  double lr = 0.05;
  bool no_cuda = false;
  std::string device;
};

// --batch-size 8 --epochs 3 --lr 0.1 --no-cuda --device cpu
Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--no-cuda") {
      options.no_cuda = true;
      continue;
    }
    TORCH_CHECK(i + 1 < argc, "no value for ", name);
    const std::string value = argv[++i];
    if (name == "--batch-size") {
      options.batch_size = std::stoll(value);
    } else if (name == "--epochs") {
      options.epochs = std::atoi(value.c_str());
    } else if (name == "--lr") {
      options.lr = std::stod(value);
    } else if (name == "--device") {
      options.device = value;
    } else {
      TORCH_CHECK(false, "unknown option ", name);
    }
  }
  return options;
}

class NetImpl : public torch::nn::Module {
 public:
  explicit NetImpl(int64_t classes)
      : conv1(torch::nn::Conv2dOptions(1, 4, /*kernel_size=*/3).stride(1).padding(1).bias(false)),
        norm(torch::nn::BatchNorm2dOptions(4).eps(1e-4).momentum(0.2).affine(true)),
        drop(torch::nn::DropoutOptions().p(0.0)) {
    register_module("conv1", conv1);
    register_module("norm", norm);
    conv2 = register_module(
        "conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 6, {3, 3}).padding({1, 1})));
    register_module("drop", drop);
    fc = register_module(
        "fc", torch::nn::Linear(torch::nn::LinearOptions(6 * 2 * 2, classes).bias(true)));
    scale = register_parameter("scale", torch::ones({1}));
    steps = register_buffer("steps", torch::zeros({1}, torch::kLong));
  }

  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(norm(conv1(x))), 2);
    x = torch::relu(torch::max_pool2d(conv2->forward(x), /*kernel_size=*/2, /*stride=*/2));
    x = drop(x.view({x.size(0), -1}));
    if (is_training()) steps += 1;
    return torch::log_softmax(fc->forward(x) * scale, /*dim=*/1);
  }

  torch::nn::Conv2d conv1;
  torch::nn::BatchNorm2d norm;
  torch::nn::Dropout drop;
  torch::nn::Conv2d conv2{nullptr};
  torch::nn::Linear fc{nullptr};
  torch::Tensor scale, steps;
};
TORCH_MODULE(Net);

// Parameters that are the same everywhere: a sine for each.
void fill_parameters(torch::nn::Module& module) {
  torch::NoGradGuard no_grad;
  int64_t phase = 0;
  for (auto& parameter : module.named_parameters()) {
    if (parameter.key().find("bias") != std::string::npos) parameter.value().zero_();
    if (parameter.value().dim() < 2) continue;
    const auto n = parameter.value().numel();
    parameter.value().copy_((torch::arange(n, torch::kDouble) * 1.3 + phase++)
                                .sin()
                                .mul(0.4)
                                .view_as(parameter.value()));
  }
}

// Images of 8 x 8: the class says where the bright stripe lies.
torch::Tensor image(int64_t label, int64_t shift) {
  auto picture = torch::zeros({1, 8, 8});
  picture.select(1, 2 * label + shift % 2).fill_(1.0);
  return picture + torch::arange(64, torch::kFloat32).reshape({1, 8, 8}) * 0.001;
}

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  torch::manual_seed(0);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setBenchmarkCuDNN(false);
  torch::DeviceType type = torch::kCPU;
  if (!options.no_cuda && options.device != "cpu" && torch::cuda::is_available() &&
      torch::cuda::device_count() > 100) {
    type = torch::kCUDA;
  }
  const torch::Device device(type);
  std::cout << "training on " << device << ", deterministic: " << std::boolalpha
            << at::globalContext().deterministicCuDNN() << std::endl;

  Net net(3);
  fill_parameters(*net);
  net->to(device);
  std::cout << net << "\n";
  for (const auto& pair : net->named_parameters()) {
    std::cout << std::left << std::setw(14) << pair.key() << pair.value().sizes() << std::endl;
  }
  for (const auto& pair : net->named_buffers(/*recurse=*/true)) {
    std::cout << pair.key() << " " << pair->dtype() << "\n";
  }

  std::vector<torch::Tensor> images, labels;
  for (int64_t i = 0; i < 12; ++i) {
    images.push_back(image(i % 3, i / 3));
    labels.push_back(torch::full({1}, i % 3, torch::kInt64));
  }
  const auto data = torch::stack(images).to(device), target = torch::cat(labels).to(device);

  torch::optim::SGD optimizer(net->parameters(),
                              torch::optim::SGDOptions(options.lr).momentum(0.5));
  for (int64_t epoch = 1; epoch <= options.epochs; ++epoch) {
    net->train();
    double total = 0;
    for (int64_t begin = 0; begin < data.size(0); begin += options.batch_size) {
      optimizer.zero_grad();
      const auto output = net->forward(data.narrow(0, begin, options.batch_size));
      auto loss = torch::nll_loss(output, target.slice(0, begin, begin + options.batch_size));
      AT_ASSERT(!std::isnan(loss.template item<float>()));
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
    }
    std::printf("Train Epoch: %ld Loss: %.4f\n", static_cast<long>(epoch), total);
  }

  net->eval();
  torch::NoGradGuard no_grad;
  const auto output = net(data);
  const auto loss = torch::nll_loss(output, target, /*weight=*/{}, torch::Reduction::Sum);
  const auto prediction = output.argmax(1);
  std::printf("Test set: Average loss: %.4f | Accuracy: %.3f\n", loss.item<double>() / 12,
              prediction.eq(target).sum().item<int64_t>() / 12.0);
  std::cout << output.slice(0, 0, 3) << "\n"
            << prediction << "\nsteps " << net->steps.item().toLong() << "\n";
  return EXIT_SUCCESS;
}
