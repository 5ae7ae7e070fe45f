// Pictures as PNG (ISO/IEC 15948), not interlaced.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace ramet {
namespace formats {

/// `pixels`: height * width * channels bytes, row by row; 1 (grey), 3 (RGB) or 4 (RGBA) channels.
/// Its content is cut into chunks of at most `most` bytes: the format has no longer ones.
std::string png(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels,
                size_t most = (size_t{1} << 31) - 1);

}  // namespace formats
}  // namespace ramet
