#include "nn/init.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/grad_mode.h"
#include "autograd/ops/random/random.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/mersenne.h"

namespace ramet::nn::init {
namespace {

double fan_of(const Tensor& tensor, const FanModeType& mode) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  return static_cast<double>(holds_alternative<enumtype::kFanIn>(mode) ? in : out);
}

// A tensor with a fan of 0 has no elements to draw.
double kaiming_std(const Tensor& tensor, double a, const FanModeType& mode,
                   const NonlinearityType& nonlinearity) {
  const double fan = fan_of(tensor, mode);
  return fan > 0 ? calculate_gain(nonlinearity, a) / std::sqrt(fan) : 0;
}

double xavier_std(const Tensor& tensor, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(tensor);
  const double fans = static_cast<double>(in) + static_cast<double>(out);
  return fans > 0 ? gain * std::sqrt(2.0 / fans) : 0;
}

// Runs an initialiser that computes its values one by one, in double on the host. write(p) gets a
// pointer to as many zeros as the tensor has elements.
template <class Write> Tensor assign(const Tensor& tensor, const Write& write) {
  const Tensor host(TensorBase::empty(tensor.sizes(), kDouble, Device(kCPU, 0)));
  auto* const values = static_cast<double*>(host.ptr());
  std::fill_n(values, host.numel(), 0.0);
  write(values);
  tensor.copy_(host);
  return tensor;
}

std::vector<double> on_host(const Tensor& dense) {
  capture::refuse("init", "the host computes the values");
  const Tensor host = dense.to(Device(kCPU, 0), kDouble);
  const double* p = static_cast<const double*>(host.ptr());
  return std::vector<double>(p, p + host.numel());
}
std::vector<double> drawn_normal(int64_t rows, int64_t cols, double std, const Tensor& like) {
  // Drawn on the tensor's own device, so that this device's generator advances.
  const Tensor noise(TensorBase::empty({rows, cols}, kDouble, like.device()));
  noise.normal_(0, std);
  return on_host(noise);
}

}  // namespace

double calculate_gain(NonlinearityType nonlinearity, double param) {
  if (holds_alternative<enumtype::kTanh>(nonlinearity)) return 5.0 / 3.0;
  if (holds_alternative<enumtype::kReLU>(nonlinearity)) return std::sqrt(2.0);
  if (holds_alternative<enumtype::kLeakyReLU>(nonlinearity))
    return std::sqrt(2.0 / (1 + param * param));
  return 1;
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  RAMET_CHECK(
      tensor.dim() >= 2, "init",
      "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions: got ",
      describe(tensor));
  int64_t receptive = 1;
  for (int64_t d = 2; d < tensor.dim(); ++d) receptive *= tensor.size(d);
  return {tensor.size(1) * receptive, tensor.size(0) * receptive};
}

Tensor constant_(Tensor tensor, Scalar value) {
  const NoGradGuard off;
  return tensor.fill_(value);
}
Tensor ones_(Tensor tensor) { return constant_(std::move(tensor), 1); }
Tensor zeros_(Tensor tensor) { return constant_(std::move(tensor), 0); }
Tensor uniform_(Tensor tensor, double low, double high) {
  const NoGradGuard off;
  return tensor.uniform_(low, high);
}
Tensor normal_(Tensor tensor, double mean, double std) {
  const NoGradGuard off;
  return tensor.normal_(mean, std);
}

Tensor eye_(Tensor matrix) {
  RAMET_CHECK(matrix.dim() == 2, "eye_", "Only tensors with 2 dimensions are supported: got ",
              describe(matrix));
  const NoGradGuard off;
  const int64_t rows = matrix.size(0), cols = matrix.size(1);
  return assign(matrix, [&](double* values) {
    for (int64_t i = 0; i < std::min(rows, cols); ++i) values[i * cols + i] = 1;
  });
}

Tensor dirac_(Tensor tensor) {
  RAMET_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "dirac_",
              "Only tensors with 3, 4, or 5 dimensions are supported: got ", describe(tensor));
  const NoGradGuard off;
  const int64_t out = tensor.size(0), in = tensor.size(1);
  int64_t block = 1, centre = 0;
  for (int64_t d = 2; d < tensor.dim(); ++d) {
    centre = centre * tensor.size(d) + tensor.size(d) / 2;
    block *= tensor.size(d);
  }
  return assign(tensor, [&](double* values) {
    for (int64_t i = 0; block > 0 && i < std::min(out, in); ++i)
      values[(i * in + i) * block + centre] = 1;
  });
}

