#include "nn/data/idx.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <type_traits>

#include "runtime/base/atomic_file.h"

namespace ramet {
namespace data {
namespace {

struct Type {
  unsigned char code;
  ScalarType dtype;
};
constexpr Type kTypes[] = {{0x08, kByte}, {0x09, kChar},  {0x0B, kShort},
                           {0x0C, kInt},  {0x0D, kFloat}, {0x0E, kDouble}};
// Deflate cannot expand a byte to more bytes than this. So the sizes in a damaged header are
// checked before memory is allocated.
constexpr int64_t kMaxExpansion = 1032;
constexpr int64_t kChunk = int64_t{1} << 30;  // zlib counts in unsigned int

// zlib's gz functions read plain files as they are, so there is one reader for both.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    struct stat info;
    RAMET_CHECK(::stat(path.c_str(), &info) == 0, "read_idx", "cannot open the file: got \"", path,
                "\" (", std::strerror(errno), "), expected an IDX file");
    RAMET_CHECK(S_ISREG(info.st_mode), "read_idx", "not a file: got \"", path,
                "\", expected an IDX file");
    file_bytes_ = info.st_size;
    file_.reset(gzopen(path.c_str(), "rb"));
    RAMET_CHECK(file_, "read_idx", "cannot open the file: got \"", path, "\" (",
                std::strerror(errno), "), expected an IDX file");
    gzbuffer(file_.get(), 1u << 17);
  }

  // Up to n bytes; fewer only at the end of the file.
  int64_t read(void* to, int64_t n) {
    int64_t done = 0;
    while (done < n) {
      const int got = gzread(file_.get(), static_cast<char*>(to) + done,
                             static_cast<unsigned>(std::min(n - done, kChunk)));
      if (got <= 0) {
        check();
        break;
      }
      done += got;
    }
    // zlib first delivers the content of a gzip file that is cut short, and reports the loss
    // afterwards.
    if (done < n) check();
    return done;
  }
  // Largest content this file can have.
  int64_t content_limit() {
    return gzdirect(file_.get()) ? file_bytes_ : file_bytes_ * kMaxExpansion;
  }
  bool compressed() { return !gzdirect(file_.get()); }

 private:
  void check() {
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_BUF_ERROR) {
      fail("read_idx", "compressed data is truncated: got \"", path_, "\" of ", file_bytes_,
           " bytes, expected more");
    }
    if (code == Z_ERRNO)
      fail("read_idx", "cannot read the file: got \"", path_, "\" (", std::strerror(errno), ")");
    if (code < 0)
      fail("read_idx", "compressed data is damaged: got \"", path_, "\" (", text,
           "), expected valid gzip data");
  }
  struct Close {
    void operator()(gzFile f) const { gzclose(f); }
  };
  std::string path_;
  std::unique_ptr<std::remove_pointer_t<gzFile>, Close> file_;
  int64_t file_bytes_ = 0;
};

int64_t content_bytes(const IdxHeader& header, const std::string& path, int64_t limit) {
  int64_t bytes = static_cast<int64_t>(item_size(header.dtype));
  for (int64_t n : header.sizes) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) bytes = -1;
    if (bytes < 0) break;
  }
  RAMET_CHECK(bytes >= 0 && bytes <= limit, "read_idx", "file is truncated: got \"", path,
              "\", too short for the ", short_name_of(header.dtype), IntArrayRef(header.sizes),
              " its header announces");
  return bytes;
}

IdxHeader read_header(Reader& in, const std::string& path) {
  unsigned char magic[4] = {};
  const int64_t got = in.read(magic, 4);
  RAMET_CHECK(got == 4, "read_idx", "file is truncated: got \"", path, "\" with ", got,
              " bytes, expected a header of at least 4");
  IdxHeader header;
  const Type* type = nullptr;
  for (const Type& t : kTypes)
    if (t.code == magic[2]) type = &t;
  char text[16];
  std::snprintf(text, sizeof(text), "%02x %02x %02x %02x", magic[0], magic[1], magic[2], magic[3]);
  RAMET_CHECK(magic[0] == 0 && magic[1] == 0, "read_idx", "not an IDX file: got \"", path,
              "\" with first bytes ", text, ", expected 00 00, an element type and a rank");
  RAMET_CHECK(type, "read_idx", "unknown element type in \"", path, "\": got first bytes ", text,
              ", expected the third to be 08, 09, 0b, 0c, 0d or 0e");
  RAMET_CHECK(magic[3] <= 64, "read_idx", "rank in \"", path, "\": got ", int{magic[3]},
              ", expected at most 64");
  header.dtype = type->dtype;
  for (int i = 0; i < magic[3]; ++i) {
    unsigned char b[4];
    RAMET_CHECK(in.read(b, 4) == 4, "read_idx", "file is truncated: got \"", path,
                "\" ending inside its header, expected ", 4 + 4 * magic[3], " bytes of header");
    header.sizes.push_back(int64_t{b[0]} << 24 | int64_t{b[1]} << 16 | int64_t{b[2]} << 8 |
                           int64_t{b[3]});
  }
  return header;
}

