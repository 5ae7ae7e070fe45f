// Rows of ./tools/bench models: training steps of models, and the operations that dominate them. It
// is a program for LibTorch that is compiled twice without changes. One build uses this library
// through the LibTorch compatibility headers, the other LibTorch for ./tools/bench models --torch.
#include "rows_models.h"

#include <ATen/autocast_mode.h>

#include "rows_data.h"

namespace nn = torch::nn;
namespace F = torch::nn::functional;
namespace autocast = at::autocast;
using torch::Tensor;

using Step = std::function<Tensor()>;
Step model_step;
Tensor model_out;

namespace {

// The parameters for the comparison of the arms' gradients.
std::vector<Tensor> parameters;

Tensor filled(std::vector<int64_t> sizes, double scale, int seed = 0) {
  Tensor t = torch::empty(sizes);
  fill_row_data(t.data_ptr<float>(), t.numel(), scale, seed);
  return t;
}
/// Whole numbers below n that repeat late.
Tensor numbers(std::vector<int64_t> sizes, int64_t n) {
  Tensor t = torch::empty(sizes, torch::kLong);
  for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<int64_t>()[i] = (i * 7919 + i / n) % n;
  return t;
}

// ------------------------------------------------------------------------------------ training

/// The same start in every arm; the weights of norms stay 1.
template <class Net> Net started(Net net) {
  torch::NoGradGuard off;
  int seed = 10;
  for (auto& p : net->named_parameters()) {
    Tensor& t = p.value();
    const double fan_in = double(t.numel()) / double(t.size(0));
    if (t.dim() > 1 || p.key().find("bias") != std::string::npos)
      t.copy_(filled(t.sizes().vec(), t.dim() > 1 ? std::sqrt(3 / fan_in) : .1, seed++));
    parameters.push_back(t);
  }
  return net;
}

using Optimizer = std::shared_ptr<torch::optim::AdamW>;
template <class Net> Optimizer adam(const Net& net) {
  return std::make_shared<torch::optim::AdamW>(net->parameters(), torch::optim::AdamWOptions(1e-3));
}

/// Autocast to bfloat16 during its lifetime, by the functions that both libraries have.
class Bfloat16Autocast {
 public:
  Bfloat16Autocast() {
    autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    autocast::set_autocast_enabled(at::kCPU, true);
    autocast::increment_nesting();
  }
  ~Bfloat16Autocast() {
    if (autocast::decrement_nesting() == 0) autocast::clear_cache();
    autocast::set_autocast_enabled(at::kCPU, false);
  }
};

/// A step with a loss that is a function of net, in float32 or in mixed precision.
template <class Net, class Loss> Step training(Net net, Loss loss, bool mixed = false) {
  started(net);
  return [=, optimizer = adam(net)]() mutable {
    optimizer->zero_grad();
    Tensor l;
    {
      std::optional<Bfloat16Autocast> casts;
      if (mixed) casts.emplace();
      l = loss(net).to(torch::kFloat);
    }
    l.backward();
    optimizer->step();
    return l.detach();
  };
}

template <class M, bool mixed = false> Step recurrent() {
  const Tensor x = filled({64, 128, 256}, 1), y = filled({128, 256}, .5, 1);
  const auto loss = [=](M& net) {
    return torch::mse_loss(std::get<0>(net->forward(x)).select(0, -1), y);
  };
  return training(M(256, 256), loss, mixed);
}

struct BlockImpl : nn::Module {
  BlockImpl(int64_t width, int64_t heads_)
      : heads(heads_),
        norm1(register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})))),
        norm2(register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})))),
        packed(register_module("packed", nn::Linear(width, 3 * width))),
        joined(register_module("joined", nn::Linear(width, width))),
        wide(register_module("wide", nn::Linear(width, 4 * width))),
        narrow(register_module("narrow", nn::Linear(4 * width, width))) {}
  Tensor forward(const Tensor& x) {
    const int64_t n = x.size(0), length = x.size(1), width = x.size(2);
    const auto qkv = packed(norm1(x)).view({n, length, 3, heads, width / heads}).unbind(2);
    const Tensor seen = torch::scaled_dot_product_attention(
        qkv[0].transpose(1, 2), qkv[1].transpose(1, 2), qkv[2].transpose(1, 2), {}, 0,
        /*is_causal=*/true);
    const Tensor y = x + joined(seen.transpose(1, 2).reshape({n, length, width}));
    return y + narrow(F::gelu(wide(norm2(y))));
  }
  int64_t heads;
  nn::LayerNorm norm1, norm2;
  nn::Linear packed, joined, wide, narrow;
};
TORCH_MODULE(Block);

