#include <zlib.h>

#include <string_view>

#include "nn/formats/tensorboard/png_internal.h"
#include "runtime/base/error.h"

namespace ramet::formats {
namespace {

void put_big_endian(std::string& out, uint64_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(v >> shift));
}

// Length, kind, content, and the check sum of the last two.
void put_chunk(std::string& out, std::string_view kind, std::string_view content) {
  put_big_endian(out, content.size());
  const size_t from = out.size();
  out.append(kind).append(content);
  put_big_endian(out,
                 crc32_z(0, reinterpret_cast<const Bytef*>(out.data()) + from, out.size() - from));
}

}  // namespace

std::string png(const uint8_t* pixels, int64_t height, int64_t width, int64_t channels,
                size_t most) {
  const auto row = static_cast<size_t>(width * channels);
  std::string raw;
  raw.reserve((row + 1) * static_cast<size_t>(height));
  for (int64_t y = 0; y < height; ++y) {
    raw.push_back(0);  // areas of one colour are as small unpredicted
    raw.append(reinterpret_cast<const char*>(pixels) + static_cast<size_t>(y) * row, row);
  }
  uLongf size = compressBound(raw.size());
  std::string packed(size, '\0');
  const int result = compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                              reinterpret_cast<const Bytef*>(raw.data()), raw.size());
  RAMET_CHECK(result == Z_OK, "png", "zlib's compress said ", result);
  packed.resize(size);

  std::string header;
  put_big_endian(header, static_cast<uint64_t>(width));
  put_big_endian(header, static_cast<uint64_t>(height));
  const char color = channels == 1 ? 0 : channels == 3 ? 2 : 6;
  header.append({8, color, 0, 0, 0});  // bits a channel; deflate, filters of rows, no interlace
  std::string out = "\x89PNG\r\n\x1a\n";
  put_chunk(out, "IHDR", header);
  const std::string_view content(packed);
  for (size_t at = 0; at < content.size(); at += most)
    put_chunk(out, "IDAT", content.substr(at, most));
  put_chunk(out, "IEND", "");
  return out;
}

}  // namespace ramet::formats
