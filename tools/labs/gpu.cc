#include "tools/labs/gpu.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tools/emulated_gpu/checker/checks.h"
#include "tools/emulated_gpu/runtime/control.h"

namespace ramet::labs {
namespace {

void need(cudaError_t code, const char* what) {
  expect(code == cudaSuccess, what, " failed: ", cudaGetErrorName(code));
}

/// What a report's first word means.
struct Meaning {
  const char *word, *text;
};
constexpr Meaning kMeanings[] = {
    {"RACE", "two threads touch the same memory, one of them writes, and nothing orders the two"},
    {"DIVERGENT BARRIER", "threads of one block wait at different __syncthreads()"},
    {"DEADLOCK", "threads of one block wait for others that will never come"},
    {"UNINITIALISED", "memory is read that nobody has written"},
    {"OUT OF BOUNDS", "memory is touched that does not belong to the array"},
    {"ILLEGAL", "memory is touched that a kernel cannot reach"},
    {"MISALIGNED", "a value is read from where values of its size cannot lie"},
};

/// The faults of a report, one line each, without what all have in common. The most informative
/// comes first, then at most two others, then the meaning of the first one's words.
std::string explained(const std::string& report) {
  std::vector<std::string> faults;
  std::istringstream lines(report);
  for (std::string line; std::getline(lines, line);) {
    const size_t block = line.find(", block (");
    if (block != std::string::npos) faults.push_back(line.substr(block + 2));
    else if (!faults.empty()) faults.back() += "\n" + line;  // which thread waits where
    else faults.push_back(line);
  }
  for (const Meaning& m : kMeanings)
    for (size_t i = 0; i < faults.size(); ++i) {
      if (faults[i].find(m.word) == std::string::npos) continue;
      std::rotate(faults.begin(), faults.begin() + std::ptrdiff_t(i),
                  faults.begin() + std::ptrdiff_t(i) + 1);
      std::string text;
      for (size_t k = 0; k < faults.size() && k < 3; ++k) text += faults[k] + "\n";
      if (faults.size() > 3) text += words("and ", faults.size() - 3, " more\n");
      return text + m.word + " means: " + m.text;
    }
  return report;
}

}  // namespace

const std::vector<Order>& orders() {
  using emulated::ThreadOrder;
  static const std::vector<Order> all = {{"forward", ThreadOrder::Forward, 1},
                                         {"reverse", ThreadOrder::Reverse, 1},
                                         {"random 1", ThreadOrder::Random, 1},
                                         {"random 2", ThreadOrder::Random, 2}};
  return all;
}

void fresh_gpu(const Order& order) {
  expect(emulated::checks().grid_begin != nullptr, "this program was linked without the checker");
  emulated::Settings s;  // not the environment's: the same for every student
  s.memory = {size_t(16) << 20};
  s.workers = 1;
  s.timeout_ms = 1000;
  s.print_reports = false;
  s.threads = order.order;
  s.thread_seed = order.seed;
  emulated::restart(s);
}

DeviceFloats::DeviceFloats(size_t count) : count_(count) {
  need(cudaMalloc(&data_, count * sizeof(float)), "cudaMalloc()");
}
DeviceFloats::DeviceFloats(const std::vector<float>& host) : DeviceFloats(host.size()) {
  need(cudaMemcpy(data_, host.data(), count_ * sizeof(float), cudaMemcpyHostToDevice),
       "cudaMemcpy()");
}
DeviceFloats::~DeviceFloats() { (void)cudaFree(data_); }
std::vector<float> DeviceFloats::host() const {
  std::vector<float> copy(count_);
  need(cudaMemcpy(copy.data(), data_, count_ * sizeof(float), cudaMemcpyDeviceToHost),
       "cudaMemcpy()");
  return copy;
}

void expect_no_report(cudaError_t launched, const std::string& run) {
  expect(launched == cudaSuccess, run, ": the launch was refused: ", cudaGetErrorName(launched));
  const cudaError_t code = cudaDeviceSynchronize();
  const std::string report = emulated::last_report();
  expect(report.empty(), run, ": the checker says\n", explained(report));
  expect(code == cudaSuccess, run, ": the kernel ended with ", cudaGetErrorName(code));
}

void expect_numbers(const std::vector<float>& got, const std::vector<double>& want,
                    double tolerance, const std::string& run) {
  for (size_t i = 0; i < want.size(); ++i)
    expect(std::fabs(double(got[i]) - want[i]) <= tolerance, run, ": element ", i, " is ", got[i],
           ", expected ", want[i]);
}

}  // namespace ramet::labs
