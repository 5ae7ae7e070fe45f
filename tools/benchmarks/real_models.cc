// Ten models as people write them, each in a process of its own. It is one LibTorch program;
// ./tools/bench real compiles it with both libraries.
//
//   real_models MODEL THREADS float|double
//
// It reads commands from standard input, one a line, and answers each in one line.
//
// "save FILE" writes the outputs, the loss and the gradients of the first step into a file, and
// says "ok".
//
// "compare FILE" compares the same with such a file. It says "FORWARD GRADIENT NAME": the largest
// differences, relative to the largest magnitude in the tensor, and the name of the parameter with
// that gradient.
//
// "step" takes a training step and says how many seconds it took (of the processor, with one
// thread).
//
// "memory" says how many KiB this process has had at most, above what it had before the model.
//
// Without arguments it prints the names of the models.
#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "real_images.h"
#include "real_sequences.h"
#include "rows_data.h"

namespace {

namespace F = torch::nn::functional;
using torch::Tensor;

Tensor filled(std::vector<int64_t> sizes, double scale, int seed = 0) {
  Tensor t = torch::empty(sizes);
  fill_row_data(t.data_ptr<float>(), t.numel(), scale, seed);
  return t;
}
Tensor numbers(std::vector<int64_t> sizes, int64_t n) {
  Tensor t = torch::empty(sizes, torch::kLong);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<int64_t>()[i] = (i * 7919 + i / n) % n;
  return t;
}

torch::Dtype precision = torch::kFloat;

struct Running {
  std::function<Tensor()> forward;
  std::function<Tensor(const Tensor&)> loss;
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::shared_ptr<torch::optim::Optimizer> optimizer;
};

/// With the same start in every library; the weights of norms stay 1.
template <class Net>
Running training(Net net, Tensor input, std::function<Tensor(const Tensor&)> loss) {
  net->to(precision);
  if (input.is_floating_point()) input = input.to(precision);
  Running model{[=]() mutable { return net->forward(input); }, loss, {}, nullptr};
  std::vector<Tensor> list;
  torch::NoGradGuard off;
  int seed = 10;
  for (auto& p : net->named_parameters()) {
    Tensor& t = p.value();
    const double fan_in = double(t.numel()) / double(t.size(0));
    if (t.dim() > 1 || p.key().find("bias") != std::string::npos)
      t.copy_(filled(t.sizes().vec(), t.dim() > 1 ? std::sqrt(3 / fan_in) : .1, seed++));
    model.parameters.emplace_back(p.key(), t);
    list.push_back(t);
  }
  model.optimizer =
      std::make_shared<torch::optim::SGD>(list, torch::optim::SGDOptions(1e-3).momentum(.9));
  return model;
}
Running classifying(auto net, int64_t images) {
  return training(net, filled({images, 3, 224, 224}, 1),
                  [=](const Tensor& y) { return F::cross_entropy(y, numbers({images}, 1000)); });
}

struct Named {
  const char* name;
  Running (*make)();
};
const Named kModels[] = {
    {"ResNet-18", [] { return classifying(real::ResNet18(), 4); }},
    {"MobileNetV2", [] { return classifying(real::MobileNetV2(), 4); }},
    {"DenseNet-121", [] { return classifying(real::DenseNet121(), 2); }},
    {"VGG-11", [] { return classifying(real::Vgg11(), 2); }},
    {"U-Net",
     [] {
       return training(real::UNet(), filled({1, 3, 128, 128}, 1), [](const Tensor& y) {
         return F::cross_entropy(y, numbers({1, 128, 128}, 2));
       });
     }},
    {"DCGAN",
     [] {
       return training(real::Dcgan(), filled({16, 100, 1, 1}, 1), [](const Tensor& y) {
         return F::binary_cross_entropy_with_logits(y, torch::ones_like(y));
       });
     }},
    {"ViT-S/16", [] { return classifying(real::Vit(), 2); }},
    {"GPT-2",
     [] {
       return training(real::Gpt2(), numbers({1, 64}, 50257), [](const Tensor& y) {
         return F::cross_entropy(y.view({-1, y.size(2)}), numbers({64}, 50257));
       });
     }},
    {"Whisper tiny encoder",
     [] {
       return training(real::WhisperEncoder(), filled({1, 80, 1000}, 1),
                       [](const Tensor& y) { return y.square().mean(); });
     }},
    {"LSTM",
     [] {
       return training(real::LstmText(), numbers({16, 64}, 10000),
                       [](const Tensor& y) { return F::cross_entropy(y, numbers({16}, 2)); });
     }},
};

// ---- commands -----------------------------------------------------------------------------------

long status_kib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, std::strlen(field), field) == 0)
      return std::atol(line.c_str() + std::strlen(field) + 1);
  return 0;
}

