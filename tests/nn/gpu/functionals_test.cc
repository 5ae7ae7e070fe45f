// Functions of nn::functional, and recurrent layers, on a GPU: values and gradients as on the CPU,
// and all of it queued there.
#include "autograd/autograd.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/pointwise/arithmetic.h"
#include "autograd/ops/reduce/reduce.h"
#include "autograd/ops/shape/view.h"
#include "nn/formats/dlpack.h"
#include "nn/formats/onnx/onnx.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/layers/sequence/transformer.h"
#include "nn/utils/weight_norm.h"
#include "runtime/devices/gpu.h"
#include "tests/autograd/gpu/gpu_tensors.h"

namespace ramet::kernels {
namespace {

namespace F = nn::functional;

// The module with values of its own, on x's device, in its dtype.
template <class M> M filled(M module, const Tensor& x) {
  module->to(x.device(), x.scalar_type());
  const NoGradGuard off;
  int64_t seed = 5;
  for (const Tensor& p : module->parameters()) p.copy_(drawn(p.sizes(), kDouble, seed++).mul(.4));
  return module;
}

struct Row {
  const char* name;
  Tensor (*f)(const Tensor&);  // of [6, 4, 10]
};

const Row kRows[] = {
    {"relu6", [](const Tensor& x) { return F::relu6(x); }},
    {"elu", [](const Tensor& x) { return F::elu(x); }},
    {"selu, in place", [](const Tensor& x) { return F::selu(x.mul(1), true); }},
    {"celu", [](const Tensor& x) { return F::celu(x, F::CELUFuncOptions().alpha(2)); }},
    {"glu", [](const Tensor& x) { return F::glu(x); }},
    {"silu", [](const Tensor& x) { return F::silu(x); }},
    {"mish", [](const Tensor& x) { return F::mish(x); }},
    {"logsigmoid", [](const Tensor& x) { return F::logsigmoid(x); }},
    {"softsign", [](const Tensor& x) { return F::softsign(x); }},
    {"tanhshrink", [](const Tensor& x) { return F::tanhshrink(x); }},
    {"hardshrink", [](const Tensor& x) { return F::hardshrink(x); }},
    {"softshrink", [](const Tensor& x) { return F::softshrink(x); }},
    {"hardtanh", [](const Tensor& x) { return F::hardtanh(x); }},
    {"threshold", [](const Tensor& x) { return F::threshold(x, F::ThresholdFuncOptions(0, 2)); }},
    {"prelu", [](const Tensor& x) { return F::prelu(x, x.select(0, 0).select(1, 3).detach()); }},
    {"rrelu", [](const Tensor& x) { return F::rrelu(x); }},
    {"pad, constant",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({1, 2, -1, 3}));
     }},
    {"pad, reflect",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, 3, 1}).mode(kReflect));
     }},
    {"pad, replicate",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, -1, 3}).mode(kReplicate));
     }},
    {"pad, circular",
     [](const Tensor& x) {
       return F::pad(x, F::PadFuncOptions({3, 2, 4, 1}).mode(kCircular));
     }},
    {"multi_head_attention, causal",
     [](const Tensor& x) {
       const Tensor last = x.mul(.1);  // columns of 10 elements: two heads of 5
       return std::get<0>(filled(nn::MultiheadAttention(10, 2), x)(
           last, last, last, Tensor(), false, Tensor(), true, /*is_causal=*/true));
     }},
    {"multi_head_attention, added keys, masks, weights",
     [](const Tensor& x) {
       const auto options =
           nn::MultiheadAttentionOptions(10, 2).add_bias_kv(true).add_zero_attn(true);
       const Tensor keys = x.mul(.1).flip(0), padding = x.detach().select(2, 0).t().gt(6),
                    mask = x.detach().select(2, 1).slice(1, 0, 1).expand({6, 6});
       const auto [y, p] =
           filled(nn::MultiheadAttention(options), x)(x.mul(.1), keys, keys, padding, true, mask);
       return y.add(p.sum(-1).t().unsqueeze(-1));
     }},
    {"Transformer, norm first",
     [](const Tensor& x) {
       const auto options = nn::TransformerOptions(10, 2, 1, 1).dim_feedforward(7).dropout(0);
       return filled(nn::Transformer(nn::TransformerOptions(options).norm_first(true)), x)(
           x.mul(.1).flip(0), x.mul(.1));
     }},
    {"weight_norm, spectral_norm",
     [](const Tensor& x) {
       nn::Linear a = nn::utils::weight_norm(nn::Linear(10, 4), "weight", 1),
                  b = nn::utils::spectral_norm(nn::Linear(4, 10));
       for (const Tensor& t : b->buffers()) t.fill_(.5);
       return filled(b, x)(filled(a, x)(x.mul(.1)));
     }},
    {"softmin", [](const Tensor& x) { return F::softmin(x, 1); }},
};

