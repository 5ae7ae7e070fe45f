// The rows of the GPU benchmark (`./tools/gpu_check --only bench`). torch_rows.py has PyTorch's
// counterpart of each, under the same name and for the same shape. Both use the same numbers as
// data.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet::gpu_bench {

/// The program gpu_bench: returns its exit code. bench.cc describes its arguments.
int main(int argc, char** argv);

/// The figure of the same run that a row's rate is compared with.
enum class Limit : uint8_t {
  None,
  Copy,     ///< bytes a second, both directions: the row limit.copy.
  Product,  ///< floating-point operations a second: the row limit.product.
  Launch,   ///< host time of a bare launch: the row limit.launch; what is beyond it counts
  Tokens,   ///< none: `work` is a number of tokens, and their rate is the figure
};

/// A row's data, and the work on them.
struct Work {
  std::function<void()> run;  // queues one repetition
  /// Some results of the first repetition, for a comparison with PyTorch's row.
  std::function<std::vector<double>()> outputs;
};

struct Row {
  std::string name, anchor;  // "adamw.fused", "G6"
  std::map<std::string, int64_t> shape;
  Limit limit = Limit::None;
  double work = 0;  // bytes or operations of one repetition
  /// Goals, 0: none. `goal` is the share of the limit, or nanoseconds beyond the bare launch, or
  /// tokens a second, or of a memory row bytes a token. `goal_ratio` is PyTorch's time (or memory)
  /// over this library's.
  double goal = 0, goal_ratio = 0;
  double tolerance = 0;  // of outputs: largest difference over largest value; 0: not compared
  bool host = false;     // the time until the call returns, not the GPU's
  bool memory = false;   // the largest number of bytes that tensors hold in a repetition, no time
  std::function<Work()> make;
};

/// All rows, limits first. `tiny`: sizes with which an emulated GPU is done in a second. `batch`:
/// sequences of a step of GPT-2.
std::vector<Row> rows(bool tiny, int64_t batch);
void add_limits(std::vector<Row>& rows, bool tiny);
void add_memory_rows(std::vector<Row>& rows, bool tiny);
void add_optimizer_rows(std::vector<Row>& rows, bool tiny);
void add_product_rows(std::vector<Row>& rows, bool tiny);
void add_convolution_rows(std::vector<Row>& rows, bool tiny);
void add_steps(std::vector<Row>& rows, bool tiny);
void add_gpt2_steps(std::vector<Row>& rows, bool tiny, int64_t batch);

// ---- what rows share

inline const Device kGpu(kCUDA, 0);

/// Numbers of rows_data.h in [-scale, scale), on cuda:0.
Tensor filled(IntArrayRef sizes, ScalarType dtype, double scale, int seed);
/// i * 7 % classes, int64, on cuda:0.
Tensor classes(int64_t n, int64_t classes);
/// At most 256 elements, evenly spaced, as they lie.
std::vector<double> some_of(const Tensor& t);
/// Elements of each tensor of a GPT-2 of 124M parameters, or of a tiny one: 148 sizes.
std::vector<std::vector<int64_t>> gpt2_sizes(bool tiny);

/// Seconds of one repetition out of `times`. Events around them measure it. The host's clock
/// measures a host row, around bursts that fit into the device's queue. Of a memory row: bytes.
double seconds_of(const Row& row, const Work& work, int64_t times);

/// A launch of a kernel that does nothing, on cuda:0's compute stream.
void bare_launch();
/// The device copies bytes within its own memory: the call of the CUDA runtime.
void bare_copy(void* to, const void* from, int64_t bytes);

}  // namespace ramet::gpu_bench
