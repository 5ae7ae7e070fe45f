#include "tests/nn/fuzz/fuzz_sizes.h"

#include <algorithm>

#include "autograd/ops.h"
#include "nn/data.h"
#include "nn/functional/functional.h"
#include "nn/init.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/basic/bilinear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/sequence/embedding.h"
#include "nn/layers/sequence/embedding_bag.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/norm/group_norm.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/basic/lora.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/sequence/multihead_attention.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/norm/response_norm.h"
#include "nn/layers/sequence/recurrent.h"
#include "nn/layers/sequence/recurrent_cells.h"
#include "nn/layers/sequence/transformer.h"

namespace ramet {
namespace fuzz {

namespace {

using data::DataLoaderOptions;
namespace samplers = data::samplers;

Right unless(bool wrong, WideShape shape) { return wrong ? Right() : one(std::move(shape)); }

// For a size_t to which a user may pass an int64_t.
using Unsigned = unsigned __int128;
Wide up(size_t n) { return static_cast<Wide>(Unsigned{n}); }

// Indices as a tensor, so that they have a shape and are checked: each below `size`.
Tensor listed(const std::optional<std::vector<size_t>>& batch, size_t size) {
  if (!batch) return empty({0}, kLong);
  for (const size_t i : *batch)
    if (i >= size) return empty({0, 0}, kLong);
  return empty({static_cast<int64_t>(batch->size())}, kLong);
}

template <class Sampler> SizeRow of_distributed(const char* name, bool keeps_all) {
  return {name, [=](SizeDraw& d) {
            const auto size = static_cast<size_t>(d.number("size")),
                       replicas = static_cast<size_t>(d.number("num_replicas")),
                       rank = static_cast<size_t>(d.mostly("rank", 0, 2)),
                       batch = static_cast<size_t>(d.number("batch_size"));
            const bool twice = d.flag("allow_duplicates");
            Right right;
            if (replicas > 0 && rank < replicas) {
              const Wide each = twice ? above(up(size), up(replicas)) : up(size) / up(replicas);
              right = one({std::min(size ? each : 0, up(batch))});
              // Lists of that many indices are more than memory.
              if (keeps_all && size > (size_t{1} << 23)) right = std::nullopt;
              if ((*(right ? right : one({0})))[0][0] > (Wide{1} << 23)) right = std::nullopt;
            }
            d.expect(right, [&] {
              Sampler sampler(size, replicas, rank, twice);
              sampler.reset();
              return listed(sampler.next(batch), size);
            });
          }};
}

}  // namespace

std::vector<SizeRow> size_rows_of_modules() {
  return {
      {"Linear",
       [](SizeDraw& d) {
         const int64_t in = d.number("in_features"), out = d.number("out_features");
         d.expect(unless(in < 0 || out < 0, {out, in}),
                  [&] { return nn::Linear(nn::LinearOptions(in, out).bias(false))->weight; });
       }},
      {"Embedding",
       [](SizeDraw& d) {
         const int64_t rows = d.number("num_embeddings"), cols = d.number("embedding_dim"),
                       padding = d.number("padding_idx");
         const bool pads = d.flag("pads");
         const bool wrong =
             rows < 0 || cols < 0 || (pads && (padding >= rows || padding < -Wide{rows}));
         d.expect(unless(wrong, {rows, cols}), [&] {
           nn::EmbeddingOptions o(rows, cols);
           if (pads) o.padding_idx(padding);
           return nn::Embedding(o)->weight;
         });
       }},
      {"EmbeddingBag",
       [](SizeDraw& d) {
         const int64_t rows = d.number("num_embeddings"), cols = d.number("embedding_dim"),
                       padding = d.number("padding_idx");
         const bool wrong = rows < 0 || cols < 0 || padding >= rows || padding < -Wide{rows};
         d.expect(unless(wrong, {rows, cols}), [&] {
           return nn::EmbeddingBag(nn::EmbeddingBagOptions(rows, cols).padding_idx(padding))
               ->weight;
         });
       }},
      {"LoRALinear",
       [](SizeDraw& d) {
         const int64_t in = d.number("in_features"), out = d.number("out_features"),
                       rank = d.mostly("rank", 1, 4);
         d.expect(unless(in < 0 || out < 0 || rank < 1 || rank > std::min(in, out), {out, in}),
                  [&] {
                    return nn::LoRALinear(nn::LoRALinearOptions(in, out, rank).bias(false))->weight;
                  });
       }},
      {"Bilinear",
       [](SizeDraw& d) {
         const int64_t in1 = d.number("in1_features"), in2 = d.number("in2_features"),
                       out = d.number("out_features");
         d.expect(unless(in1 <= 0 || in2 < 0 || out < 0, {out, in1, in2}), [&] {
           return nn::Bilinear(nn::BilinearOptions(in1, in2, out).bias(false))->weight;
         });
       }},
      {"LayerNorm",
       [](SizeDraw& d) {
         const std::vector<int64_t> shape = d.numbers("normalized_shape", 0, 3);
         const bool wrong =
             std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; });
         d.expect(unless(wrong, wide(shape)),
                  [&] { return nn::LayerNorm(nn::LayerNormOptions(shape))->weight; });
       }},
      {"GroupNorm",
       [](SizeDraw& d) {
         const int64_t groups = d.mostly("num_groups", 1, 2), channels = d.number("num_channels");
         const bool wrong = groups <= 0 || channels < 0 || channels % groups != 0;
         d.expect(unless(wrong, {channels}),
                  [&] { return nn::GroupNorm(nn::GroupNormOptions(groups, channels))->weight; });
       }},
      {"InstanceNorm",
       [](SizeDraw& d) {
         const int64_t features = d.number("num_features");
         d.expect(unless(features < 0, {features}), [&] {
           return nn::InstanceNorm1d(nn::InstanceNormOptions(features).affine(true))->weight;
         });
       }},
      {"LocalResponseNorm",
       [](SizeDraw& d) {
         const int64_t size = d.number("size");
         if (size > 1 << 20) d.may_refuse();  // what it pads with is memory
         d.expect(unless(size <= 0, {2, 3, 2}),
                  [&] { return nn::LocalResponseNorm(size)(ones({2, 3, 2})); });
       }},
      {"LSTM",
       [](SizeDraw& d) {
         const int64_t in = d.number("input_size"), hidden = d.number("hidden_size"),
                       layers = d.mostly("num_layers", 1, 2), proj = d.mostly("proj_size", 0, 0);
         const bool wrong = in < 0 || hidden <= 0 || layers <= 0 || proj < 0 || proj >= hidden ||
                            4 * Wide{hidden} * hidden > INT64_MAX ||  // of weight_hh
                            layers > (int64_t{1} << 18);  // a KiB each is more than memory
         d.expect(unless(wrong, {4 * Wide{hidden}, in}), [&] {
           return nn::LSTM(nn::LSTMOptions(in, hidden).num_layers(layers).proj_size(proj))
               ->all_weights()[0];
         });
       }},
      {"GRUCell",
       [](SizeDraw& d) {
         const int64_t in = d.number("input_size"), hidden = d.number("hidden_size");
         const bool wrong = in < 0 || hidden <= 0 || 3 * Wide{hidden} * hidden > INT64_MAX;
         d.expect(unless(wrong, {3 * Wide{hidden}, in}),
                  [&] { return nn::GRUCell(in, hidden)->weight_ih; });
       }},
      {"MultiheadAttention",
       [](SizeDraw& d) {
         const int64_t width = d.number("embed_dim"), heads = d.mostly("num_heads", 1, 2),
                       kdim = d.number("kdim");
         const bool wrong = width <= 0 || heads <= 0 || width % heads != 0 || kdim <= 0 ||
                            3 * Wide{width} * width > INT64_MAX;
         d.expect(unless(wrong, {width, kdim}), [&] {
           const auto options = nn::MultiheadAttentionOptions(width, heads).kdim(kdim);
           const nn::MultiheadAttention m(options);
           return m->_qkv_same_embed_dim ? m->out_proj->weight : m->k_proj_weight;
         });
       }},
      {"Transformer::generate_square_subsequent_mask",
       [](SizeDraw& d) {
         const int64_t size = d.number("sz");
         d.expect(unless(size < 0, {size, size}),
                  [&] { return nn::TransformerImpl::generate_square_subsequent_mask(size); });
       }},
      {"BatchNorm",
       [](SizeDraw& d) {
         const int64_t features = d.number("num_features");
         const bool flat = d.flag("1-d");
         d.expect(
             unless(features < 0, {features}),
             [&] {
               return flat ? nn::BatchNorm1d(features)->weight : nn::BatchNorm2d(features)->weight;
             },
             4);
       }},
      {"Conv",
       [](SizeDraw& d) {
         const int64_t in = d.number("in_channels"), out = d.number("out_channels"),
                       kernel = d.number("kernel_size"), groups = d.mostly("groups", 1, 2);
         const bool wrong = in <= 0 || out <= 0 || groups <= 0 || kernel < 0 || in % groups != 0 ||
                            out % groups != 0;
         d.expect(unless(wrong, {out, groups > 0 ? in / groups : 0, kernel}), [&] {
           return nn::Conv1d(nn::Conv1dOptions(in, out, kernel).groups(groups).bias(false))->weight;
         });
       }},
      {"ConvTranspose",
       [](SizeDraw& d) {
         const int64_t in = d.number("in_channels"), out = d.number("out_channels"),
                       kernel = d.number("kernel_size"), groups = d.mostly("groups", 1, 2);
         const bool wrong = in <= 0 || out <= 0 || groups <= 0 || kernel < 0 || in % groups != 0 ||
                            out % groups != 0;
         d.expect(unless(wrong, {in, groups > 0 ? out / groups : 0, kernel}), [&] {
           const auto options = nn::ConvTranspose1dOptions(in, out, kernel).groups(groups);
           return nn::ConvTranspose1d(nn::ConvTranspose1dOptions(options).bias(false))->weight;
         });
       }},
      {"ConvTranspose.output_size",
       [](SizeDraw& d) {
         const int64_t stride = d.mostly("stride", 1, 3), padding = d.mostly("padding", 0, 1),
                       dilation = d.mostly("dilation", 1, 2), wanted = d.mostly("wanted", 1, 9);
         const Wide least = 2 * Wide{stride} - 2 * Wide{padding} + Wide{dilation} + 1;
         const bool wrong = stride <= 0 || padding < 0 || dilation <= 0 || wanted < least ||
                            wanted > least + stride - 1 || wanted < 1;
         for (const int64_t n : {stride, padding, dilation})
           if (n >= int64_t{1} << 60) d.may_refuse();
         d.expect(unless(wrong, {1, 1, wanted}), [&] {
           nn::ConvTranspose1dOptions options(1, 1, 2);
           options.stride(stride).padding(padding).dilation(dilation);
           return nn::ConvTranspose1d(options)(ones({1, 1, 3}), IntArrayRef({wanted}));
         });
       }},
      {"Flatten",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         const int64_t start = d.dim("start_dim", x.dim()), end = d.dim("end_dim", x.dim());
         const auto a = place_of(start, x.dim()), b = place_of(end, x.dim());
         WideShape shape;
         for (size_t i = 0; i < x.sizes().size(); ++i) {
           if (a && b && i > *a && i <= *b) shape.back() *= x.sizes()[i];
           else shape.push_back(x.sizes()[i]);
         }
         d.expect(unless(!a || !b || *a > *b, shape), [&] {
           return nn::Flatten(nn::FlattenOptions().start_dim(start).end_dim(end))->forward(x);
         });
       }},
      {"GLU",
       [](SizeDraw& d) {
         const Tensor x = d.tensor(1);
         const int64_t dim = d.dim("dim", x.dim());
         const auto at = place_of(dim, x.dim());
         WideShape shape = wide(x.sizes());
         const bool wrong = !at || x.size(*at) % 2 != 0;
         if (!wrong) shape[static_cast<size_t>(*at)] /= 2;
         d.expect(unless(wrong, shape), [&] { return nn::GLU(dim)->forward(x); });
       }},
      {"PReLU",
       [](SizeDraw& d) {
         const int64_t count = d.number("num_parameters");
         d.expect(unless(count < 0, {count}),
                  [&] { return nn::PReLU(nn::PReLUOptions().num_parameters(count))->weight; });
       }},
      {"Softmax",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         const bool log = d.flag("log");
         d.expect(unless(!place_of(dim, x.dim()), wide(x.sizes())), [&] {
           return log ? nn::LogSoftmax(dim)->forward(x) : nn::Softmax(dim)->forward(x);
         });
       }},
      {"normalize",
       [](SizeDraw& d) {
         const Tensor x = d.tensor();
         const int64_t dim = d.dim("dim", x.dim());
         d.expect(unless(!place_of(dim, x.dim()), wide(x.sizes())), [&] {
           return nn::functional::normalize(x, nn::functional::NormalizeFuncOptions().dim(dim));
         });
       }},
      {"functional embedding",
       [](SizeDraw& d) {
         const Tensor weight = d.tensor(2, 2, 1);
         const int64_t padding = d.number("padding_idx");
         const bool wrong = padding >= weight.size(0) || padding < -Wide{weight.size(0)};
         d.expect(unless(wrong, {2, weight.size(1)}), [&] {
           return nn::functional::embedding(
               zeros({2}, kLong), weight,
               nn::functional::EmbeddingFuncOptions().padding_idx(padding));
         });
       }},
      {"CrossEntropyLoss",
       [](SizeDraw& d) {
         const int64_t ignored = d.number("ignore_index");
         const bool log = d.flag("nll");
         d.expect(one({}), [&] {
           const Tensor scores = zeros({2, 3}), target = zeros({2}, kLong);
           return log ? nn::NLLLoss(nn::NLLLossOptions().ignore_index(ignored))(scores, target)
                      : nn::CrossEntropyLoss(nn::CrossEntropyLossOptions().ignore_index(ignored))(
                            scores, target);
         });
       }},
      {"init",  // also of tensors too large to be written
       [](SizeDraw& d) {
         const bool small = d.flag("small");
         const int64_t side = d.note("side", small ? d.tape().between(1, 3)
                                                   : int64_t{1} << d.tape().between(28, 40)),
                       how = d.note("how", d.tape().below(4));
         WideShape shape = {side, side};
         if (how == 1) shape.push_back(1);
         d.expect(unless(!small, shape), [&] {
           const Tensor x = small ? zeros({side, side}) : zeros({1, 1}).expand({side, side});
           return how == 0   ? nn::init::eye_(x)
                  : how == 1 ? nn::init::dirac_(x.unsqueeze(2))
                  : how == 2 ? nn::init::orthogonal_(x)
                             : nn::init::sparse_(x, 0.5);
         });
       }},
      {"RandomSampler",
       [](SizeDraw& d) {
         const int64_t size = d.number("size"), again = d.number("new_size");
         const auto batch = static_cast<size_t>(d.number("batch_size"));
         const bool renewed = d.flag("reset");
         const Wide n = renewed ? up(static_cast<size_t>(again)) : size;
         const bool wrong = size < 0 || std::max<Wide>(n, size) > (1 << 20);
         d.expect(unless(wrong, {std::min(n, up(batch))}), [&] {
           samplers::RandomSampler sampler(size);
           if (renewed) sampler.reset(static_cast<size_t>(again));
           return listed(sampler.next(batch), static_cast<size_t>(n));
         });
       }},
      {"SequentialSampler",
       [](SizeDraw& d) {
         const auto size = static_cast<size_t>(d.number("size")),
                    batch = static_cast<size_t>(d.number("batch_size"));
         const Wide n = std::min(up(size), up(batch));
         d.expect(unless(n > (1 << 20), {n}), [&] {
           samplers::SequentialSampler sampler(size);
           return listed(sampler.next(batch), size);
         });
       }},
      of_distributed<samplers::DistributedRandomSampler>("DistributedRandomSampler", true),
      of_distributed<samplers::DistributedSequentialSampler>("DistributedSequentialSampler", false),
      {"StreamSampler",
       [](SizeDraw& d) {
         const auto size = static_cast<size_t>(d.number("epoch_size")),
                    batch = static_cast<size_t>(d.number("batch_size"));
         d.expect(one({}), [&] {
           samplers::StreamSampler sampler(size);
           const auto request = sampler.next(batch);
           const size_t got = request ? request->size() : 0;
           return got == std::min(size, batch) ? ones({}) : ones({1});
         });
       }},
      {"DataLoader",
       [](SizeDraw& d) {
         const auto batch = static_cast<size_t>(d.number("batch_size")),
                    workers = static_cast<size_t>(d.mostly("workers", 0, 1)),
                    jobs = static_cast<size_t>(d.number("max_jobs"));
         const std::chrono::milliseconds timeout(d.mostly("timeout", 1000000, 1000001));
         const bool waits = d.flag("with a timeout"), patient = timeout.count() > 1000;
         const bool limited = d.flag("with max_jobs");
         const bool wrong = batch == 0 || workers > 4096 || (workers > 0 && limited && jobs == 0) ||
                            (waits && !patient);
         if (workers > 4 && workers <= 4096) return;  // another test has that many threads
         if (waits && !patient) return;               // may be in time or not
         d.expect(unless(wrong, {std::min<Wide>(up(batch), 5)}), [&] {
           auto set = data::datasets::TensorDataset(ones({5, 2}))
                          .map(data::transforms::Stack<data::TensorExample>());
           DataLoaderOptions o(batch);
           o.workers(workers);
           if (limited) o.max_jobs(jobs);
           if (waits) o.timeout(timeout);
           auto loader = data::make_data_loader<samplers::SequentialSampler>(std::move(set), o);
           return loader->begin()->data.sum(1);
         });
       }},
  };
}

}  // namespace fuzz
}  // namespace ramet
