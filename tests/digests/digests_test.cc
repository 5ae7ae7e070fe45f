// Digests of results: the same bits on x86-64 (v3 and v4) and on ARM64, for any number of threads.
// The variant `base` rounds twice where these round once, so it has others: those of WebAssembly.
//
// A digest that differs says which family of kernels changed.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/kernel.h"
#include "parallel/apply/data_parallel.h"
#include "ramet.h"

namespace ramet {
namespace {

/// FNV-1a over the bytes of tensors.
class Digest {
 public:
  void add(const Tensor& t) {
    const Tensor x = t.detach().to(kCPU).contiguous();
    const auto* p = static_cast<const unsigned char*>(x.data_ptr());
    const int64_t n = x.numel() * x.element_size();
    for (int64_t i = 0; i < n; ++i) value_ = (value_ ^ p[i]) * 0x100000001b3u;
    nan_ = nan_ || (x.is_floating_point() && x.isnan().any().item<bool>());
  }
  uint64_t value() const { return value_; }
  /// The sign of a NaN that an operation makes is the processor's.
  bool has_nan() const { return nan_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
  bool nan_ = false;
};

// A compiler chooses in which order it makes the arguments of a call. So each draw has a name.
constexpr ScalarType kFloats[] = {kFloat, kDouble, kHalf, kBFloat16};

void draws(Digest& d) {
  for (const ScalarType dtype : kFloats) {
    d.add(rand({1000}, dtype));
    d.add(randn({1000}, dtype));
    d.add(empty({1000}, dtype).exponential_());
    d.add(bernoulli(full({1000}, 0.3, dtype)));
  }
  d.add(randint(-5, 1000000, {1000}, kLong));
  d.add(randperm(777));
  d.add(multinomial(rand({20}), 50, true));
}

void products(Digest& d) {
  for (const ScalarType dtype : kFloats) {
    for (const int64_t n : {1, 7, 33, 130}) {
      const Tensor a = randn({n, 2 * n + 1}, dtype), b = randn({2 * n + 1, n + 3}, dtype);
      d.add(a.matmul(b));
      d.add(b.t().matmul(a.t()));
      d.add(a.matmul(b.narrow(1, 0, 1)));
    }
    const Tensor a = randn({3, 9, 17}, dtype), b = randn({3, 17, 5}, dtype);
    d.add(bmm(a, b));
    const Tensor x = randn({2, 6, 13, 11}, dtype), w = randn({8, 6, 3, 3}, dtype),
                 bias = randn({8}, dtype);
    d.add(conv2d(x, w, bias));
  }
  const Tensor a = randint(-9, 9, {40, 50}, kLong), b = randint(-9, 9, {50, 30}, kLong);
  d.add(a.matmul(b));
}

void reductions(Digest& d) {
  for (const ScalarType dtype : kFloats) {
    const Tensor x = randn({37, 1021}, dtype);
    for (const int64_t dim : {0, 1}) {
      d.add(x.sum(dim));
      d.add(x.mean(dim));
      d.add(x.var(dim));
      d.add(std::get<0>(x.max(dim)));
      d.add(std::get<1>(x.min(dim)));
      d.add(x.cumsum(dim));
      d.add(x.logsumexp(dim));
      d.add(x.norm(2, {dim}));
    }
    d.add(x.sum());
    d.add(x.std());
  }
  d.add(randint(-1000, 1000, {100000}, kLong).sum());
}

void rows(Digest& d) {
  for (const ScalarType dtype : kFloats) {
    const Tensor x = randn({19, 203}, dtype).requires_grad_();
    const Tensor w = randn({203}, dtype), target = randint(0, 203, {19}, kLong);
    std::vector<Tensor> results = {softmax(x, 1), log_softmax(x, 0), layer_norm(x, {203}, w, w),
                                   nn::functional::cross_entropy(x, target), x.sigmoid()};
    if (dtype != kDouble) results.push_back(gelu(x));  // kFloatFunctions says why
    for (const Tensor& y : results) {
      d.add(y);
      d.add(autograd::grad({(y * y).sum()}, {x})[0]);
    }
  }
}

// Floats over the whole range in which the functions are numbers.
Tensor spread(ScalarType dtype) {
  const Tensor x = randn({20000}, kDouble), power = randint(-8, 3, {20000}, kLong).to(kDouble);
  return (x * pow(10, power)).clamp(-80, 80).to(dtype);
}

using Function = Tensor (*)(const Tensor&);
void functions(Digest& d, ScalarType dtype, const std::vector<Function>& all) {
  const Tensor x = spread(dtype);
  for (const Function f : all) d.add(f(x));
}
const std::vector<Function> kFunctions = {
    [](const Tensor& x) { return x.exp(); },
    [](const Tensor& x) { return x.expm1(); },
    [](const Tensor& x) { return (x.abs() + 1e-30).log(); },
    [](const Tensor& x) { return (x.abs() + 1e-30).log2(); },
    [](const Tensor& x) { return x.abs().log1p(); },
    [](const Tensor& x) { return (x * 1000).sin(); },
    [](const Tensor& x) { return (x * 1000).cos(); },
    [](const Tensor& x) { return x.tan(); },
    [](const Tensor& x) { return x.tanh(); },
    [](const Tensor& x) { return x.sinh(); },
    [](const Tensor& x) { return x.cosh(); },
    [](const Tensor& x) { return x.atan(); },
    [](const Tensor& x) { return x.asinh(); },
    [](const Tensor& x) { return (x.abs() + 1).acosh(); },
    [](const Tensor& x) { return x.sin().asin(); },
    [](const Tensor& x) { return x.sin().acos(); },
    [](const Tensor& x) { return x.sigmoid(); },
    [](const Tensor& x) { return x.abs().sqrt(); },
    [](const Tensor& x) { return x.abs().pow(0.37); },
    [](const Tensor& x) { return x.round() + x.floor() + x.ceil() + x.trunc(); },
    [](const Tensor& x) { return atan2(x, x.flip(0)); },
    [](const Tensor& x) { return fmod(x, 0.7); },
};
// The C library's erf and erfc for doubles differ in a last place (tools/libm.txt).
const std::vector<Function> kFloatFunctions = {
    [](const Tensor& x) { return x.erf(); },
    [](const Tensor& x) { return gelu(x); },
};

const std::vector<Function> kOwnFunctions = {
    [](const Tensor& x) { return x.exp2(); },
    [](const Tensor& x) { return hypot(x, x.flip(0)); },
};

// `steps` of Adam on the mean square of net(x) - y.
template <class Net, class Call> void train(Digest& d, Net& net, int steps, const Call& loss_of) {
  optim::Adam adam(net->parameters(), optim::AdamOptions(1e-3));
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    const Tensor loss = loss_of();
    loss.backward();
    adam.step();
    d.add(loss);
  }
  for (const Tensor& p : net->parameters()) d.add(p);
}

void cnn(Digest& d) {
  nn::Sequential net{nn::Conv2d(nn::Conv2dOptions(1, 8, 3).padding(1)),
                     nn::BatchNorm2d(8),
                     nn::ReLU(),
                     nn::MaxPool2d(2),
                     nn::Conv2d(nn::Conv2dOptions(8, 16, 3)),
                     nn::ReLU(),
                     nn::Dropout(0.2),
                     nn::Flatten(),
                     nn::Linear(16 * 5 * 5, 10)};
  const Tensor x = randn({16, 1, 14, 14}), y = randint(0, 10, {16}, kLong);
  train(d, net, 20, [&] { return nn::functional::cross_entropy(net->forward(x), y); });
}

void transformer(Digest& d) {
  nn::TransformerEncoderLayer net(
      nn::TransformerEncoderLayerOptions(32, 4).dim_feedforward(64).dropout(0.1));
  const Tensor x = randn({11, 3, 32}), y = randn({11, 3, 32});
  train(d, net, 20, [&] { return mse_loss(net->forward(x), y); });
}

void lstm(Digest& d) {
  nn::LSTM net(nn::LSTMOptions(12, 20).num_layers(2));
  const Tensor x = randn({9, 4, 12}), y = randn({9, 4, 20});
  train(d, net, 20, [&] { return mse_loss(std::get<0>(net->forward(x)), y); });
}

void three_devices(Digest& d) {
  nn::Sequential net{nn::Linear(20, 30), nn::Tanh(), nn::Linear(30, 4)};
  const Tensor x = randn({12, 20}), y = randn({12, 4});
  const std::vector<Device> devices{Device(kCPU, 0), Device(kCPU, 1), Device(kCPU, 2)};
  train(d, net, 20, [&] { return mse_loss(nn::parallel::data_parallel(net, x, devices), y); });
}

struct Row {
  const char* name;
  uint64_t fused, base;
  std::function<void(Digest&)> run;
  /// In WebAssembly, where functions of its C library differ in a last place (tools/libm.txt);
  /// 0: as `base`.
  uint64_t wasm = 0;
};

const std::vector<Row>& rows_of_digests() {
  static const std::vector<Row> all = {
      {"draws", 0x72f720b38162ba6b, 0xd31b8c6ea8b3778e, draws},
      {"products", 0x69a97f1215b5d307, 0xaef921b8adbbd36f, products},
      {"reductions", 0x816f98ca9bcca17a, 0xc7ab1f4f909f1471, reductions},
      {"rows", 0x768291b18232309d, 0xaa1dee3aa93e112a, rows, 0xb74361635ca678c6},
      {"functions of floats", 0x34c142963aef7680, 0x40c8ec0b36b1d281,
       [](Digest& d) { functions(d, kFloat, kFunctions); }, 0x41d14dc47c0b6c64},
      {"more functions of floats", 0xef5ad1303e01ecb3, 0x3d51374666b4cfb9,
       [](Digest& d) { functions(d, kFloat, kFloatFunctions); }},
      {"functions of doubles", 0x622595da6d7719ae, 0x622595da6d7719ae,
       [](Digest& d) { functions(d, kDouble, kFunctions); }, 0xa2f9a88a96eb9fab},
      {"functions of bfloat16", 0x59a1b067512cc689, 0x59a1b067512cc689,
       [](Digest& d) { functions(d, kBFloat16, kFunctions); }},
      {"exp2 and hypot", 0x897e43b91939f22c, 0x897e43b91939f22c,
       [](Digest& d) {
         functions(d, kFloat, kOwnFunctions);
         functions(d, kDouble, kOwnFunctions);
       }},
      {"20 steps of a CNN", 0x428f75e5c810c129, 0xf9dd6d2704c386e3, cnn},
      {"20 steps of a Transformer's layer", 0x3849d6b673242d92, 0xb79cd159c0379f22, transformer},
      {"20 steps of an LSTM", 0x82ab511b9db035f0, 0x05e95a06c82a9358, lstm},
      {"20 steps on three devices", 0x71f5a7abc494facd, 0x7c3cb88ede68ab55, three_devices},
  };
  return all;
}

// The digest of the variant in use.
uint64_t expected(const Row& row) {
#if defined(__EMSCRIPTEN__)
  return row.wasm ? row.wasm : row.base;
#elif defined(__x86_64__)
  kernels::choose_variant();
  const bool base = kernels::chosen_variant.load() == static_cast<uint8_t>(kernels::Variant::kBase);
  return base ? row.base : row.fused;
#else
  return row.fused;
#endif
}

TEST(Digests, AreThoseOfEachProcessor) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "the C library has other functions there";
#endif
  const int threads = get_num_threads();
  for (const Row& row : rows_of_digests())
    for (const int n : {1, 3}) {
      set_num_threads(n);
      manual_seed(20);
      Digest d;
      row.run(d);
      EXPECT_FALSE(d.has_nan()) << row.name;
      EXPECT_EQ(d.value(), expected(row))
          << row.name << ", " << n << " threads: 0x" << std::hex << d.value();
    }
  set_num_threads(threads);
}

}  // namespace
}  // namespace ramet
