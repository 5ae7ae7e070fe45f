// One forward of a TorchScript file (./tools/bench script FILE...). It is one LibTorch program,
// which is compiled with both libraries.
//
//   scripts FILE THREADS
//
// FILE is an archive of torch.jit.save. FILE.inputs is what torch.save wrote of a list of its
// arguments. The module is frozen and optimised for inference, and runs without gradients.
//
// It reads commands from standard input, one a line, and answers each in one line.
//
// "save PATH" writes all elements of the results, as doubles, and says how many there are.
//
// "compare PATH" says the largest difference from such a file, relative to the largest magnitude.
//
// "step" runs the module and says how many seconds it took (of the processor, with one thread).
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

std::vector<char> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<torch::IValue> arguments_of(const std::string& path) {
  std::vector<torch::IValue> values;
  const torch::IValue read = torch::pickle_load(bytes_of(path));
  for (const torch::IValue& value : read.toListRef()) values.push_back(value);
  return values;
}

/// All elements of the tensors in a value, in order.
void collect(const torch::IValue& value, std::vector<double>& out) {
  if (value.isTensor()) {
    const torch::Tensor t = value.toTensor().to(torch::kDouble).contiguous();
    out.insert(out.end(), t.data_ptr<double>(), t.data_ptr<double>() + t.numel());
  } else if (value.isTuple()) {
    for (const torch::IValue& part : value.toTupleRef().elements()) collect(part, out);
  } else if (value.isList()) {
    for (const torch::IValue& part : value.toListRef()) collect(part, out);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) collect(entry.value(), out);
  }
}

/// The largest difference, relative to the largest magnitude; NaN where only one of two is a NaN or
/// infinite.
double difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) throw std::runtime_error("the results have other sizes");
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) largest = std::max(largest, std::abs(b[i]));
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = std::abs(a[i] - b[i]);
    if (!std::isfinite(d)) return NAN;
    most = std::max(most, d);
  }
  return largest > 0 ? most / largest : most;
}

/// Of the processor's clock with one thread, which other programs disturb less.
double seconds(int threads) {
  timespec now;
  clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

int run(const std::string& path, int threads) {
  torch::set_num_threads(threads);
  torch::NoGradGuard off;
  torch::jit::Module module = torch::jit::load(path);
  module.eval();
  module = torch::jit::optimize_for_inference(module);
  const std::vector<torch::IValue> arguments = arguments_of(path + ".inputs");
  for (std::string command; std::getline(std::cin, command);) {
    const size_t space = command.find(' ');
    const std::string what = command.substr(0, space);
    if (what == "step") {
      const double start = seconds(threads);
      module.forward(arguments);
      std::printf("%.9f\n", seconds(threads) - start);
    } else {
      std::vector<double> values;
      collect(module.forward(arguments), values);
      const std::string other = command.substr(space + 1);
      if (what == "save") {
        std::ofstream(other, std::ios::binary)
            .write(reinterpret_cast<const char*>(values.data()),
                   std::streamsize(values.size() * sizeof(double)));
        std::printf("%zu\n", values.size());
      } else {
        const std::vector<char> bytes = bytes_of(other);
        const double* from = reinterpret_cast<const double*>(bytes.data());
        std::printf("%g\n", difference(values, {from, from + bytes.size() / sizeof(double)}));
      }
    }
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: scripts FILE THREADS");
    return run(argv[1], std::stoi(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
