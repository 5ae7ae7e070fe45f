#include "nn/layers/image/pixel_shuffle.h"

#include <ostream>

#include "autograd/ops/layers/shuffle.h"
#include "nn/module/class_name.h"

namespace ramet::nn {

void PixelShuffleImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::PixelShuffle(upscale_factor=") << options.upscale_factor()
         << ")";
}
Tensor PixelShuffleImpl::forward(const Tensor& input) {
  return functional::detail::pixel_shuffle(input, options.upscale_factor());
}
void PixelUnshuffleImpl::pretty_print(std::ostream& stream) const {
  stream << detail::qualified("nn::PixelUnshuffle(downscale_factor=") << options.downscale_factor()
         << ")";
}
Tensor PixelUnshuffleImpl::forward(const Tensor& input) {
  return functional::detail::pixel_unshuffle(input, options.downscale_factor());
}

template class Cloneable<PixelShuffleImpl>;
template class Cloneable<PixelUnshuffleImpl>;

namespace functional {

Tensor detail::pixel_shuffle(const Tensor& input, int64_t upscale_factor) {
  return ramet::pixel_shuffle(input, upscale_factor);
}
Tensor detail::pixel_unshuffle(const Tensor& input, int64_t downscale_factor) {
  return ramet::pixel_unshuffle(input, downscale_factor);
}
Tensor pixel_shuffle(const Tensor& input, const PixelShuffleFuncOptions& options) {
  return detail::pixel_shuffle(input, options.upscale_factor());
}
Tensor pixel_unshuffle(const Tensor& input, const PixelUnshuffleFuncOptions& options) {
  return detail::pixel_unshuffle(input, options.downscale_factor());
}

}  // namespace functional
}  // namespace ramet::nn
