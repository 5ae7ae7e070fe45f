// What gdb_printers_test.sh inspects.
#include <cstdio>

#include "ramet.h"

namespace {

using namespace ramet;

struct NetImpl : nn::Module {
  NetImpl() {
    fc = register_module("fc", nn::Linear(2, 3));
    act = register_module("act", nn::ReLU());
    scale = register_buffer("scale", half_of_each());
  }
  static Tensor half_of_each() { return full({2}, 0.5); }
  Tensor forward(const Tensor& x) { return act(fc(x)); }
  nn::Linear fc{nullptr};
  nn::ReLU act{nullptr};
  Tensor scale;
};
RAMET_MODULE(Net);

// The test stops here.
[[gnu::noinline]] void look(const Tensor& x, const Tensor& leaf, const Tensor& half,
                            const Tensor& many, const Tensor& product, const Tensor& undefined,
                            const autograd::NodePtr& node, const Storage& storage, Net& net,
                            autograd::Node* raw, NetImpl* module) {
  asm volatile("" ::"r"(&x), "r"(&leaf), "r"(&half), "r"(&many), "r"(&product), "r"(&undefined)
               : "memory");
  asm volatile("" ::"r"(&node), "r"(&storage), "r"(&net), "r"(raw), "r"(module) : "memory");
  std::puts("looked");
}

}  // namespace

int main() {
  manual_seed(1);
  const Tensor x = arange(6, kFloat).view({2, 3}).t();  // not contiguous: 0 3 / 1 4 / 2 5
  const Tensor leaf = full({2, 2}, 1.5, kDouble).requires_grad_();
  const Tensor half = full({3}, -2.5, kBFloat16);
  Tensor many = arange(100, kLong);
  many.add_(7);
  const Tensor product = (leaf * 3).sum();
  product.backward(Tensor(), /*retain_graph=*/true);
  const Tensor sum = cat({leaf, leaf}).relu();
  Net net;
  net->fc->weight.data().fill_(0.25);
  net->eval();
  const Tensor out = net->forward(full({1, 2}, 2.0));
  const Storage storage = many.storage();
  look(x, leaf, half, many, product, Tensor(), sum.grad_fn(), storage, net, out.grad_fn().get(),
       net.get());
}
