#include "nn/c/layers_internal.h"
#include "nn/layers/image/conv.h"
#include "nn/layers/image/conv_transpose.h"
#include "nn/layers/image/fold.h"
#include "nn/layers/image/padding.h"
#include "nn/layers/image/pixel_shuffle.h"
#include "nn/layers/image/pooling.h"
#include "nn/layers/image/upsampling.h"
#include "nn/layers/norm/instance_norm.h"
#include "nn/layers/norm/response_norm.h"

namespace ramet::c {
namespace {

using namespace ramet::nn;

template <size_t D, class Impl> AnyModule conv(Reader& r) {
  ConvOptions<D> o{r.count("in_channels"), r.count("out_channels"), r.counts<D>("kernel_size")};
  r.read("stride", o.stride(), Range::kPositive);
  r.read("padding", o.padding());
  r.read("dilation", o.dilation(), Range::kPositive);
  r.read("groups", o.groups(), Range::kPositive);
  r.read("bias", o.bias());
  r.read("padding_mode", o.padding_mode());
  return r.make<Impl>(o);
}

template <size_t D, class Impl> AnyModule conv_transpose(Reader& r) {
  ConvTransposeOptions<D> o{r.count("in_channels"), r.count("out_channels"),
                            r.counts<D>("kernel_size")};
  r.read("stride", o.stride(), Range::kPositive);
  r.read("padding", o.padding(), Range::kNotNegative);
  r.read("output_padding", o.output_padding(), Range::kNotNegative);
  r.read("groups", o.groups(), Range::kPositive);
  r.read("bias", o.bias());
  r.read("dilation", o.dilation(), Range::kPositive);
  r.read("padding_mode", o.padding_mode());
  return r.make<Impl>(o);
}

template <size_t D, class Impl> AnyModule max_pool(Reader& r) {
  MaxPoolOptions<D> o{r.counts<D>("kernel_size")};
  r.read("stride", o.stride(), Range::kPositive);
  r.read("padding", o.padding(), Range::kNotNegative);
  r.read("dilation", o.dilation(), Range::kPositive);
  r.read("ceil_mode", o.ceil_mode());
  return r.make<Impl>(o);
}

template <size_t D, class Impl> AnyModule avg_pool(Reader& r) {
  AvgPoolOptions<D> o{r.counts<D>("kernel_size")};
  r.read("stride", o.stride(), Range::kPositive);
  r.read("padding", o.padding(), Range::kNotNegative);
  r.read("ceil_mode", o.ceil_mode());
  r.read("count_include_pad", o.count_include_pad());
  r.read("divisor_override", o.divisor_override());
  return r.make<Impl>(o);
}

template <class Options, class Impl> AnyModule adaptive_pool(Reader& r) {
  Options o{1};
  if (!r.entry("output_size")) r.refuse("output_size", "a size, or a list of them");
  r.read("output_size", o.output_size(), Range::kPositive);
  return r.make<Impl>(o);
}

template <class Options, class Impl> AnyModule pad(Reader& r) {
  Options o{0};
  if (!r.entry("padding")) r.refuse("padding", "a number, or a list of them");
  r.read("padding", o.padding());
  return r.make<Impl>(o);
}

template <class Options, class Impl> AnyModule constant_pad(Reader& r) {
  Options o{0, 0};
  if (!r.entry("padding")) r.refuse("padding", "a number, or a list of them");
  r.read("padding", o.padding());
  o.value(r.number("value"));
  return r.make<Impl>(o);
}

}  // namespace

const std::vector<Layer>& plane_layers() {
#define OF_DIMENSIONS(D)                                                                         \
  RAMET_LAYER(Conv##D##d, return conv<D, Conv##D##dImpl>(r);)                                    \
  RAMET_LAYER(ConvTranspose##D##d, return conv_transpose<D, ConvTranspose##D##dImpl>(r);)        \
  RAMET_LAYER(MaxPool##D##d, return max_pool<D, MaxPool##D##dImpl>(r);)                          \
  RAMET_LAYER(AvgPool##D##d, return avg_pool<D, AvgPool##D##dImpl>(r);)                          \
  RAMET_LAYER(AdaptiveAvgPool##D##d,                                                             \
              return adaptive_pool<AdaptiveAvgPool##D##dOptions, AdaptiveAvgPool##D##dImpl>(r);) \
  RAMET_LAYER(AdaptiveMaxPool##D##d,                                                             \
              return adaptive_pool<AdaptiveMaxPool##D##dOptions, AdaptiveMaxPool##D##dImpl>(r);) \
  RAMET_LAYER(ReflectionPad##D##d,                                                               \
              return pad<ReflectionPad##D##dOptions, ReflectionPad##D##dImpl>(r);)               \
  RAMET_LAYER(ReplicationPad##D##d,                                                              \
              return pad<ReplicationPad##D##dOptions, ReplicationPad##D##dImpl>(r);)             \
  RAMET_LAYER(ZeroPad##D##d, return pad<ZeroPad##D##dOptions, ZeroPad##D##dImpl>(r);)            \
  RAMET_LAYER(ConstantPad##D##d,                                                                 \
              return constant_pad<ConstantPad##D##dOptions, ConstantPad##D##dImpl>(r);)          \
  RAMET_LAYER(InstanceNorm##D##d,                                                                \
              return norm_of_channels<InstanceNormOptions, InstanceNorm##D##dImpl>(r);)
  static const auto* const layers = new std::vector<Layer> {
    // clang-format off
      OF_DIMENSIONS(1) OF_DIMENSIONS(2) OF_DIMENSIONS(3)
      RAMET_LAYER(LocalResponseNorm, LocalResponseNormOptions o{r.count("size")};
                  r.read("alpha", o.alpha()); r.read("beta", o.beta()); r.read("k", o.k());
                  return r.make<LocalResponseNormImpl>(o);)
      RAMET_LAYER(PixelShuffle, PixelShuffleOptions o{r.count("upscale_factor")};
                  return r.make<PixelShuffleImpl>(o);)
      RAMET_LAYER(PixelUnshuffle, PixelUnshuffleOptions o{r.count("downscale_factor")};
                  return r.make<PixelUnshuffleImpl>(o);)
      RAMET_LAYER(Fold, FoldOptions o{r.counts<2>("output_size"), r.counts<2>("kernel_size")};
                  r.read("dilation", o.dilation(), Range::kPositive);
                  r.read("padding", o.padding(), Range::kNotNegative);
                  r.read("stride", o.stride(), Range::kPositive); return r.make<FoldImpl>(o);)
      RAMET_LAYER(Unfold, UnfoldOptions o{r.counts<2>("kernel_size")};
                  r.read("dilation", o.dilation(), Range::kPositive);
                  r.read("padding", o.padding(), Range::kNotNegative);
                  r.read("stride", o.stride(), Range::kPositive); return r.make<UnfoldImpl>(o);)
      RAMET_LAYER(Upsample, UpsampleOptions o; r.read("size", o.size());
                  r.read("scale_factor", o.scale_factor()); r.read("mode", o.mode());
                  r.read("align_corners", o.align_corners()); return r.make<UpsampleImpl>(o);)
    // clang-format on
  };
#undef OF_DIMENSIONS
  return *layers;
}

}  // namespace ramet::c
