#include "tools/training/grid.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "tools/training/canvas.h"

namespace ramet::training {

std::string draw_grid(const Tensor& pictures, int64_t columns) {
  RAMET_CHECK(pictures.dim() == 4 && (pictures.size(1) == 1 || pictures.size(1) == 3), "draw_grid",
              "pictures: got ", pictures.sizes(), ", expected (N, 1 or 3, height, width)");
  const Tensor p = pictures.detach().to(Device(kCPU, 0), kFloat).contiguous();
  const int64_t n = p.size(0), channels = p.size(1), height = p.size(2), width = p.size(3),
                plane = height * width, gap = 4,
                scale = std::max<int64_t>(1, 128 / std::max(height, width));
  const int64_t rows = (n + columns - 1) / columns;
  Canvas canvas(static_cast<int>(columns * (scale * width + gap) + gap),
                static_cast<int>(rows * (scale * height + gap) + gap), {255, 255, 255});
  const float* from = p.data_ptr<float>();
  const auto byte = [](float v) {
    return static_cast<uint8_t>(std::lround(255 * (v > 0 ? std::min(v, 1.0f) : 0.0f)));
  };
  for (int64_t i = 0; i < n; ++i, from += channels * plane) {
    const int64_t left = gap + i % columns * (scale * width + gap),
                  top = gap + i / columns * (scale * height + gap);
    for (int64_t at = 0; at < plane; ++at) {
      const auto value = [&](int64_t c) { return byte(from[channels == 1 ? at : c * plane + at]); };
      canvas.box(static_cast<double>(left + at % width * scale),
                 static_cast<double>(top + at / width * scale), static_cast<double>(scale),
                 static_cast<double>(scale), {value(0), value(1), value(2)});
    }
  }
  return canvas.png();
}

}  // namespace ramet::training
