// The rows' data.
#include "autograd/ops.h"
#include "tools/benchmarks/gpu/rows.h"
#include "tools/benchmarks/rows_data.h"

namespace ramet::gpu_bench {

Tensor filled(IntArrayRef sizes, ScalarType dtype, double scale, int seed) {
  const Tensor host = empty(sizes, kFloat);
  fill_row_data(host.data_ptr<float>(), host.numel(), scale, seed);
  return host.to(kGpu).to(dtype);
}

Tensor classes(int64_t n, int64_t classes) {
  const Tensor host = empty({n}, kLong);
  for (int64_t i = 0; i < n; ++i) host.data_ptr<int64_t>()[i] = i * 7 % classes;
  return host.to(kGpu);
}

std::vector<double> some_of(const Tensor& t) {
  const Tensor flat = t.detach().reshape({-1});
  const int64_t step = std::max<int64_t>(1, flat.numel() / 256);
  const Tensor picked =
      flat.slice(0, 0, flat.numel(), step).slice(0, 0, 256).to(Device(kCPU, 0)).to(kDouble);
  const Tensor dense = picked.contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

std::vector<std::vector<int64_t>> gpt2_sizes(bool tiny) {
  const int64_t c = tiny ? 8 : 768, vocabulary = tiny ? 24 : 50304, length = tiny ? 16 : 1024;
  std::vector<std::vector<int64_t>> sizes = {{vocabulary, c}, {length, c}};
  for (int layer = 0; layer < 12; ++layer) {
    for (const std::vector<int64_t>& s : std::vector<std::vector<int64_t>>{{c},
                                                                           {c},
                                                                           {3 * c, c},
                                                                           {3 * c},
                                                                           {c, c},
                                                                           {c},
                                                                           {c},
                                                                           {c},
                                                                           {4 * c, c},
                                                                           {4 * c},
                                                                           {c, 4 * c},
                                                                           {c}})
      sizes.push_back(s);
  }
  sizes.push_back({c}), sizes.push_back({c});
  return sizes;
}

std::vector<Row> rows(bool tiny, int64_t batch) {
  std::vector<Row> all;
  add_limits(all, tiny);
  add_memory_rows(all, tiny);
  add_optimizer_rows(all, tiny);
  add_product_rows(all, tiny);
  add_convolution_rows(all, tiny);
  add_steps(all, tiny);
  add_gpt2_steps(all, tiny, batch);
  return all;
}

}  // namespace ramet::gpu_bench
