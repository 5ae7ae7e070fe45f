// Layers: options, edges, refusals, and how they print. Numbers: tests/nn/goldens.
#include "autograd/ops/layers/embedding_bag.h"
#include "autograd/ops/layers/im2col.h"
#include "autograd/ops/layers/shuffle.h"
#include "autograd/ops/make/factory.h"
#include "autograd/ops/random/random.h"
#include "nn/functional/functional.h"
#include "nn/layers/basic/activation.h"
#include "nn/layers/basic/dropout.h"
#include "nn/layers/basic/flatten.h"
#include "nn/layers/basic/linear.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/loss/loss.h"
#include "nn/layers/norm/batchnorm.h"
#include "nn/layers/norm/layer_norm.h"
#include "nn/layers/sequence/embedding.h"
#include "runtime/base/logging.h"
#include "tests/nn/support.h"

namespace ramet::nn {
namespace {

namespace F = functional;
using D = std::vector<double>;

Tensor two_images() { return sines(96, 0.13, 0.4).view({2, 3, 4, 4}); }

TEST(Layers, WithoutBiasOrWeights) {
  Linear linear(LinearOptions(3, 2).bias(false));
  EXPECT_FALSE(linear->bias.defined());
  EXPECT_EQ(linear->parameters().size(), 1u);
  EXPECT_EQ(linear(ones({4, 5, 3})).sizes(), IntArrayRef({4, 5, 2}));
  const Tensor x = ones({2, 3});
  EXPECT_TRUE(Identity()(x).is_same(x));
  EXPECT_EQ(LayerNorm(LayerNormOptions({3}).elementwise_affine(false))->parameters().size(), 0u);
  Bilinear bilinear(BilinearOptions(2, 3, 2).bias(false));
  EXPECT_EQ(bilinear->parameters().size(), 1u);
  EXPECT_EQ(bilinear(ones({4, 5, 2}), ones({4, 5, 3})).sizes(), IntArrayRef({4, 5, 2}));
}

TEST(Layers, Conv2d) {
  Conv2d conv(Conv2dOptions(3, 2, 3).padding(1));
  const Tensor x = two_images().to(kFloat), y = conv(x);
  conv->options.padding(kSame);
  EXPECT_TRUE(same_bits(conv(x), y));
  EXPECT_TRUE(same_bits(
      F::conv2d(x, conv->weight, F::Conv2dFuncOptions().bias(conv->bias).padding(kSame)), y));
  EXPECT_EQ(Conv2d(Conv2dOptions(4, 8, {3, 5}).groups(2))->weight.sizes(),
            IntArrayRef({8, 2, 3, 5}));
  EXPECT_ERROR_TEXT(Conv2d(Conv2dOptions(3, 2, 1).groups(2)),
                    "in_channels must be divisible by groups");
  EXPECT_ERROR_TEXT(Conv2d(Conv2dOptions(2, 3, 1).groups(2)),
                    "out_channels must be divisible by groups");
  EXPECT_ERROR_TEXT(Conv2d(Conv2dOptions(1, 1, 3).padding(kSame).stride(2)),
                    "padding='same' is not supported for strided");
  EXPECT_ERROR_TEXT(Conv2dOptions(1, 1, {3, 3, 3}), "Expected 2 values, but instead got 3");
}

// Norms below 1 and above.
TEST(Layers, Normalize) {
  const Tensor unit = F::normalize(two_images());
  expect_first_values(unit,
                      {0.317318494657109, 0.411122663963556, 0.497767412879467, 0.575952095787885});
  expect_values(F::normalize(two_images() * 1e-3), values(unit));
  expect_values(F::normalize(doubles({3, 4}).view({1, 2}), F::NormalizeFuncOptions().eps(10)),
                {.3, .4});
}

TEST(Layers, PoolingWithIndices) {
  const Tensor x = two_images(), line = x.view({6, 16});
  const auto [y, where] = MaxPool2d(2)->forward_with_indices(x);
  EXPECT_EQ(where.scalar_type(), kLong);
  EXPECT_TRUE(same_bits(y, MaxPool2d(2)(x)));
  const auto [wide, places] =
      MaxPool2d(MaxPool2dOptions({3, 2}).stride({2, 2}).padding({1, 0}))->forward_with_indices(x);
  EXPECT_EQ(wide.sizes(), IntArrayRef({2, 3, 2, 2}));
  expect_values(x.flatten(2).gather(2, places.flatten(2)), values(wide), 0);
  const auto options = MaxPool1dOptions(3).stride(2);
  const auto [peaks, at] = MaxPool1d(options)->forward_with_indices(line);
  EXPECT_EQ(peaks.sizes(), IntArrayRef({6, 7}));
  expect_values(line.gather(1, at), values(peaks), 0);
  EXPECT_TRUE(same_bits(std::get<1>(F::max_pool1d_with_indices(line, options)), at));
}

TEST(Layers, Embedding) {
  Embedding embedding(EmbeddingOptions(4, 3).padding_idx(-1));
  EXPECT_EQ(*embedding->options.padding_idx(), 3);
  expect_values(embedding->weight.select(0, 3), {0, 0, 0});
  const Tensor index = tensor({1, 3, 1});
  const Tensor y = embedding(index);
  EXPECT_EQ(y.sizes(), IntArrayRef({3, 3}));
  EXPECT_TRUE(same_bits(y.select(0, 0), embedding->weight.select(0, 1)));
  y.sum().backward();
  expect_values(embedding->weight.grad(), {0, 0, 0, 2, 2, 2, 0, 0, 0, 0, 0, 0});
  Embedding fixed = Embedding::from_pretrained(ones({2, 3}));
  EXPECT_FALSE(fixed->weight.requires_grad());
  EXPECT_ERROR_TEXT(Embedding(EmbeddingOptions(4, 3).padding_idx(4)),
                    "Padding_idx must be within num_embeddings");
  EXPECT_TRUE(
      same_bits(std::dynamic_pointer_cast<EmbeddingImpl>(fixed->clone())->weight, ones({2, 3})));
}

TEST(Layers, EmbeddingOfLimitedNorm) {
  const Tensor w = arange(12, TensorOptions(kDouble)).reshape({4, 3});
  Tensor x = w.clone();
  embedding_renorm_(x, tensor({1, 2, 1, 3}), 2, 2);
  expect_values(x,
                {0, 1, 2, 0.848528125424, 1.1313708339, 1.41421354237, 0.983078296569,
                 1.14692467933, 1.31077106209, 1.03578360181, 1.15087066867, 1.26595773554},
                1e-10);
  embedding_renorm_(x, tensor({0, 3}), 1, INFINITY);
  expect_values(x.select(0, 0), {0, 0.5, 1}, 1e-6);
  expect_values(x.select(0, 3), {0.8181818, 0.9090909, 1}, 1e-6);
  EXPECT_TRUE(same_bits(embedding_renorm(w, tensor({0}), 100, 2), w));

  Embedding of(EmbeddingOptions(4, 3)._weight(w.clone()).max_norm(1));
  of(tensor({1, 3, 1})).sum().backward();
  EXPECT_TRUE(same_bits(of->weight.detach(), embedding_renorm(w, tensor({1, 3}), 1, 2)));
  expect_values(of->weight.grad(), {0, 0, 0, 2, 2, 2, 0, 0, 0, 1, 1, 1});
  Embedding ones_norm(EmbeddingOptions(4, 3)._weight(w.clone()).max_norm(3).norm_type(1));
  ones_norm(tensor({3}));
  expect_values(ones_norm->weight.select(0, 3), {0.9, 1, 1.1}, 1e-6);

  const Tensor leaf = w.clone().requires_grad_();
  EXPECT_FALSE(embedding_renorm(leaf, tensor({1}), 1, 2).requires_grad());
  Tensor twice = leaf * 2;
  EXPECT_ERROR_TEXT(embedding_renorm_(twice, tensor({1}), 1, 2), "derivative is not implemented");
  EXPECT_ERROR_TEXT(embedding_renorm_(x, tensor({4}), 1, 2), "[embedding_renorm_]");
  EXPECT_ERROR_TEXT(embedding_renorm(w[0], tensor({0}), 1, 2), "Expected 2-dimensional tensor");
}

TEST(Layers, EmbeddingBag) {
  const Tensor w = arange(12, TensorOptions(kDouble)).reshape({4, 3});
  const Tensor g = arange(9, TensorOptions(kDouble)).reshape({3, 3}) + 1;
  const Tensor indices = tensor({1, 2, 0, 1}), offsets = tensor({0, 2, 2});
  {
    const Tensor x = w.clone().requires_grad_(), s = doubles({1, 2, 3, 4}).requires_grad_();
    const auto [y, bag, counts, places] = embedding_bag(x, indices, offsets, false, 0, false, s);
    expect_values(y, {15, 18, 21, 0, 0, 0, 12, 19, 26});
    EXPECT_EQ(bag.sizes(), IntArrayRef({0}));
    expect_values(counts, {0, 0, 0});
    y.backward(g);
    expect_values(x.grad(), {21, 24, 27, 29, 34, 39, 2, 4, 6, 0, 0, 0});
    expect_values(s.grad(), {26, 44, 26, 98});
  }
  // Row 2 is padding; a row's gradient is divided by how often it was named.
  const D gradients[] = {{7, 8, 9, 5, 6, 7, 0, 0, 0, 0, 0, 0},
                         {7. / 3, 8. / 3, 3, 17. / 9, 22. / 9, 3, 0, 0, 0, 0, 0, 0},
                         {0, 0, 0, 8, 10, 12, 0, 0, 0, 0, 0, 0}};
  for (const int64_t mode : {0, 1, 2}) {
    const Tensor x = w.clone().requires_grad_();
    const auto [y, bag, counts, places] =
        embedding_bag(x, tensor({1, 2, 0, 1, 1}), offsets, mode < 2, mode, false, {}, false, -2);
    expect_values(bag, {0, 0, 2, 2, 2});
    y.backward(g);
    expect_values(x.grad(), gradients[mode]);
    if (mode > 0) expect_values(counts, {1, 0, 3});
    if (mode == 2) expect_values(places, {1, 1, 1, 0, 0, 0, 1, 1, 1});
  }
  const auto last = [&](int64_t mode) {
    return std::get<0>(embedding_bag(w, indices, tensor({0, 2, 3}), false, mode, false, {}, true));
  };
  expect_values(last(0), {9, 11, 13, 0, 1, 2});
  expect_values(last(1), {4.5, 5.5, 6.5, 0, 1, 2});
  expect_values(last(2), {6, 7, 8, 0, 1, 2});
  // A maximum must be larger than the value before: a NaN stays where it is first, and nowhere
  // else.
  const Tensor odd = doubles({0, 1, 2, 3, NAN, 5, -INFINITY, 5, 8, 9, 10, 11}).reshape({4, 3});
  const auto [top, of, n, from] =
      embedding_bag(odd, tensor({1, 2, 0, 2, 1, 2}), tensor({0, 2, 5}), false, 2);
  EXPECT_TRUE(std::isnan(top[0][1].item<double>()));
  expect_values(top[1], {3, 5, 8});
  expect_values(from, {1, 1, 2, 1, 2, 2, 2, 2, 2});

  EmbeddingBag bags(EmbeddingBagOptions(4, 3)._weight(w.clone()).mode(kSum).max_norm(2));
  const Tensor limited = embedding_renorm(w, indices, 2, 2);
  EXPECT_TRUE(same_bits(bags(tensor({1, 2, 0, 1}).reshape({2, 2})),
                        std::get<0>(embedding_bag(limited, indices, tensor({0, 2})))));
  EXPECT_TRUE(same_bits(bags->weight.detach(), limited));
  EXPECT_TRUE(
      same_bits(std::dynamic_pointer_cast<EmbeddingBagImpl>(bags->clone())->weight, limited));
  EXPECT_EQ(bags(zeros({3, 0}, kLong)).sizes(), IntArrayRef({3, 3}));
  EmbeddingBag padded(EmbeddingBagOptions(4, 3).padding_idx(-1));
  EXPECT_EQ(*padded->options.padding_idx(), 3);
  expect_values(padded->weight.select(0, 3), {0, 0, 0});
  EXPECT_FALSE(EmbeddingBag::from_pretrained(ones({2, 3}))->weight.requires_grad());
}

TEST(Layers, EmbeddingBagRefuses) {
  const Tensor w = ones({4, 3}), two = tensor({1, 2});
  using O = F::EmbeddingBagFuncOptions;
  const auto refused = [&](const Tensor& input, const O& o) {
    return error_of([&] { F::embedding_bag(input, w, o); });
  };
  const O whole = O().offsets(tensor({0}));
  expect_part(refused(two.reshape({1, 1, 2}), {}),
              "[embedding_bag] input has to be 1D or 2D Tensor, but got Tensor of dimension 3");
  expect_part(refused(two, {}), "offsets has to be a 1D Tensor but got null");
  expect_part(refused(two.reshape({1, 2}), whole), "If input is 2D, then offsets has to be null");
  expect_part(refused(two, O().offsets(tensor({1}))), "offsets[0] has to be 0");
  expect_part(refused(two, O().offsets(tensor({0, 3}))),
              "offsets[-1] can not be greater than input's length");
  expect_part(refused(two, O().offsets(tensor({0, 2, 1}))), "offsets have to ascend");
  expect_part(refused(two, O(whole).per_sample_weights(ones({2}))),
              "per_sample_weights is only supported for mode='kSum' (got mode='kMean')");
  expect_part(refused(two, O(whole).per_sample_weights(ones({3})).mode(kSum)),
              "If per_sample_weights ([3]) is not null, then it must have the same shape as the "
              "input ([2])");
  expect_part(refused(two, O(whole).scale_grad_by_freq(true).mode(kMax)),
              "max mode does not support scaling the gradient by the frequency");
  expect_part(refused(two, O(whole).sparse(true)), "sparse gradients are not implemented");
  expect_part(refused(tensor({1, 7}), whole), "7");
  expect_part(refused(two, O(whole).padding_idx(9)),
              "padding_idx must be within the number of embeddings, -4 through 3, but got 9");
  expect_part(refused(two, O().offsets(zeros({0}, kLong)).include_last_offset(true)),
              "include_last_offset: number of offset should be at least 1");
  // Nothing was changed before it was refused.
  EmbeddingBag limited(EmbeddingBagOptions(4, 2).max_norm(.1).mode(kSum));
  const Tensor before = limited->weight.detach().clone();
  EXPECT_THROW(limited(two, tensor({1})), Error);
  EXPECT_TRUE(limited->weight.detach().eq(before).all().item<bool>());
  // Of a matrix each row is a bag, whatever offsets would end in.
  EmbeddingBag rows(EmbeddingBagOptions(4, 2).include_last_offset(true).mode(kSum));
  rows->weight.set_data(arange(8.).view({4, 2}));
  expect_values(rows(tensor({0, 1, 2, 3}).view({2, 2})), {2, 4, 10, 12});
  // The last offset ends the last bag, and what comes after is in none.
  const Tensor line = arange(5.).view({5, 1}), six = tensor({0, 1, 2, 4, 4, 4}),
               ends = tensor({0, 2, 4});
  const auto bags = [&](int64_t mode) {
    return std::get<0>(embedding_bag(line, six, ends, false, mode, false, {}, true));
  };
  expect_values(bags(0), {1, 6});
  expect_values(bags(1), {.5, 3});
  expect_values(bags(2), {1, 4});
  EXPECT_ERROR_TEXT(embedding_bag(w, two, tensor({0}), false, 3),
                    "`mode` must be sum, mean, or max");
  EXPECT_ERROR_TEXT(embedding_bag(w.to(kLong), two, tensor({0})), "not implemented for 'Long'");
  EXPECT_ERROR_TEXT(EmbeddingBag(EmbeddingBagOptions(4, 3).padding_idx(4)),
                    "Padding_idx must be within num_embeddings");
  EXPECT_ERROR_TEXT(EmbeddingBag(EmbeddingBagOptions(4, 3)._weight(ones({3, 3}))),
                    "Shape of weight does not match num_embeddings and embedding_dim");
}

TEST(Layers, Bilinear) {
  Bilinear layer(2, 3, 2);
  EXPECT_LE(layer->weight.abs().max().item<double>(), 1 / std::sqrt(2.0));
  layer->to(kDouble);
  const Tensor a = doubles({1, 2}), b = doubles({1, 0, -1});
  EXPECT_TRUE(same_bits(layer(a.expand({2, 2}), b.expand({2, 3}))[1], layer(a, b)));
  EXPECT_ERROR_TEXT(layer(a, a),
                    "[bilinear] input2 size does not match weight size: got 2 but "
                    "expected 3");
  EXPECT_ERROR_TEXT(layer(b, b), "input1 size does not match weight size: got 3 but expected 2");
  EXPECT_ERROR_TEXT(layer(a.expand({2, 2}), b.expand({4, 3})),
                    "input batch dimensions do not match at dim 0: got 2 and 4");
  EXPECT_ERROR_TEXT(layer(a.expand({2, 2}), b), "input dimensions do not match: got 2 and 1");
  EXPECT_ERROR_TEXT(F::bilinear(a, b, layer->weight, doubles({1})),
                    "bias size does not match weight size: got");
}

TEST(Layers, PixelShuffle) {
  const Tensor x = sines(48).reshape({2, 8, 1, 3});
  EXPECT_TRUE(same_bits(PixelUnshuffle(2)(PixelShuffle(2)(x)), x));
  EXPECT_FALSE(PixelShuffle(1)(x).is_alias_of(x));
  EXPECT_ERROR_TEXT(PixelShuffle(3)(x),
                    "[pixel_shuffle] expects its input's 'channel' dimension to "
                    "be divisible by the square of upscale_factor, but "
                    "input.size(-3)=8 is not divisible by 9");
  EXPECT_ERROR_TEXT(PixelShuffle(0)(x), "expects a positive upscale_factor, but got 0");
  EXPECT_ERROR_TEXT(PixelUnshuffle(2)(x),
                    "[pixel_unshuffle] expects height to be divisible by "
                    "downscale_factor, but input.size(-2)=1 is not "
                    "divisible by 2");
  EXPECT_ERROR_TEXT(PixelUnshuffle(1)(x[0][0]),
                    "expects input to have at least 3 dimensions, but "
                    "got input with 2 dimension(s)");
  EXPECT_ERROR_TEXT(channel_shuffle(x, 3),
                    "[channel_shuffle] Number of channels must be divisible "
                    "by groups. Got 8 channels and 3 groups.");
  EXPECT_ERROR_TEXT(channel_shuffle(x, 0),
                    "Number of groups to divide channels in must be "
                    "positive. Value of groups:0");
}

TEST(Layers, FoldAndUnfold) {
  const Tensor x = sines(30).reshape({1, 2, 3, 5});
  Unfold unfold(UnfoldOptions({2, 3}).padding({1, 0}).stride({2, 1}));
  Fold fold(FoldOptions({3, 5}, {2, 3}).padding({1, 0}).stride({2, 1}));
  const Tensor columns = unfold(x), ones_of = unfold(ones_like(x));
  // Each pixel comes back as often as it was there: no two blocks are next to each other in height.
  EXPECT_TRUE(same_bits(fold(ones_of), doubles({1, 2, 3, 2, 1}).expand({1, 2, 3, 5})));
  expect_values(fold(columns), values(x.mul(doubles({1, 2, 3, 2, 1}))));
  EXPECT_TRUE(same_bits(fold(columns[0]), fold(columns)[0]));
  // 2048 and 1: halves are added in float.
  const Tensor halves = doubles({2047, 1, 1, 1}).to(kHalf).reshape({2, 2});
  expect_values(Fold(FoldOptions({1, 3}, {1, 2}))(halves), {2047, 2, 1});
  EXPECT_ERROR_TEXT(unfold(x[0]),
                    "[unfold] Input Error: Only 4D input Tensors are supported (got "
                    "3D)");
  EXPECT_ERROR_TEXT(fold(x),
                    "[fold] Input Error: Only unbatched (2D) or batched (3D) input Tensors "
                    "are supported (got 4D)");
  EXPECT_ERROR_TEXT(fold(ones({10, 6})),
                    "[col2im] Expected size of input's dimension 1 to be "
                    "divisible by the product of kernel_size, but got "
                    "input.size(1)=10 and kernel_size=(2, 3).");
  EXPECT_ERROR_TEXT(fold(ones({12, 5})),
                    "[col2im] Given output_size=(3, 5), kernel_size=(2, 3), dilation=(1, 1), "
                    "padding=(1, 0), stride=(2, 1), expected size of input's dimension 2 to match "
                    "the calculated number of sliding blocks 2 * 3 = 6, but got input.size(2)=5.");
  EXPECT_ERROR_TEXT(Unfold(4)(x),
                    "[im2col] Given input with spatial size (3, 5), kernel_size=(4, "
                    "4), dilation=(1, 1), padding=(0, 0), calculated shape of the "
                    "array of sliding blocks as (0, 2), but its components must be "
                    "at least one.");
  EXPECT_ERROR_TEXT(Unfold(0)(x),
                    "[im2col] kernel size should be greater than zero, but got "
                    "kernel_height: 0 kernel_width: 0");
  EXPECT_ERROR_TEXT(Unfold(UnfoldOptions(1).padding(-1))(x),
                    "padding should be non-negative, but got pad_height: -1 pad_width: -1");
  EXPECT_ERROR_TEXT(im2col(x, 1, {1, 1}, {0, 0}, {1, 1}),
                    "It is expected kernel_size equals to 2, but got size 1");
  EXPECT_ERROR_TEXT(im2col(ones({1, 0, 2, 2}), {1, 1}, {1, 1}, {0, 0}, {1, 1}),
                    "non-zero dimensions for input, but got: [1, 0, 2, 2]");
}

TEST(Layers, DropoutInTrainingOnly) {
  Dropout dropout(0.25);
  const Tensor x = ones({100, 100});
  const Tensor y = dropout(x);
  const double kept = (y != 0).sum().item<double>() / 1e4;
  EXPECT_NEAR(kept, 0.75, 0.03);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.75, 1e-6);
  dropout->eval();
  EXPECT_TRUE(same_bits(dropout(x), x));
  EXPECT_ERROR_TEXT(Dropout(1.5), "dropout probability has to be between 0 and 1, but got 1.5");
  const Tensor channels = Dropout2d(0.5)(ones({8, 16, 3, 3})).sum(IntArrayRef({2, 3}));
  for (double v : values(channels)) EXPECT_TRUE(v == 0 || std::fabs(v - 18) < 1e-5) << v;
  // Without a batch too, and of volumes.
  for (double v : values(Dropout2d(0.5)(ones({64, 3, 3})).sum(IntArrayRef({1, 2}))))
    EXPECT_TRUE(v == 0 || v == 18) << v;
  for (double v : values(Dropout3d(0.5)(ones({8, 16, 2, 3, 3})).sum(IntArrayRef({2, 3, 4}))))
    EXPECT_TRUE(v == 0 || v == 36) << v;
  Tensor two_images = ones({64, 3, 3});
  EXPECT_TRUE(
      F::dropout2d(two_images, F::Dropout2dFuncOptions().inplace(true)).is_same(two_images));
  EXPECT_LT(two_images.sum().item<double>(), 64 * 18);
  EXPECT_EQ((two_images == 0).sum().item<int64_t>() % 9, 0);
  Tensor z = ones({10});
  EXPECT_TRUE(F::dropout(z, F::DropoutFuncOptions().inplace(true)).is_same(z));
}

// Dropped ones are the smaller value; a quarter of two is dropped.
TEST(Layers, AlphaDropoutKeepsMoments) {
  const double alpha = 1.7580993408473766, p = 0.25,
               a = 1 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  const Tensor y = AlphaDropout(p)(zeros({100, 100}, kDouble));
  for (double v : values(y))
    EXPECT_TRUE(std::fabs(v - a * alpha * p) < 1e-12 ||
                std::fabs(v - (a * alpha * p - a * alpha)) < 1e-12)
        << v;
  EXPECT_NEAR((y < 0).sum().item<double>() / 1e4, p, 0.03);
  const Tensor channels = FeatureAlphaDropout(p)(ones({8, 16, 3}, kDouble));
  EXPECT_TRUE(same_bits(channels.slice(2, 0, 2), channels.slice(2, 1, 3)));
  EXPECT_NEAR(AlphaDropout(p)(randn({200, 200})).var().item<double>(), 1, 0.05);
  AlphaDropout off(p);
  off->eval();
  EXPECT_TRUE(same_bits(off(y), y));
  EXPECT_TRUE(same_bits(F::alpha_dropout(y), y));  // not in training unless the options say so
  expect_values(F::alpha_dropout(ones({3}), F::AlphaDropoutFuncOptions().p(1).training(true)),
                {0, 0, 0}, 0);
  Tensor z = ones({10});
  EXPECT_TRUE(F::feature_alpha_dropout(
                  z.view({5, 2}), F::FeatureAlphaDropoutFuncOptions().training(true).inplace(true))
                  .sizes() == IntArrayRef({5, 2}));
  EXPECT_FALSE(same_bits(z, ones({10})));
  EXPECT_ERROR_TEXT(AlphaDropout(1.5), "dropout probability has to be between 0 and 1, but got");
  EXPECT_ERROR_TEXT(F::alpha_dropout(ones({2}, kLong), F::AlphaDropoutFuncOptions().training(true)),
                    "[alpha_dropout] only for floating-point dtypes");
}

TEST(Layers, ReLUInPlace) {
  Tensor x = doubles({-1, 1});
  EXPECT_TRUE(ReLU(true)(x).is_same(x));
  expect_values(x, {0, 1});
}

// Repeating one of them is mostly a mistake: LibTorch warns of it, too.
TEST(Losses, OfTwoShapesWarn) {
  std::vector<std::string> heard;
  set_log_handler([&](LogLevel, const std::string& m) { heard.push_back(m); });
  const Tensor column = ones({8, 1}), row = ones({8});
  namespace F = functional;
  F::mse_loss(column, row), F::l1_loss(column, row), F::smooth_l1_loss(column, row);
  F::huber_loss(column, row), MSELoss()(column, row);
  F::mse_loss(row, row);
  set_log_handler({});
  ASSERT_EQ(heard.size(), 5u);
  for (const std::string& m : heard)
    expect_part(m, "_loss] Using a target size ([8]) that is different to the input size ([8, 1])");
}

// The options of the modules reach the functions, of which tests/nn/goldens has the numbers.
TEST(Losses, ModulesHaveOptions) {
  const Tensor logits = sines(12, 0.9, 0.2).view({4, 3}), classes = tensor({0, 2, 1, 2});
  const Tensor weight = doubles({0.2, 0.5, 1.5});
  const auto entropy =
      CrossEntropyLossOptions().weight(weight).label_smoothing(0.1).ignore_index(1);
  const auto likelihood = NLLLossOptions().weight(weight).ignore_index(1);
  const auto smooth = SmoothL1LossOptions().beta(0.3);
  const Tensor a = sines(6), b = sines(6, 0.5, 0.9), target = (b > 0).to(kDouble),
               positive = full({6}, 2, kDouble);
  const auto chances = BCELossOptions().weight(positive);
  const auto with_logits = BCEWithLogitsLossOptions().weight(a.abs()).pos_weight(positive);
  const std::pair<Tensor, Tensor> pairs[] = {
      {CrossEntropyLoss(entropy)(logits, classes), F::cross_entropy(logits, classes, entropy)},
      {CrossEntropyLoss(CrossEntropyLossOptions().reduction(kSum))(logits, classes),
       F::cross_entropy(logits, classes, F::CrossEntropyFuncOptions().reduction(kSum))},
      {NLLLoss(likelihood)(logits, classes), F::nll_loss(logits, classes, likelihood)},
      {L1Loss(kSum)(a, b), F::l1_loss(a, b, kSum)},
      {MSELoss(kSum)(a, b), F::mse_loss(a, b, kSum)},
      {SmoothL1Loss(smooth)(a, b), F::smooth_l1_loss(a, b, smooth)},
      {BCELoss(chances)(a.sigmoid(), target),
       F::binary_cross_entropy(a.sigmoid(), target, chances)},
      {BCEWithLogitsLoss(with_logits)(a, target),
       F::binary_cross_entropy_with_logits(a, target, with_logits)},
  };
  for (const auto& [got, want] : pairs) EXPECT_TRUE(same_bits(got, want)) << &got - &pairs[0].first;
  EXPECT_EQ(CrossEntropyLoss(entropy)->named_buffers().size(), 1u);
  CrossEntropyLoss copied(
      std::dynamic_pointer_cast<CrossEntropyLossImpl>(CrossEntropyLoss(entropy)->clone()));
  EXPECT_TRUE(same_bits(copied->weight, weight));
}

TEST(Losses, Refuse) {
  const Tensor a = sines(6), none;
  EXPECT_ERROR_TEXT(BCELoss()(a, doubles({1})), "target size: got [1]");
  EXPECT_ERROR_TEXT(BCELoss()(ones({200, 1}), ones({200})), "target size: got [200]");
  EXPECT_ERROR_TEXT(BCEWithLogitsLoss()(ones({2, 3}), ones({3})), "target size: got [3]");
  EXPECT_THROW(BCELoss()(a, none), Error);  // refused, not read
  EXPECT_THROW(BCEWithLogitsLoss()(none, a), Error);
  EXPECT_THROW(MSELoss()(none, a), Error);
  EXPECT_THROW(L1Loss()(a, none), Error);
  EXPECT_THROW(SmoothL1Loss()(a, none), Error);
}

TEST(Layers, FlattenFromAndToOtherDimensions) {
  EXPECT_EQ(Flatten(FlattenOptions().start_dim(2))(two_images()).sizes(), IntArrayRef({2, 3, 16}));
  EXPECT_EQ(Flatten(FlattenOptions().end_dim(2))(two_images()).sizes(), IntArrayRef({2, 12, 4}));
  EXPECT_EQ(Unflatten(1, std::vector<int64_t>{3, 1})(two_images()).sizes(),
            IntArrayRef({2, 3, 1, 4, 4}));
}

TEST(Layers, PrintAsInLibTorch) {
  const auto strided = Conv2dOptions(4, 8, {3, 5}).stride(2).groups(2).bias(false).dilation(2);
  const auto no_momentum = BatchNorm1dOptions(4).momentum(nullopt).affine(false);
  const std::pair<std::string, const char*> rows[] = {
      {text_of(Linear(3, 4)), "Linear(in_features=3, out_features=4, bias=true)"},
      {text_of(Conv2d(Conv2dOptions(1, 32, 3).padding(1))),
       "Conv2d(1, 32, kernel_size=[3, 3], stride=[1, 1], padding=[1, 1])"},
      {text_of(Conv2d(Conv2dOptions(strided).padding(kValid))),
       "Conv2d(4, 8, kernel_size=[3, 5], stride=[2, 2], padding='valid', dilation=[2, 2], "
       "groups=2, bias=false)"},
      {text_of(Conv1d(1, 2, 3)), "Conv1d(1, 2, kernel_size=3, stride=1)"},
      {text_of(MaxPool2d(2)),
       "MaxPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0], dilation=[1, 1], "
       "ceil_mode=false)"},
      {text_of(AvgPool2d(2)), "AvgPool2d(kernel_size=[2, 2], stride=[2, 2], padding=[0, 0])"},
      {text_of(AdaptiveAvgPool2d(AdaptiveAvgPool2dOptions({3, nullopt}))),
       "AdaptiveAvgPool2d(output_size=[3, None])"},
      {text_of(MaxPool1d(2)),
       "MaxPool1d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=false)"},
      {text_of(BatchNorm2d(4)),
       "BatchNorm2d(4, eps=1e-05, momentum=0.1, affine=true, track_running_stats=true)"},
      {text_of(BatchNorm1d(no_momentum)),
       "BatchNorm1d(4, eps=1e-05, momentum=None, affine=false, track_running_stats=true)"},
      {text_of(LayerNorm(LayerNormOptions({2, 3}))),
       "LayerNorm([2, 3], eps=1e-05, elementwise_affine=true)"},
      {text_of(Dropout(0.25)), "Dropout(p=0.25, inplace=false)"},
      {text_of(Dropout3d(0.25)), "Dropout3d(p=0.25, inplace=false)"},
      {text_of(AlphaDropout(AlphaDropoutOptions(0.5).inplace(true))),
       "AlphaDropout(p=0.5, inplace=true)"},
      {text_of(FeatureAlphaDropout()), "FeatureAlphaDropout(p=0.5, inplace=false)"},
      {text_of(Embedding(EmbeddingOptions(3, 4).padding_idx(1))),
       "Embedding(num_embeddings=3, embedding_dim=4, padding_idx=1)"},
      {text_of(ReLU(true)), "ReLU(inplace=true)"},
      {text_of(LeakyReLU(LeakyReLUOptions().negative_slope(0.2).inplace(true))),
       "LeakyReLU(negative_slope=0.2, inplace=true)"},
      {text_of(Softmax(1)), "Softmax(dim=1)"},
      {text_of(LogSoftmax(1)), "LogSoftmax(dim=1)"},
      {text_of(GELU()), "GELU()"},
      {text_of(Tanh()), "Tanh()"},
      {text_of(Sigmoid()), "Sigmoid()"},
      {text_of(Flatten()), "Flatten(start_dim=1, end_dim=-1)"},
      {text_of(Unflatten(1, std::vector<int64_t>{2, 3})),
       "Unflatten(dim=1, unflattened_size={2, 3})"},
      {text_of(SmoothL1Loss()), "SmoothL1Loss"},
  };
  for (const auto& [got, want] : rows) EXPECT_EQ(got, std::string("ramet::nn::") + want);
}

}  // namespace
}  // namespace ramet::nn
