// Code shared by the fronts of convolution and pooling: lists of one or two numbers, views of
// images for kernels, layouts of results. Private to autograd/ops.
#pragma once
#include <array>

#include "autograd/ops/front/common_internal.h"
#include "autograd/ops/make/copy.h"
#include "kernels/image/image.h"

namespace ramet {
namespace autograd {

/// A list of one number or of D numbers, as D numbers.
template <size_t D>
std::array<int64_t, D> numbers_of(const char* op, const char* name, IntArrayRef list) {
  constexpr const char* kWords[] = {"", "one number", "one or two numbers", "one or three numbers"};
  RAMET_CHECK(list.size() == 1 || list.size() == D, op, name, ": got ", list, ", expected ",
              kWords[D]);
  std::array<int64_t, D> numbers{};
  for (size_t i = 0; i < D; ++i) numbers[i] = list[list.size() == 1 ? 0 : i];
  return numbers;
}
inline std::array<int64_t, 2> pair_of(const char* op, const char* name, IntArrayRef list) {
  return numbers_of<2>(op, name, list);
}

/// The view of a 4-D tensor that kernels take, in any layout.
inline kernels::ImageView image_view(const Tensor& t) {
  const TensorBase look = t.steady();
  const int64_t* s = look->strides();
  return {look.ptr(), s[0], s[1], s[2], s[3]};
}

/// `t` with channels innermost. It may have been settled since the forward, where x had that
/// layout.
inline Tensor channels_innermost(const Tensor& t) {
  const Tensor look = t.shallow();
  if (is_channels_last(look)) return look;
  Tensor r =
      empty_channels_last(t.size(0), t.size(1), t.size(2), t.size(3), t.scalar_type(), t.device());
  copy_values(r, look);
  return r;
}
/// `t` in the layout of `like`, row-major or channels innermost: a kernel takes one kind.
inline Tensor in_layout_of(const Tensor& like, const Tensor& t) {
  return like.raw_contiguous() ? t.shallow().contiguous() : channels_innermost(t);
}

/// The layout of an operation's result.
enum class ImageLayout : uint8_t { kRows, kInternal, kChannelsLast };

/// The layout of `t`: row-major; internally channels-last (Note [Internal layout]); or
/// channels-last because the user made it so.
inline ImageLayout layout_of(const Tensor& t) {
  if (t->is(TensorImpl::kInternalLayout)) return ImageLayout::kInternal;
  return t.raw_contiguous() || !is_channels_last(t) ? ImageLayout::kRows
                                                    : ImageLayout::kChannelsLast;
}
inline Tensor empty_image(ImageLayout layout, int64_t n, int64_t c, int64_t h, int64_t w,
                          ScalarType dtype, Device device) {
  if (layout == ImageLayout::kRows) return Tensor(TensorBase::empty({n, c, h, w}, dtype, device));
  if (layout == ImageLayout::kInternal) return empty_channels_last(n, c, h, w, dtype, device);
  const int64_t sizes[] = {n, c, h, w}, strides[] = {c * h * w, 1, w * c, c};
  return Tensor(TensorBase::empty_strided(sizes, strides, dtype, device));
}

}  // namespace autograd
}  // namespace ramet