using Results = std::vector<std::pair<std::string, Tensor>>;
Results first_step(Running& model) {
  model.optimizer->zero_grad();
  const Tensor y = model.forward();
  const Tensor loss = model.loss(y);
  loss.backward();
  Results results = {{"output", y.detach()}, {"loss", loss.detach()}};
  for (auto& [name, t] : model.parameters)
    results.emplace_back(name, t.grad().defined() ? t.grad() : torch::zeros_like(t));
  return results;
}

void write_values(const Results& results, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& result : results) {
    const Tensor t = result.second.to(torch::kDouble).contiguous();
    file.write(reinterpret_cast<const char*>(t.data_ptr<double>()), t.numel() * 8);
  }
  std::puts("ok");
}

void compare_values(const Results& results, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<double> piece(1 << 16);
  struct Found {
    double apart = 0, largest = 0;
  };
  std::vector<Found> found;
  for (const auto& result : results) {
    const Tensor t = result.second.to(torch::kDouble).contiguous();
    const double* p = t.data_ptr<double>();
    Found f;
    for (int64_t at = 0; at < t.numel(); at += int64_t(piece.size())) {
      const int64_t n = std::min<int64_t>(t.numel() - at, int64_t(piece.size()));
      file.read(reinterpret_cast<char*>(piece.data()), n * 8);
      for (int64_t i = 0; i < n; ++i) {
        const double a = p[at + i], b = piece[size_t(i)], d = std::abs(a - b);
        f.apart = d <= f.apart ? f.apart : d;  // a NaN is the largest
        f.largest = std::max({f.largest, std::abs(a), std::abs(b)});
      }
    }
    found.push_back(f);
  }
  if (!file || file.peek() != EOF) {
    std::puts("nan nan sizes");
    return;
  }
  // Values that should be 0 and are rounding errors are compared on the scale of the others.
  double scale = 0, forward = 0, gradient = 0;
  for (size_t i = 2; i < found.size(); ++i) scale = std::max(scale, found[i].largest);
  const char* name = "none";
  for (size_t i = 0; i < found.size(); ++i) {
    const double floor = i < 2 ? 1e-30 : 1e-4 * scale;
    const double apart = found[i].apart / std::max(found[i].largest, floor);
    if (i < 2) {
      forward = apart <= forward ? forward : apart;
    } else if (!(apart <= gradient)) {
      gradient = apart, name = results[i].first.c_str();
    }
  }
  std::printf("%.3e %.3e %s\n", forward, gradient, name);
}

double step(Running& model, int threads) {
  const auto now = [&] {
    if (threads == 1) return double(std::clock()) / CLOCKS_PER_SEC;
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  };
  const double start = now();
  model.optimizer->zero_grad();
  model.loss(model.forward()).backward();
  model.optimizer->step();
  return now() - start;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    for (const Named& m : kModels) std::puts(m.name);
    return argc == 1 ? 0 : 2;
  }
  const Named* named = nullptr;
  for (const Named& m : kModels)
    if (std::strcmp(m.name, argv[1]) == 0) named = &m;
  if (!named) return 2;
  const int threads = std::atoi(argv[2]);
  if (std::strcmp(argv[3], "double") == 0) precision = torch::kDouble;
  torch::set_num_threads(threads);
  {  // what the library itself takes
    const Tensor x = torch::ones({8, 8}).requires_grad_();
    x.mm(x).sum().backward();
  }
  const long before = status_kib("VmRSS:");
  Running model = named->make();
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "step") std::printf("%.6f\n", step(model, threads));
    else if (line == "memory") std::printf("%ld\n", status_kib("VmHWM:") - before);
    else if (line.compare(0, 5, "save ") == 0) write_values(first_step(model), line.substr(5));
    else if (line.compare(0, 8, "compare ") == 0) compare_values(first_step(model), line.substr(8));
    else return 2;
    std::fflush(stdout);
  }
}