struct GptImpl : nn::Module {
  GptImpl(int64_t symbols, int64_t length, int64_t width, int64_t heads, int64_t layers)
      : symbol(register_module("symbol", nn::Embedding(symbols, width))),
        place(register_module("place", nn::Embedding(length, width))),
        norm(register_module("norm", nn::LayerNorm(nn::LayerNormOptions({width})))),
        logits(register_module("logits", nn::Linear(width, symbols))) {
    for (int64_t i = 0; i < layers; ++i) blocks->push_back(Block(width, heads));
    register_module("blocks", blocks);
  }
  Tensor forward(const Tensor& text) {
    return logits(norm(blocks->forward(symbol(text) + place(torch::arange(text.size(1))))));
  }
  nn::Embedding symbol, place;
  nn::Sequential blocks;
  nn::LayerNorm norm;
  nn::Linear logits;
};
TORCH_MODULE(Gpt);
template <bool mixed> Step gpt() {
  const Tensor text = numbers({4, 256}, 65), next = text.roll(-1, 1).flatten();
  const auto loss = [=](Gpt& net) {
    return F::cross_entropy(net->forward(text).view({-1, 65}), next);
  };
  return training(Gpt(65, 256, 384, 6, 6), loss, mixed);
}

template <bool mixed> Step transformer_block() {
  const Tensor x = filled({128, 16, 256}, 1), y = filled({128, 16, 256}, 1, 1);
  using M = nn::TransformerEncoderLayer;
  return training(M(nn::TransformerEncoderLayerOptions(256, 8).dim_feedforward(1024).dropout(0)),
                  [=](M& net) { return torch::mse_loss(net->forward(x), y); }, mixed);
}

nn::Conv2d conv(int64_t from, int64_t to, int64_t size, int64_t stride, int64_t padding) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, size).stride(stride).padding(padding).bias(false));
}
nn::ConvTranspose2d up(int64_t from, int64_t to, int64_t size, int64_t stride, int64_t padding) {
  return nn::ConvTranspose2d(
      nn::ConvTranspose2dOptions(from, to, size).stride(stride).padding(padding).bias(false));
}

// Images of 28 x 28, 64 of them.
Step dcgan() {
  nn::Sequential generator(up(100, 256, 4, 1, 0), nn::BatchNorm2d(256), nn::ReLU(),
                           up(256, 128, 3, 2, 1), nn::BatchNorm2d(128), nn::ReLU(),
                           up(128, 64, 4, 2, 1), nn::BatchNorm2d(64), nn::ReLU(),
                           up(64, 1, 4, 2, 1), nn::Tanh());
  const auto leaky = [] { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(.2)); };
  nn::Sequential judge(conv(1, 64, 4, 2, 1), leaky(), conv(64, 128, 4, 2, 1), nn::BatchNorm2d(128),
                       leaky(), conv(128, 256, 4, 2, 1), nn::BatchNorm2d(256), leaky(),
                       conv(256, 1, 3, 1, 0), nn::Flatten());
  started(generator), started(judge);
  const Tensor real = filled({64, 1, 28, 28}, 1), noise = filled({64, 100, 1, 1}, 1, 1);
  const Tensor ones = torch::ones({64, 1}), zeros = torch::zeros({64, 1});
  return [=, of_generator = adam(generator), of_judge = adam(judge)]() mutable {
    of_judge->zero_grad();
    const Tensor fake = generator->forward(noise);
    Tensor loss = F::binary_cross_entropy_with_logits(judge->forward(real), ones) +
                  F::binary_cross_entropy_with_logits(judge->forward(fake.detach()), zeros);
    loss.backward();
    of_judge->step();
    of_generator->zero_grad();
    F::binary_cross_entropy_with_logits(judge->forward(fake), ones).backward();
    of_generator->step();
    return loss.detach();
  };
}

