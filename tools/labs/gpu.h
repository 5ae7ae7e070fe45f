// What the graders of kernels share: a fresh emulated GPU for each run, its memory, and what its
// checker says.
#pragma once
#include <string>
#include <vector>

#include "runtime/cuda/gpu.h"
#include "tools/emulated_gpu/executor/settings.h"
#include "tools/labs/grader.h"

namespace ramet::labs {

/// Which thread of a block goes first: "forward", "reverse", "random 1" ...
struct Order {
  std::string name;
  emulated::ThreadOrder order;
  uint64_t seed;
};
const std::vector<Order>& orders();

/// Makes a device with threads that go in this order. Everything on the previous device is gone.
void fresh_gpu(const Order& order);

class DeviceFloats {
 public:
  explicit DeviceFloats(size_t count);
  explicit DeviceFloats(const std::vector<float>& host);
  ~DeviceFloats();
  DeviceFloats(const DeviceFloats&) = delete;
  operator float*() const { return data_; }
  std::vector<float> host() const;

 private:
  size_t count_;
  float* data_ = nullptr;
};

/// Waits for what was launched. Wrong where the launch was refused (`launched`), or the checker or
/// the device have something to say; `run` names the run.
void expect_no_report(cudaError_t launched, const std::string& run);

/// Wrong where an element is further from `want` than `tolerance`.
void expect_numbers(const std::vector<float>& got, const std::vector<double>& want,
                    double tolerance, const std::string& run);

}  // namespace ramet::labs
