// What the tests on GPUs share: cuda:k by name, values that travel, a trained module.
#pragma once
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "runtime/devices/generator.h"
#include "tests/parallel/models.h"
#include "tests/runtime/cuda/gpus.h"

namespace ramet::testing {

inline Device gpu(int k) { return Device(kCUDA, static_cast<DeviceIndex>(k)); }
inline std::vector<Device> gpus(int n) {
  std::vector<Device> out;
  for (int k = 0; k < n; ++k) out.push_back(gpu(k));
  return out;
}

/// 62 MiB of a GPU with 64, which a test has for itself.
inline Tensor nearly_all_of(Device d) { return empty({62 << 18}, TensorOptions(kFloat).device(d)); }

/// What a training is made of.
struct Recipe {
  std::vector<Device> devices;  // where replicas run; the module is on the first one
  int tree = 0;                 // V of tree(V)
  bool norm_and_dropout = false;
  ScalarType dtype = kFloat;
  int64_t batch = 16;
  int steps = 10;
};

/// Values of different magnitudes, in groups: each group is compared on its own scale.
using Groups = std::vector<Values>;
inline Values flat(const Groups& groups) {
  Values out;
  for (const Values& group : groups) out.insert(out.end(), group.begin(), group.end());
  return out;
}
/// The parameters together, then each buffer: a number of batches is larger than any weight.
inline Groups state_groups(nn::Module& m) {
  Groups out = {all_values(m.parameters())};
  for (const Tensor& b : m.buffers()) out.push_back(values(b));
  return out;
}

/// state_groups() and the moments after some steps of SGD with momentum, read on the host.
inline Groups trained(const Recipe& r) {
  SmallConv m(r.norm_and_dropout);
  set_parameters(*m, 70);
  m->to(r.devices[0], r.dtype);
  manual_seed(7);  // the module's own draws moved the host's generator alone
  nn::parallel::DataParallelOptions options(r.devices);
  if (r.tree) options.order = parallel::ReduceOrder::tree(r.tree);
  options.bucket_bytes = 256;  // several
  nn::parallel::DataParallel<SmallConv> dp(m, options);
  optim::SGD sgd(m->parameters(), optim::SGDOptions(0.02).momentum(0.9));
  for (int step = 0; step < r.steps; ++step) {
    const int64_t batch = step == r.steps - 1 ? r.batch - 2 : r.batch;  // a short last one
    const auto seed = static_cast<uint64_t>(step);
    const Tensor x = varied({batch, 1, 6, 6}, 700 + seed, r.dtype),
                 y = varied({batch, 3}, 800 + seed, r.dtype).to(r.devices[0]);
    sgd.zero_grad();
    (dp(x) - y).pow(2).mean().backward();
    sgd.step();
  }
  Groups out = state_groups(*m);
  const Values all = all_state(*m, sgd);
  out.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(flat(out).size()), all.end());
  return out;
}

/// The largest difference over the largest value of `a`; infinite where a value is no number or a
/// number is missing.
inline double difference(const Values& a, const Values& b) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return kInfinite;
  double most = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return kInfinite;
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return most == 0 ? 0 : most / largest;
}
/// The difference of the group in which it is largest.
inline double difference(const Groups& a, const Groups& b) {
  double most = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = std::max(most, difference(a[i], b[i]));
  return most;
}

}  // namespace ramet::testing
