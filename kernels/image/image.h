// A kernel's view of a batch of images.
#pragma once
#include <cstdint>

namespace ramet {
namespace kernels {

/// A batch of images by element strides: NCHW, channels-last or anything else.
struct ImageView {
  void* data;
  int64_t n, c, h, w;
};

}  // namespace kernels
}  // namespace ramet
