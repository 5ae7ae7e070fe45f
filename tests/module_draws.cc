// What the rows of tests/modules are called with, and how what they give is compared.
#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "tests/modules.h"

namespace ramet::testing {

Tensor drawn(const Draw& draw, uint64_t seed, ScalarType dtype) {
  int64_t n = 1;
  for (const int64_t s : draw.sizes) n *= s;
  std::vector<double> v;
  uint64_t h = seed * 0x9E3779B97F4A7C15u + 0x1234567;
  for (int64_t i = 0; i < n; ++i) {
    h ^= h << 13;
    h ^= h >> 7;
    h ^= h << 17;
    const double u = (static_cast<double>(h >> 40) + .5) * 0x1p-24;
    switch (draw.kind) {
      case Draw::kReal: v.push_back(u < .5 ? u * 1.9 - 1 : u * 1.9 - .9); break;
      case Draw::kPositive: v.push_back(.05 + .9 * u); break;
      case Draw::kSign: v.push_back(u < .5 ? -1 : 1); break;
      case Draw::kIndex: v.push_back(std::floor(u * static_cast<double>(draw.below))); break;
    }
  }
  return tensor(v, kDouble).view(draw.sizes).to(draw.kind == Draw::kIndex ? kLong : dtype);
}

Tensors ModuleRow::draw(uint64_t seed, ScalarType dtype) const {
  Tensors out;
  for (const Draw& d : inputs) out.push_back(drawn(d, seed * 16 + out.size(), dtype));
  return out;
}

void HeldImpl::reset() {
  factor = register_parameter("factor", full({1}, 1.25));
  register_module("held", row->make());
}
Tensor HeldImpl::forward(const Tensors& inputs) { return row->call(held(), inputs) * factor; }

Held held(const ModuleRow& row, ScalarType dtype) {
  Held made(row);
  made->to(dtype);
  const NoGradGuard off;
  uint64_t seed = 1;
  for (const Tensor& p : made->parameters()) p.copy_(drawn(real(p.sizes().vec()), seed++, dtype));
  return made;
}

Tensor loss_of(const Tensor& y) {
  const Tensor weights = drawn(positive(y.sizes().vec()), 77, y.scalar_type()).to(y.device());
  return (y * (y + 1) * weights).sum();
}

std::string bits(const Tensor& t) {
  if (!t.defined()) return "undefined";
  const Tensor host = t.detach().to(Device(kCPU, 0)).contiguous();
  return std::string(static_cast<const char*>(host.data_ptr()), host.nbytes());
}
std::string bits(const nn::Module& m) {
  std::string out;
  for (const Tensor& p : m.parameters()) out += bits(p) + bits(p.grad());
  for (const Tensor& b : m.buffers()) out += bits(b);
  return out;
}

std::string difference(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.sizes() != b.sizes()) return shown("sizes: ", a.sizes(), " and ", b.sizes());
  const auto wide = [](const Tensor& t) { return t.detach().to(Device(kCPU, 0), kDouble); };
  const Tensor x = wide(a), y = wide(b), off = (x - y).abs() / (y.abs() + 1);
  if (x.numel() == 0) return "";
  const double largest = off.max().item<double>();
  return largest <= tolerance ? "" : shown("off by ", largest, " (allowed: ", tolerance, ")");
}
std::string difference(const Tensors& a, const Tensors& b, double tolerance) {
  if (a.size() != b.size()) return shown(a.size(), " and ", b.size(), " tensors");
  for (size_t i = 0; i < a.size(); ++i)
    if (const std::string d = difference(a[i], b[i], tolerance); !d.empty())
      return shown("tensor ", i, ": ", d);
  return "";
}

Tensors gradients(const Tensors& of) {
  Tensors out;
  for (const Tensor& t : of) out.push_back(t.grad().defined() ? t.grad() : zeros_like(t).detach());
  return out;
}

Tensors part_of(const Tensors& inputs, int part, int parts) {
  Tensors out;
  for (const Tensor& t : inputs)
    out.push_back(t.narrow(0, part * (t.size(0) / parts), t.size(0) / parts));
  return out;
}

}  // namespace ramet::testing
