// Steps that compute new tensors.
#include "autograd/ops.h"
#include "tests/autograd/fuzz/fuzz_functions.h"
#include "tests/autograd/fuzz/fuzz_programs.h"

namespace ramet {
namespace fuzz {

void Program::push_unary() {
  const Var x = pick();
  const Unary& f = tape_.one_of(kUnary);
  const std::vector<Dual> v = read(x.w, x.w.sizes);
  if (f.kink && near_kink(v)) return;
  const Tensor t = (x.t.*f.call)();
  if (x.w.grad() && f.keeps == Keeps::kInput) save(x.w);
  push("v" + std::to_string(x.number) + "." + f.name, t, x.w.sizes, mapped(f, v), x.w.grad());
  if (x.w.grad() && f.keeps == Keeps::kOutput) save(vars_.back().w);
}

Program::Var* Program::partner(const Var& x, bool into) {
  for (int attempt = 0; attempt < 4; ++attempt) {
    Var& y = pick();
    Shape both;
    if (broadcast(x.w.sizes, y.w.sizes, &both) && count(both) <= kMaxElements && both.size() <= 4 &&
        (!into || both == x.w.sizes))
      return &y;
  }
  return nullptr;
}

void Program::push_binary() {
  const Var x = pick();
  const Var* other = partner(x, false);
  if (!other) return;
  const Var y = *other;
  const int64_t kind = tape_.below(5);
  Shape sizes;
  broadcast(x.w.sizes, y.w.sizes, &sizes);
  const std::vector<Dual> a = read(x.w, sizes), b = read(y.w, sizes);
  std::vector<Dual> v(a.size());
  const Tensor mask = mask_of(sizes);
  const Dual alpha = number(-0.75);
  for (size_t i = 0; i < v.size(); ++i) {
    switch (kind) {
      case 0: v[i] = a[i] + b[i] * alpha; break;
      case 1: v[i] = a[i] - b[i]; break;
      case 2: v[i] = a[i] * b[i]; break;
      case 3: v[i] = a[i] / (b[i] * b[i] + number(1)); break;
      default: v[i] = marked(i) ? a[i] : b[i];
    }
  }
  const bool ga = x.w.grad(), gb = y.w.grad();
  if (kind == 2 && ga) save(y.w);
  if ((kind == 2 || kind == 3) && gb) save(kind == 2 ? x.w : y.w);
  if (kind == 3 && gb) save(x.w);
  const Tensor t = kind == 0   ? x.t.add(y.t, -0.75)
                   : kind == 1 ? x.t - y.t
                   : kind == 2 ? x.t * y.t
                   : kind == 3 ? x.t / (y.t.square() + 1)
                               : where(mask, x.t, y.t);
  static const char* const names[] = {"add(-0.75)", "sub", "mul", "div by square + 1", "where"};
  push("v" + std::to_string(x.number) + " " + names[kind] + " v" + std::to_string(y.number), t,
       sizes, v, ga || gb);
}

void Program::push_joined() {
  const Var x = pick(), y = pick();
  const std::string names =
      "(v" + std::to_string(x.number) + ", v" + std::to_string(y.number) + ")";
  const bool grad = x.w.grad() || y.w.grad();
  if (x.w.sizes == y.w.sizes && 2 * count(x.w.sizes) <= kMaxElements && x.w.sizes.size() < 4) {
    std::vector<Dual> v = read(x.w, x.w.sizes), b = read(y.w, x.w.sizes);
    v.insert(v.end(), b.begin(), b.end());
    Shape sizes = x.w.sizes;
    if (tape_.one_in(2) && !sizes.empty()) {
      sizes[0] *= 2;
      return push("cat" + names, cat({x.t, y.t}), sizes, v, grad);
    }
    sizes.insert(sizes.begin(), 2);
    return push("stack" + names, stack({x.t, y.t}), sizes, v, grad);
  }
  if (x.w.sizes.size() != 2 || y.w.sizes.size() != 2 || x.w.sizes[1] != y.w.sizes[0]) return;
  const int64_t n = x.w.sizes[0], k = x.w.sizes[1], m = y.w.sizes[1];
  if (x.w.grad()) save(y.w);
  if (y.w.grad()) save(x.w);
  std::vector<Dual> v(static_cast<size_t>(n * m));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < m; ++j)
      for (int64_t q = 0; q < k; ++q) {
        Dual& sum = v[static_cast<size_t>(i * m + j)];
        sum = sum + x.w[static_cast<size_t>(i * k + q)] * y.w[static_cast<size_t>(q * m + j)];
      }
  push("matmul" + names, x.t.matmul(y.t), {n, m}, v, grad);
}

void Program::push_reduced() {
  const Var x = pick();
  const Shape s = x.w.sizes;
  const int64_t kind = tape_.below(4);
  const std::string name = "v" + std::to_string(x.number);
  if (s.empty() || kind == 0) {
    Dual sum;
    for (size_t i = 0; i < x.w.at.size(); ++i) sum = sum + x.w[i];
    return push(name + ".sum", x.t.sum(), {}, {sum}, x.w.grad());
  }
  const int64_t d = tape_.below(static_cast<int64_t>(s.size()));
  const size_t at = static_cast<size_t>(d);
  Shape sizes = s;
  if (kind == 3) {  // rows chosen, some of them twice
    if (s[at] == 0) return;
    Tensor index(TensorBase::empty({3}, kLong, Device(kCPU, 0)));
    for (int k = 0; k < 3; ++k) index.data_ptr<int64_t>()[k] = tape_.below(s[at]);
    sizes[at] = 3;
    if (count(sizes) > kMaxElements) return;
    std::vector<Dual> v;
    each(sizes, [&](Shape i) {
      i[at] = index.data_ptr<int64_t>()[i[at]];
      v.push_back(x.w[place(s, i)]);
    });
    return push(name + ".index_select", x.t.index_select(d, index), sizes, v, x.w.grad());
  }
  if (kind == 2 && s[at] == 0) return;
  sizes[at] = 1;
  std::vector<Dual> v(static_cast<size_t>(count(sizes)));
  size_t n = 0;
  each(s, [&](const Shape& i) {
    Shape to = i;
    to[at] = 0;
    Dual& sum = v[place(sizes, to)];
    sum = sum + x.w[n++];
  });
  if (kind == 2)
    for (Dual& sum : v) sum = sum * number(1.0 / static_cast<double>(s[at]));
  const bool keep = tape_.one_in(2);
  if (!keep) sizes.erase(sizes.begin() + d);
  push(name + (kind == 1 ? ".sum(d)" : ".mean(d)"),
       kind == 1 ? x.t.sum(d, keep) : x.t.mean(d, keep), sizes, v, x.w.grad());
}

}  // namespace fuzz
}  // namespace ramet