Tensor orthogonal_(Tensor tensor, double gain) {
  RAMET_CHECK(tensor.dim() >= 2, "orthogonal_",
              "Only tensors with 2 or more dimensions are supported: got ", describe(tensor));
  const NoGradGuard off;
  const int64_t rows = tensor.size(0), cols = rows ? tensor.numel() / rows : 0;
  const int64_t count = std::min(rows, cols), length = std::max(rows, cols);
  // Gram-Schmidt of `count` normal vectors, twice each, which leaves them orthogonal to rounding.
  // Normalising by a positive factor makes the result uniform over orthogonal frames, as LibTorch's
  // QR with signs fixed by the diagonal.
  std::vector<double> v;
  if (draws_from_mersenne(tensor.device(), {})) {
    // LibTorch draws floats. Their columns become the vectors where there are more rows.
    const Tensor drawn = randn({rows, cols}, kFloat);
    v = on_host(rows <= cols ? drawn : drawn.t().contiguous());
  } else {
    v = drawn_normal(count, length, 1, tensor);
  }
  for (int64_t i = 0; i < count; ++i) {
    double* a = v.data() + i * length;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t j = 0; j < i; ++j) {
        const double* b = v.data() + j * length;
        double dot = 0;
        for (int64_t k = 0; k < length; ++k) dot += a[k] * b[k];
        for (int64_t k = 0; k < length; ++k) a[k] -= dot * b[k];
      }
      double square = 0;
      for (int64_t k = 0; k < length; ++k) square += a[k] * a[k];
      const double scale = 1 / std::sqrt(square);
      for (int64_t k = 0; k < length; ++k) a[k] *= scale;
    }
  }
  return assign(tensor, [&](double* values) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < cols; ++c)
        values[r * cols + c] = gain * (rows <= cols ? v[static_cast<size_t>(r * length + c)]
                                                    : v[static_cast<size_t>(c * length + r)]);
  });
}

Tensor sparse_(Tensor tensor, double sparsity, double std) {
  RAMET_CHECK(tensor.dim() == 2, "sparse_", "Only tensors with 2 dimensions are supported: got ",
              describe(tensor));
  RAMET_CHECK(sparsity >= 0 && sparsity <= 1, "sparse_", "sparsity: got ", sparsity,
              ", expected a fraction in [0, 1]");
  const NoGradGuard off;
  const int64_t rows = tensor.size(0), cols = tensor.size(1);
  if (tensor.numel() == 0) return tensor;
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  if (draws_from_mersenne(tensor.device(), {})) {
    tensor.normal_(0, std);
    for (int64_t c = 0; c < cols; ++c)
      tensor.select(1, c).index_fill_(0, randperm(rows).narrow(0, 0, zeros), 0);
    return tensor;
  }
  std::vector<double> values = drawn_normal(rows, cols, std, tensor);
  const std::vector<double> keys = drawn_normal(rows, cols, 1, tensor);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < rows; ++r) order[static_cast<size_t>(r)] = r;
    std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return keys[static_cast<size_t>(a * cols + c)] < keys[static_cast<size_t>(b * cols + c)];
    });
    for (int64_t i = 0; i < zeros; ++i)
      values[static_cast<size_t>(order[static_cast<size_t>(i)] * cols + c)] = 0;
  }
  return assign(tensor, [&](double* to) { std::copy(values.begin(), values.end(), to); });
}

Tensor kaiming_uniform_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(tensor, a, mode, nonlinearity);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor kaiming_normal_(Tensor tensor, double a, FanModeType mode, NonlinearityType nonlinearity) {
  const double std = kaiming_std(tensor, a, mode, nonlinearity);
  return normal_(std::move(tensor), 0, std);
}
Tensor xavier_uniform_(Tensor tensor, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(tensor, gain);
  return uniform_(std::move(tensor), -bound, bound);
}
Tensor xavier_normal_(Tensor tensor, double gain) {
  const double std = xavier_std(tensor, gain);
  return normal_(std::move(tensor), 0, std);
}

}  // namespace ramet::nn::init