struct ResidualImpl : nn::Module {
  ResidualImpl(int64_t from, int64_t to, int64_t stride)
      : path(register_module(
            "path", nn::Sequential(conv(from, to, 3, stride, 1), nn::BatchNorm2d(to), nn::ReLU(),
                                   conv(to, to, 3, 1, 1), nn::BatchNorm2d(to)))),
        shortcut(register_module("shortcut", nn::Sequential())) {
    if (from == to) return;
    shortcut->push_back(conv(from, to, 1, stride, 0));
    shortcut->push_back(nn::BatchNorm2d(to));
  }
  Tensor forward(const Tensor& x) {
    return torch::relu(path->forward(x) + (shortcut->is_empty() ? x : shortcut->forward(x)));
  }
  nn::Sequential path, shortcut;
};
TORCH_MODULE(Residual);
// Pictures of CIFAR, 128 of them.
template <bool mixed> Step resnet() {
  const Tensor x = filled({128, 3, 32, 32}, 1), y = numbers({128}, 10);
  nn::Sequential net(conv(3, 16, 3, 1, 1), nn::BatchNorm2d(16), nn::ReLU(), Residual(16, 16, 1),
                     Residual(16, 32, 2), Residual(32, 64, 2), nn::AdaptiveAvgPool2d(1),
                     nn::Flatten(), nn::Linear(64, 10));
  return training(
      net, [=](nn::Sequential& n) { return F::cross_entropy(n->forward(x), y); }, mixed);
}

nn::Sequential twice(int64_t from, int64_t to) {
  return nn::Sequential(conv(from, to, 3, 1, 1), nn::BatchNorm2d(to), nn::ReLU(),
                        conv(to, to, 3, 1, 1), nn::BatchNorm2d(to), nn::ReLU());
}
struct UNetImpl : nn::Module {
  UNetImpl()
      : down1(register_module("down1", twice(1, 16))),
        down2(register_module("down2", twice(16, 32))),
        bottom(register_module("bottom", twice(32, 64))),
        side2(register_module("side2", twice(64, 32))),
        side1(register_module("side1", twice(32, 16))),
        up2(register_module("up2", up(64, 32, 2, 2, 0))),
        up1(register_module("up1", up(32, 16, 2, 2, 0))),
        mask(register_module("mask", conv(16, 1, 1, 1, 0))) {}
  Tensor forward(const Tensor& image) {
    const Tensor a = down1->forward(image), b = down2->forward(torch::max_pool2d(a, 2));
    const Tensor c = bottom->forward(torch::max_pool2d(b, 2));
    const Tensor d = side2->forward(torch::cat({b, up2(c)}, 1));
    return mask(side1->forward(torch::cat({a, up1(d)}, 1)));
  }
  nn::Sequential down1, down2, bottom, side2, side1;
  nn::ConvTranspose2d up2, up1;
  nn::Conv2d mask;
};
TORCH_MODULE(UNet);
Step unet() {
  // (With this image no ReLU is so near 0 that rounding decides.)
  const Tensor x = filled({8, 1, 64, 64}, 1, 104);
  const Tensor y = (filled({8, 1, 64, 64}, 1, 1) > 0).to(x.dtype());
  return training(
      UNet(), [=](UNet& net) { return F::binary_cross_entropy_with_logits(net->forward(x), y); });
}

