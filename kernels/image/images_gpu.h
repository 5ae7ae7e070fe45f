// Images in a GPU's memory. For .cu files only.
#pragma once
#include "kernels/gpu/gpu_index.h"
#include "kernels/image/image.h"
#include "kernels/image/reach.h"

namespace ramet::kernels::RAMET_VARIANT {

/// Images in elements of type T; strides as I.
template <class T, class I> struct Images {
  T* data;
  I n, c, h, w;
  explicit Images(const ImageView& v)
      : data(static_cast<T*>(v.data)),
        n(static_cast<I>(v.n)),
        c(static_cast<I>(v.c)),
        h(static_cast<I>(v.h)),
        w(static_cast<I>(v.w)) {}
};

}  // namespace ramet::kernels::RAMET_VARIANT
