// Reads what the tools draw: PNG by its specification, SVG as XML.
#pragma once
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace ramet {

struct DecodedPicture {
  uint32_t width = 0, height = 0;
  std::string pixels;  // RGB rows
};
inline uint32_t big_endian(const std::string& s, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; ++i) v = v << 8 | static_cast<uint8_t>(s[at + i]);
  return v;
}
// A reader for 8-bit RGB, by the PNG specification, checksums included.
inline DecodedPicture decode(const std::string& png) {
  DecodedPicture p;
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  std::string packed;
  for (size_t at = 8; at + 12 <= png.size();) {
    const uint32_t n = big_endian(png, at);
    const std::string type = png.substr(at + 4, 4), body = png.substr(at + 8, n);
    EXPECT_EQ(big_endian(png, at + 8 + n),
              crc32(0, reinterpret_cast<const Bytef*>(png.data() + at + 4), n + 4))
        << type;
    if (type == "IHDR") {
      p.width = big_endian(body, 0), p.height = big_endian(body, 4);
      EXPECT_EQ(body.substr(8, 5), std::string("\x08\x02\x00\x00\x00", 5));
    }
    if (type == "IDAT") packed += body;
    at += 12 + n;
  }
  const size_t row = 3 * p.width;
  std::string raw(p.height * (row + 1), '\0');
  uLongf size = raw.size();
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(raw.data()), &size,
                       reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  p.pixels.resize(p.height * row);
  for (size_t y = 0; y < p.height; ++y) {
    const int filter = raw[y * (row + 1)];
    if (filter == 0) {
      p.pixels.replace(y * row, row, raw, y * (row + 1) + 1, row);
      continue;
    }
    for (size_t i = 0; i < row; ++i) {
      const auto at = [&](size_t yy, size_t ii) {
        return static_cast<uint8_t>(p.pixels[yy * row + ii]);
      };
      const int a = i >= 3 ? at(y, i - 3) : 0, b = y > 0 ? at(y - 1, i) : 0,
                c = i >= 3 && y > 0 ? at(y - 1, i - 3) : 0;
      const int pa = std::abs(b - c), pb = std::abs(a - c), pc = std::abs(a + b - 2 * c);
      const int guess[] = {0, a, b, (a + b) / 2, pa <= pb && pa <= pc ? a : pb <= pc ? b : c};
      p.pixels[y * row + i] =
          static_cast<char>(static_cast<uint8_t>(raw[y * (row + 1) + 1 + i]) + guess[filter]);
    }
  }
  return p;
}

// Tags open and close in order, attributes are quoted, '&' begins an entity: enough to be read by
// any XML reader.
inline void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size(); ++at) {
    if (xml[at] == '&') { EXPECT_NE(xml.find(';', at), std::string::npos); }
    if (xml[at] != '<') continue;
    size_t end = at;
    bool quoted = false;
    for (; end < xml.size() && (quoted || xml[end] != '>'); ++end) {
      if (xml[end] == '"') quoted = !quoted;
      ASSERT_TRUE(end == at || quoted || xml[end] != '<') << xml.substr(at, 40);
    }
    ASSERT_LT(end, xml.size());
    const std::string tag = xml.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find(' '));
    if (tag[0] == '?') {  // the declaration in front
      EXPECT_EQ(at, 0u);
    } else if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

}  // namespace ramet