// At most 20 iterations, each time from the same start.
Step lbfgs() {
  const Tensor x = filled({256, 16}, 1), y = x.sin().sum(1, true);
  nn::Sequential net = started(nn::Sequential(nn::Linear(16, 64), nn::Tanh(), nn::Linear(64, 1)));
  std::vector<Tensor> start;
  for (const Tensor& p : net->parameters()) start.push_back(p.detach().clone());
  return [=]() mutable {
    {
      torch::NoGradGuard off;
      for (size_t i = 0; i < start.size(); ++i) net->parameters()[i].copy_(start[i]);
    }
    torch::optim::LBFGS optimizer(net->parameters(), torch::optim::LBFGSOptions(.1));
    return optimizer.step([&] {
      optimizer.zero_grad();
      Tensor loss = torch::mse_loss(net->forward(x), y);
      loss.backward();
      return loss;
    });
  };
}

// ---------------------------------------------------------------------------------- operations

/// f's result without gradients, or what f gives and backward of it.
template <class Function> Step forward(Function f) {
  return [=] {
    torch::NoGradGuard off;
    return f();
  };
}
template <class Function> Step both(std::vector<Tensor> inputs, Function f) {
  for (Tensor& t : inputs) parameters.push_back(t.requires_grad_());
  const Tensor gradient = filled(f().sizes().vec(), 1, 3);
  return [=]() mutable {
    for (Tensor& t : inputs) t.mutable_grad() = Tensor();
    Tensor y = f();
    y.backward(gradient);
    return y.detach();
  };
}

template <bool Backward> Step group_norm() {
  const Tensor x = filled({32, 64, 32, 32}, 2), w = filled({64}, 1, 1), b = filled({64}, 1, 2);
  const auto f = [=] { return torch::group_norm(x, 32, w, b); };
  return Backward ? both({x, w, b}, f) : forward(f);
}
// A layer of a DCGAN's generator.
template <bool Backward> Step transposed() {
  const Tensor x = filled({32, 64, 16, 16}, 2), w = filled({64, 32, 4, 4}, 1, 1);
  const Tensor b = filled({32}, 1, 2);
  const auto f = [=] { return torch::conv_transpose2d(x, w, b, 2, 1); };
  return Backward ? both({x, w, b}, f) : forward(f);
}
template <bool Backward, class Mode> Step interpolated(Mode mode) {
  const Tensor x = filled({16, 32, 32, 32}, 2);
  auto options = F::InterpolateFuncOptions().size(std::vector<int64_t>{64, 64}).mode(mode);
  if (!std::is_same_v<Mode, torch::enumtype::kNearest>) options.align_corners(false);
  const auto f = [=] { return F::interpolate(x, options); };
  return Backward ? both({x}, f) : forward(f);
}
Step nearest() { return interpolated<false>(torch::kNearest); }
template <bool Backward> Step bilinear() { return interpolated<Backward>(torch::kBilinear); }
template <bool Backward> Step bicubic() { return interpolated<Backward>(torch::kBicubic); }

Step sort() {
  return forward([x = filled({1024, 1024}, 1)] { return std::get<0>(x.sort(1)); });
}
Step sort_long() {
  return forward([x = filled({1000000}, 1)] { return std::get<0>(x.sort()); });
}
Step topk() {
  return forward([x = filled({1024, 1024}, 1)] { return std::get<0>(x.topk(10, 1)); });
}
template <int Dim> Step cumsum() {
  return forward([x = filled({4096, 1024}, 1)] { return x.cumsum(Dim); });
}
Step einsum() {
  const Tensor q = filled({8, 128, 8, 32}, 1), k = filled({8, 128, 8, 32}, 1, 1);
  return both({q, k}, [=] { return torch::einsum("bihd,bjhd->bhij", {q, k}); });
}
Step scatter_add() {
  const Tensor to = torch::zeros({4096, 64}), x = filled({65536, 64}, 1);
  const Tensor at = numbers({65536, 1}, 4096).expand({65536, 64});
  return both({x}, [=] { return torch::scatter_add(to, 0, at, x); });
}
Step embedding_bag() {
  const Tensor table = filled({20000, 64}, 1), words = numbers({512, 32}, 20000);
  const auto options = F::EmbeddingBagFuncOptions().mode(torch::kMean);
  return both({table}, [=] { return F::embedding_bag(words, table, options); });
}

