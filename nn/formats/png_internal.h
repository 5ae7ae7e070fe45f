// Pictures as PNG (ISO/IEC 15948), not interlaced.
#pragma once
#include <cstdint>
#include <string>

namespace ramet {
namespace formats {

/// `pixels`: height * width * channels bytes, row by row; 1 (grey), 3 (RGB) or 4 (RGBA) channels.
std::string png(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels);

}  // namespace formats
}  // namespace ramet
