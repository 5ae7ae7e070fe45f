// The functions of zlib that Ramet calls, where there is no zlib. Nothing is compressed: for nn/data/idx.cc files are those of the C
// library, and data in gzip's format are an error. Pictures (nn/formats/tensorboard/png.cc) are stored as they are.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#define Z_OK 0
#define Z_ERRNO (-1)
#define Z_STREAM_ERROR (-2)
#define Z_DATA_ERROR (-3)
#define Z_BUF_ERROR (-5)

struct RametPlainFile {
  std::FILE* file;
  bool zipped;
};
using gzFile = RametPlainFile*;

inline gzFile ramet_plain_file(std::FILE* file, bool reads) {
  if (!file) return nullptr;
  bool zipped = false;
  if (reads) {
    const int first = std::getc(file), second = std::getc(file);
    zipped = first == 0x1f && second == 0x8b;
    std::rewind(file);
  }
  return new RametPlainFile{file, zipped};
}
inline gzFile gzopen(const char* path, const char* mode) { return ramet_plain_file(std::fopen(path, mode), true); }
// Writes: mode "wb6" asks for compression, "wbT" does not.
inline gzFile gzdopen(int descriptor, const char* mode) {
  const gzFile file = ramet_plain_file(fdopen(descriptor, "wb"), false);
  if (file) file->zipped = mode[2] != 'T';
  return file;
}
inline int gzbuffer(gzFile, unsigned) { return 0; }
inline int gzdirect(gzFile file) { return !file->zipped; }
inline int gzread(gzFile file, void* to, unsigned bytes) {
  return file->zipped ? -1 : static_cast<int>(std::fread(to, 1, bytes, file->file));
}
inline int gzwrite(gzFile file, const void* from, unsigned bytes) {
  return file->zipped ? 0 : static_cast<int>(std::fwrite(from, 1, bytes, file->file));
}
inline const char* gzerror(gzFile file, int* code) {
  *code = file->zipped ? Z_DATA_ERROR : Z_OK;
  return file->zipped ? "this program was built without zlib" : "";
}
inline int gzclose(gzFile file) {
  const bool zipped = file->zipped;
  const int closed = std::fclose(file->file);
  delete file;
  return closed == 0 && !zipped ? Z_OK : Z_STREAM_ERROR;
}

using Bytef = unsigned char;
using uLongf = unsigned long;

inline unsigned long crc32_z(unsigned long crc, const Bytef* p, size_t bytes) {
  uint32_t c = ~static_cast<uint32_t>(crc);
  for (size_t i = 0; i < bytes; ++i) {
    c ^= p[i];
    for (int bit = 0; bit < 8; ++bit) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
  }
  return ~c;
}

// RFC 1950 and 1951: two bytes, stored blocks of up to 65535 bytes with 5 bytes before each, and a check sum.
inline uLongf compressBound(uLongf bytes) { return bytes + 5 * (bytes / 65535 + 1) + 6; }
inline int compress(Bytef* to, uLongf* size, const Bytef* from, uLongf bytes) {
  if (*size < compressBound(bytes)) return Z_BUF_ERROR;
  Bytef* out = to;
  *out++ = 0x78, *out++ = 0x01;
  uint32_t a = 1, b = 0;
  for (uLongf i = 0; i < bytes; ++i) a = (a + from[i]) % 65521, b = (b + a) % 65521;
  do {
    const uLongf n = bytes < 65535 ? bytes : 65535;
    *out++ = n == bytes;
    *out++ = static_cast<Bytef>(n), *out++ = static_cast<Bytef>(n >> 8);
    *out++ = static_cast<Bytef>(~n), *out++ = static_cast<Bytef>(~n >> 8);
    std::memcpy(out, from, n);
    out += n, from += n, bytes -= n;
  } while (bytes);
  for (const uint32_t sum : {b, a}) *out++ = static_cast<Bytef>(sum >> 8), *out++ = static_cast<Bytef>(sum);
  *size = static_cast<uLongf>(out - to);
  return Z_OK;
}