template <Step (*make)()> void setup() { model_step = make(); }
void run(long n) {
  while (n-- > 0) model_out = model_step();
}
/// Each gradient on a scale of its own, or the smaller ones would not count.
int values(double* to, int room) {
  int n = 0;
  const auto put = [&](const Tensor& t, int most) {
    const Tensor flat = t.contiguous().flatten();
    n += sample_values(flat.data_ptr<float>(), flat.numel(), to + n, most);
  };
  put(model_out, room / 2);
  const int each = (room - n) / std::max(1, int(parameters.size()));
  for (const Tensor& p : parameters) put(p.grad() / p.grad().abs().max().clamp_min(1e-30), each);
  return n;
}
void release() {
  model_step = nullptr;
  model_out = Tensor();
  parameters.clear();
}

#define RAMET_ROW(label, inner, ...) \
  { label, "ms", 1e3, 0, inner, setup<__VA_ARGS__>, run, values, release }
// Two libraries round to 16 bits at other places.
#define RAMET_MIXED_ROW(label, inner, ...) \
  { label, "ms", 1e3, 0, inner, setup<__VA_ARGS__>, run, values, release, .1 }
const BenchRow kRows[] = {
    RAMET_ROW("LSTM 128x256, 64 steps", 1, recurrent<nn::LSTM>),
    RAMET_ROW("GRU 128x256, 64 steps", 1, recurrent<nn::GRU>),
    RAMET_ROW("GPT 6 x 384, 4x256 tokens", 1, gpt<false>),
    RAMET_ROW("Transformer block", 2, transformer_block<false>),
    RAMET_ROW("DCGAN step b64", 1, dcgan),
    RAMET_ROW("ResNet-8 CIFAR step b128", 1, resnet<false>),
    RAMET_ROW("U-Net 64x64 step b8", 1, unet),
    RAMET_MIXED_ROW("LSTM, bfloat16 autocast", 1, recurrent<nn::LSTM, true>),
    RAMET_MIXED_ROW("GPT, bfloat16 autocast", 1, gpt<true>),
    RAMET_MIXED_ROW("Transformer, bfloat16 autocast", 2, transformer_block<true>),
    RAMET_MIXED_ROW("ResNet-8, bfloat16 autocast", 1, resnet<true>),
    RAMET_ROW("LBFGS step, 20 iterations", 5, lbfgs),
    RAMET_ROW("group_norm 32x64x32x32", 5, group_norm<false>),
    RAMET_ROW("group_norm fwd+bwd", 5, group_norm<true>),
    RAMET_ROW("conv_transpose2d 64-32 4x4", 5, transposed<false>),
    RAMET_ROW("conv_transpose2d fwd+bwd", 5, transposed<true>),
    RAMET_ROW("nearest 16x32x32x32 to 64x64", 5, nearest),
    RAMET_ROW("bilinear 16x32x32x32 to 64x64", 5, bilinear<false>),
    RAMET_ROW("bilinear fwd+bwd", 5, bilinear<true>),
    RAMET_ROW("bicubic fwd+bwd", 2, bicubic<true>),
    RAMET_ROW("sort 1024x1024", 1, sort),
    RAMET_ROW("sort 1M", 1, sort_long),
    RAMET_ROW("topk 10 of 1024x1024", 5, topk),
    RAMET_ROW("cumsum 4096x1024, dim 1", 5, cumsum<1>),
    RAMET_ROW("cumsum 4096x1024, dim 0", 5, cumsum<0>),
    RAMET_ROW("einsum bihd,bjhd->bhij fwd+bwd", 5, einsum),
    RAMET_ROW("scatter_add 64k rows fwd+bwd", 2, scatter_add),
    RAMET_ROW("embedding_bag 512x32 fwd+bwd", 5, embedding_bag),
};

}  // namespace

BenchArm open_models_arm(int threads) {
  torch::set_num_threads(threads);
  // (No caller asks for the name of this library's own arm.)
  return {"LibTorch " TORCH_VERSION, kRows, static_cast<int>(sizeof kRows / sizeof *kRows)};
}
