// Files for an example program: images of ten classes as IDX files, the format of MNIST. A few
// steps of training separate the classes. Plain C++.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace example_data {

/// A new folder, named with a '/' at its end. It is below TEST_TMPDIR where a test runner sets
/// that.
inline std::string scratch_folder(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  const std::string folder =
      std::string(base ? base : "/tmp") + "/" + name + "_" + std::to_string(::getpid());
  ::mkdir(folder.c_str(), 0700);
  return folder + "/";
}

/// The same numbers on every machine and with every library.
class Numbers {
 public:
  explicit Numbers(uint32_t seed) : state_(seed * 2654435761u + 1u) {}
  /// Even in [0, 1).
  double next() {
    state_ = state_ * 1664525u + 1013904223u;
    return (state_ >> 8) / 16777216.0;
  }

 private:
  uint32_t state_;
};

/// A bright bar on dark noise; the label says where and in which direction it lies.
inline std::vector<uint8_t> picture(int label, int side, Numbers& noise) {
  std::vector<uint8_t> pixels(static_cast<size_t>(side) * side);
  const int place = label % 5, width = side / 5;
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      const int across = label < 5 ? row : column;
      const bool bright = across / width == place;
      pixels[static_cast<size_t>(row) * side + column] =
          static_cast<uint8_t>((bright ? 180 : 0) + 60 * noise.next());
    }
  }
  return pixels;
}

inline void put_big_endian(std::ofstream& file, uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) file.put(static_cast<char>(v >> shift & 255));
}

/// `count` pictures of 28 x 28 and their labels 0, 1, ..., 9, 0, ...; part: "train" or "t10k".
inline void write_idx(const std::string& folder, const std::string& part, uint32_t count) {
  std::ofstream images(folder + part + "-images-idx3-ubyte", std::ios::binary);
  std::ofstream labels(folder + part + "-labels-idx1-ubyte", std::ios::binary);
  put_big_endian(images, 0x803);
  for (uint32_t v : {count, 28u, 28u}) put_big_endian(images, v);
  put_big_endian(labels, 0x801);
  put_big_endian(labels, count);
  Numbers noise(part == "train" ? 1 : 2);
  std::vector<std::vector<uint8_t>> pictures;  // they come again: files are to be there at once
  for (int i = 0; i < 200; ++i) pictures.push_back(picture(i % 10, 28, noise));
  for (uint32_t i = 0; i < count; ++i) {
    const std::vector<uint8_t>& pixels = pictures[i % pictures.size()];
    images.write(reinterpret_cast<const char*>(pixels.data()),
                 static_cast<std::streamsize>(pixels.size()));
    labels.put(static_cast<char>(i % 10));
  }
}

/// LibTorch's MNIST takes only files of the real set's length: 60,000 and 10,000 images.
inline void write_mnist(const std::string& folder) {
  write_idx(folder, "train", 60000);
  write_idx(folder, "t10k", 10000);
}

}  // namespace example_data