TEST(FunctionalsOnGpu, AsOnTheCpu) {
  for (const Row& row : kRows)
    for (const ScalarType dtype : {kFloat, kDouble}) {
      SCOPED_TRACE(row.name);
      const double tolerance = dtype == kFloat ? 2e-5 : 1e-13;
      std::vector<double> value, gradient;
      for (const Device device : {kHost, kGpu}) {
        const Tensor x = drawn({6, 4, 10}, dtype, 3).to(device).requires_grad_();
        const Tensor y = row.f(x.mul(8));
        EXPECT_EQ(y.device(), device);
        y.mul(y.detach()).sum().backward();
        if (device == kHost) {
          value = numbers(y), gradient = numbers(x.grad());
        } else {
          expect_near(y, value, tolerance, "value");
          expect_near(x.grad(), gradient, tolerance, "gradient");
        }
      }
    }
}

// Outputs and gradients, of gradients too; packed sequences of unlike lengths.
TEST(RecurrentOnGpu, AsOnTheCpu) {
  using nn::utils::rnn::PackedSequence;
  for (const ScalarType dtype : {kFloat, kDouble}) {
    const double tolerance = dtype == kFloat ? 1e-4 : 1e-12;
    std::vector<std::vector<double>> want;
    for (const Device device : {kHost, kGpu}) {
      nn::LSTM lstm(nn::LSTMOptions(5, 8).bidirectional(true));
      nn::GRU gru(16, 7);
      nn::LSTMCell cell(7, 8);
      nn::GRUCell last(8, 3);
      std::vector<Tensor> weights;
      const auto take = [&](nn::Module& m) {
        m.to(device, dtype);
        const NoGradGuard off;
        for (const Tensor& p : m.parameters()) {
          p.copy_(drawn(p.sizes().vec(), dtype, static_cast<int64_t>(weights.size())));
          weights.push_back(p);
        }
      };
      take(*lstm), take(*gru), take(*cell), take(*last);
      const Tensor x = drawn({9, 5}, dtype, 3).to(device).requires_grad_();
      const PackedSequence packed(x, tensor({4, 3, 2}));
      const Tensor y = std::get<0>(gru->forward_with_packed_input(
                                       std::get<0>(lstm->forward_with_packed_input(packed))))
                           .data(),
                   out = last->forward(std::get<0>(cell->forward(y)));
      EXPECT_EQ(out.device(), device);
      weights.push_back(x);
      std::vector<Tensor> all =
          autograd::grad({out.mul(out.detach()).sum()}, weights, {}, true, true);
      Tensor squares = all[0].square().sum();
      for (size_t i = 1; i < all.size(); ++i) squares = squares.add(all[i].square().sum());
      for (const Tensor& g : autograd::grad({squares}, {weights[0], weights[1], x}))
        all.push_back(g);
      all.push_back(out);
      for (size_t i = 0; i < all.size(); ++i) {
        if (device == kHost) want.push_back(numbers(all[i]));
        else expect_near(all[i], want[i], tolerance, std::to_string(i).c_str());
      }
    }
  }
}

// An ONNX file is the same from wherever the module is.
TEST(Onnx, OfAGpu) {
  struct NetImpl : nn::Module {
    NetImpl() {
      fc = register_module("fc", nn::Linear(4, 4));
      lstm = register_module("lstm", nn::LSTM(4, 3));
    }
    Tensor forward(const Tensor& x) {
      return std::get<0>(lstm(fc(x).relu() + x)).select(0, -1).tanh();
    }
    nn::Linear fc{nullptr};
    nn::LSTM lstm{nullptr};
  };
  const auto net = std::make_shared<NetImpl>();
  const Tensor x = drawn({5, 2, 4}, kFloat, 1);
  filled(net, x);
  const auto forward = formats::forward_of(*net);
  const std::string host = formats::onnx_bytes(*net, {x}, {}, forward);
  net->to(kGpu);
  EXPECT_EQ(formats::onnx_bytes(*net, {x.to(kGpu)}, {}, forward), host);
}

// DLPack: a real GPU's memory goes out and comes back without a copy. An emulated GPU's memory is
// not a real GPU's.
TEST(Dlpack, OfAGpu) {
  const Tensor t = drawn({3, 4}, kFloat, 1).to(kGpu).transpose(0, 1);
  if (gpu::library()->card(0) < 0) {
    try {
      to_dlpack(t);
      ADD_FAILURE() << "an emulated GPU's memory went out";
    } catch (const Error& e) {
      EXPECT_NE(
          std::string(e.what()).find("[to_dlpack] got float32[4, 3] on cuda:0, an emulated GPU"),
          std::string::npos)
          << e.what();
    }
    return;
  }
  const Tensor back = from_dlpack(to_dlpack(t));
  EXPECT_EQ(back.device(), kGpu);
  EXPECT_EQ(back.data_ptr(), t.data_ptr());
  EXPECT_EQ(back.strides(), t.strides());
  EXPECT_EQ(numbers(back * 2), numbers(t * 2));
}

}  // namespace
}  // namespace ramet::kernels