bool little_endian() {
  const uint16_t one = 1;
  unsigned char first;
  std::memcpy(&first, &one, 1);
  return first == 1;
}

// Reverses the bytes of each of n elements of `width` bytes.
void swap_bytes(unsigned char* p, int64_t n, size_t width) {
  for (int64_t i = 0; i < n; ++i, p += width)
    for (size_t a = 0, b = width - 1; a < b; ++a, --b) std::swap(p[a], p[b]);
}

}  // namespace

IdxHeader read_idx_header(const std::string& path) {
  Reader in(path);
  return read_header(in, path);
}

Tensor read_idx(const std::string& path) {
  Reader in(path);
  const IdxHeader header = read_header(in, path);
  const int64_t bytes = content_bytes(header, path, in.content_limit());
  Tensor out(TensorBase::empty(header.sizes, header.dtype, Device(kCPU, 0)));
  auto* p = static_cast<unsigned char*>(out.data_ptr());
  const int64_t got = in.read(p, bytes);
  const int64_t width = static_cast<int64_t>(item_size(header.dtype));
  RAMET_CHECK(got == bytes, "read_idx", "file is truncated: got \"", path, "\" with ", got / width,
              " elements, expected ", bytes / width, " (", short_name_of(header.dtype),
              IntArrayRef(header.sizes), ")");
  // Reads one more byte. This finds content beyond the announced size, and makes zlib verify the
  // checksum at the end.
  char more;
  RAMET_CHECK(in.read(&more, 1) == 0, "read_idx", "file is too long: got \"", path,
              "\" with content after its ", bytes / width, " elements (",
              short_name_of(header.dtype), IntArrayRef(header.sizes), ")");
  if (width > 1 && little_endian()) swap_bytes(p, bytes / width, static_cast<size_t>(width));
  return out;
}

std::string find_idx(const std::string& folder, const std::string& name) {
  const std::string plain =
      folder.empty() || folder.back() == '/' ? folder + name : folder + "/" + name;
  struct stat info;
  for (const char* ending : {"", ".gz"})
    if (::stat((plain + ending).c_str(), &info) == 0) return plain + ending;
  fail("find_idx", "file not found: got neither \"", plain, "\" nor \"", name,
       ".gz\" beside it, expected one of them");
}

void write_idx(const std::string& path, const Tensor& tensor) {
  RAMET_CHECK(tensor.defined() && tensor.is_cpu() && tensor.is_contiguous(), "write_idx",
              "tensor: expected a contiguous one on a CPU device");
  const Type* type = nullptr;
  for (const Type& t : kTypes)
    if (t.dtype == tensor.scalar_type()) type = &t;
  RAMET_CHECK(type, "write_idx", "element type: got ", short_name_of(tensor.scalar_type()),
              ", expected uint8, int8, int16, int32, float32 or float64");
  std::string content = {0, 0, static_cast<char>(type->code), static_cast<char>(tensor.dim())};
  for (int64_t n : tensor.sizes()) {
    RAMET_CHECK(n <= 0xffffffffll, "write_idx", "extent: got ", n, ", expected less than 2^32");
    for (int shift = 24; shift >= 0; shift -= 8) content.push_back(static_cast<char>(n >> shift));
  }
  const size_t start = content.size();
  content.append(static_cast<const char*>(tensor.data_ptr()), tensor.nbytes());
  if (tensor.element_size() > 1 && little_endian()) {
    swap_bytes(reinterpret_cast<unsigned char*>(&content[start]), tensor.numel(),
               tensor.element_size());
  }
  const bool zipped = path.size() > 3 && path.ends_with(".gz");
  AtomicFile whole(path);
  // gzclose closes the duplicate
  gzFile file = gzdopen(::dup(whole.descriptor()), zipped ? "wb6" : "wbT");
  RAMET_CHECK(file, "write_idx", "cannot write \"", path, "\" (", std::strerror(errno), ")");
  bool good = true;
  for (size_t at = 0; good && at < content.size(); at += static_cast<size_t>(kChunk)) {
    const auto n =
        static_cast<unsigned>(std::min(content.size() - at, static_cast<size_t>(kChunk)));
    good = gzwrite(file, content.data() + at, n) == static_cast<int>(n);
  }
  good = gzclose(file) == Z_OK && good;
  RAMET_CHECK(good, "write_idx", "cannot write \"", path, "\" (", std::strerror(errno), ")");
  whole.commit();
}

}  // namespace data
}  // namespace ramet
