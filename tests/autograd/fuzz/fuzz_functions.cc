#include "tests/autograd/fuzz/fuzz_functions.h"

#include <algorithm>
#include <cmath>

namespace ramet {
namespace fuzz {

const std::vector<Unary> kUnary = {
    {"neg", &Tensor::neg, &Tensor::neg_, [](double v) { return -v; }, [](double) { return -1.; },
     Keeps::kNothing},
    {"sin", &Tensor::sin, &Tensor::sin_, [](double v) { return std::sin(v); },
     [](double v) { return std::cos(v); }, Keeps::kInput},
    {"tanh", &Tensor::tanh, &Tensor::tanh_, [](double v) { return std::tanh(v); },
     [](double v) { return 1 - std::tanh(v) * std::tanh(v); }, Keeps::kOutput},
    {"sigmoid", &Tensor::sigmoid, &Tensor::sigmoid_,
     [](double v) { return 1 / (1 + std::exp(-v)); },
     [](double v) { return 1 / ((1 + std::exp(-v)) * (1 + std::exp(v))); }, Keeps::kOutput},
    {"square", &Tensor::square, &Tensor::square_, [](double v) { return v * v; },
     [](double v) { return 2 * v; }, Keeps::kInput},
    {"relu", &Tensor::relu, &Tensor::relu_, [](double v) { return v > 0 ? v : 0; },
     [](double v) { return v > 0 ? 1. : 0.; }, Keeps::kOutput, true},
    {"abs", &Tensor::abs, &Tensor::abs_, [](double v) { return std::fabs(v); },
     [](double v) { return v > 0   ? 1.
                           : v < 0 ? -1.
                                   : 0.; }, Keeps::kInput, true},
    {"erf", &Tensor::erf, &Tensor::erf_, [](double v) { return std::erf(v); },
     [](double v) { return 2 / std::sqrt(M_PI) * std::exp(-v * v); }, Keeps::kInput},
};

bool near_kink(const std::vector<Dual>& values) {
  return std::any_of(values.begin(), values.end(),
                     [](const Dual& v) { return v.value != 0 && std::fabs(v.value) < 1e-6; });
}
std::vector<Dual> mapped(const Unary& f, std::vector<Dual> v) {
  for (Dual& x : v) x = chain(x, f.value(x.value), f.derivative(x.value));
  return v;
}

Tensor mask_of(const Shape& sizes) {
  Tensor m(TensorBase::empty(sizes, kBool, Device(kCPU, 0)));
  for (int64_t i = 0; i < m.numel(); ++i) m.data_ptr<bool>()[i] = marked(static_cast<size_t>(i));
  return m;
}

}  // namespace fuzz
}  // namespace ramet
