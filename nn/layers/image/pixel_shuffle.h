// PixelShuffle and PixelUnshuffle.
#pragma once
#include "nn/module/arg.h"
#include "nn/module/cloneable.h"
#include "nn/module/module_holder.h"

namespace ramet::nn {

struct RAMET_API PixelShuffleOptions {
  PixelShuffleOptions(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}
  /// At least 1.
  RAMET_ARG(int64_t, upscale_factor);
};
struct RAMET_API PixelUnshuffleOptions {
  PixelUnshuffleOptions(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}
  /// At least 1.
  RAMET_ARG(int64_t, downscale_factor);
};

class RAMET_API PixelShuffleImpl : public Cloneable<PixelShuffleImpl> {
 public:
  explicit PixelShuffleImpl(const PixelShuffleOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  PixelShuffleOptions options;
};
extern template class Cloneable<PixelShuffleImpl>;
RAMET_MODULE(PixelShuffle);

class RAMET_API PixelUnshuffleImpl : public Cloneable<PixelUnshuffleImpl> {
 public:
  explicit PixelUnshuffleImpl(const PixelUnshuffleOptions& options_) : options(options_) {}
  void reset() override {}
  void pretty_print(std::ostream& stream) const override;
  Tensor forward(const Tensor& input);

  PixelUnshuffleOptions options;
};
extern template class Cloneable<PixelUnshuffleImpl>;
RAMET_MODULE(PixelUnshuffle);

namespace functional {

using PixelShuffleFuncOptions = PixelShuffleOptions;
using PixelUnshuffleFuncOptions = PixelUnshuffleOptions;

namespace detail {
RAMET_API Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor);
RAMET_API Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor);
}  // namespace detail
/// The functions of these names in autograd/ops/layers/shuffle.h.
RAMET_API Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options);
RAMET_API Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options);

}  // namespace functional
}  // namespace ramet::nn
