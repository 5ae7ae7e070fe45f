#include <sys/stat.h>
#include <zip.h>

#include <algorithm>
#include <cerrno>
#include <exception>

#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/source_internal.h"
#include "runtime/base/error.h"

namespace ramet::formats::detail {
namespace {

// Deflate makes at most 1032 bytes of one.
constexpr uint64_t kMostOfAByte = 1032, kMostOfNothing = 64;

constexpr uint64_t kMostAtOnce = uint64_t{1} << 30;
constexpr uint64_t kLeast = 22;  // the end of an empty archive's directory

zip_t* opened(const char* op, const std::string& file, uint64_t bytes, zip_source_t* source,
              zip_error_t& error) {
  if (bytes < kLeast) {  // libzip takes nothing for an archive of nothing
    if (source) zip_source_free(source);
    zip_error_fini(&error);
    fail(op, "\"", file, "\": got ", bytes, " bytes, expected a zip archive");
  }
  zip_t* zip = source ? zip_open_from_source(source, ZIP_RDONLY, &error) : nullptr;
  if (zip) {
    zip_error_fini(&error);
    return zip;
  }
  const std::string why = zip_error_strerror(&error);
  if (source) zip_source_free(source);
  zip_error_fini(&error);
  fail(op, "\"", file, "\": got no zip archive that can be read (", why, "), expected one");
}

}  // namespace

ZipReader::ZipReader(const char* op, const std::string& path) : op_(op), file_(path) {
  const serialize::detail::FileSource there(op, path, "a zip archive");
  zip_error_t error;
  zip_error_init(&error);
  zip_ = opened(op, path, there.size(), zip_source_file_create(path.c_str(), 0, -1, &error), error);
  list(there.size());
}

ZipReader::ZipReader(const char* op, const std::string& name, const char* data, size_t bytes)
    : op_(op), file_(name) {
  zip_error_t error;
  zip_error_init(&error);
  zip_ = opened(op, name, bytes, zip_source_buffer_create(data, bytes, 0, &error), error);
  list(bytes);
}

// A source as libzip reads it. What the source throws must not pass through libzip, which is C: it
// is kept, and thrown when libzip has returned.
struct ZipReader::Reading {
  serialize::detail::Source& source;
  uint64_t at = 0;
  std::exception_ptr error;

  static zip_int64_t answer(void* self, void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
    Reading& r = *static_cast<Reading*>(self);
    switch (command) {
      case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, -1);
      case ZIP_SOURCE_OPEN: r.at = 0; return 0;
      case ZIP_SOURCE_READ: return r.read(data, bytes);
      case ZIP_SOURCE_STAT: {
        auto* stat = static_cast<zip_stat_t*>(data);
        zip_stat_init(stat);
        stat->size = r.source.size();
        stat->valid |= ZIP_STAT_SIZE;
        return sizeof(*stat);
      }
      case ZIP_SOURCE_SEEK: {
        const zip_int64_t to =
            zip_source_seek_compute_offset(r.at, r.source.size(), data, bytes, nullptr);
        if (to < 0) return -1;
        r.at = static_cast<uint64_t>(to);
        return 0;
      }
      case ZIP_SOURCE_TELL: return static_cast<zip_int64_t>(r.at);
      case ZIP_SOURCE_ERROR: {
        int* errors = static_cast<int*>(data);
        errors[0] = ZIP_ER_READ, errors[1] = EIO;
        return 2 * sizeof(int);
      }
      case ZIP_SOURCE_CLOSE:
      case ZIP_SOURCE_FREE: return 0;
      default: return -1;
    }
  }
  zip_int64_t read(void* data, uint64_t bytes) {
    bytes = std::min(bytes, source.size() - at);
    try {
      source.read(at, data, bytes);
    } catch (...) {
      error = std::current_exception();
      return -1;
    }
    at += bytes;
    return static_cast<zip_int64_t>(bytes);
  }
  void rethrow() {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
};

ZipReader::ZipReader(const char* op, const std::string& name, serialize::detail::Source& source)
    : op_(op), file_(name), reading_(new Reading{source, 0, nullptr}) {
  zip_error_t error;
  zip_error_init(&error);
  try {
    zip_ = opened(op, name, source.size(),
                  zip_source_function_create(Reading::answer, reading_.get(), &error), error);
    list(source.size());
  } catch (...) {
    reading_->rethrow();
    throw;
  }
}

ZipReader::~ZipReader() {
  if (zip_) zip_discard(zip_);
}

void ZipReader::list(uint64_t file_bytes) {
  try {
    bytes_ = file_bytes;
    // The sum over all entries: overlapping entries would let a small file have any number of them.
    uint64_t compressed = 0;
    const int64_t n = zip_get_num_entries(zip_, 0);
    for (int64_t i = 0; i < n; ++i) {
      const auto place = static_cast<uint64_t>(i);
      zip_stat_t s;
      const auto bad = [&](const auto&... parts) {
        fail(op_, "\"", file_, "\", entry ", i, ": ", parts...);
      };
      if (zip_stat_index(zip_, place, ZIP_FL_ENC_RAW, &s) != 0)
        bad("cannot be read (", zip_error_strerror(zip_get_error(zip_)), ")");
      constexpr uint64_t needed =
          ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
      if ((s.valid & needed) != needed) bad("got no name, size or method, expected them");
      Entry e;
      e.name = s.name;
      if (!e.name.empty() && e.name.back() == '/') continue;
      if ((s.valid & ZIP_STAT_ENCRYPTION_METHOD) && s.encryption_method != ZIP_EM_NONE)
        bad("\"", e.name, "\" is encrypted, expected one that is not");
      if (s.comp_method != ZIP_CM_STORE && s.comp_method != ZIP_CM_DEFLATE) {
        bad("\"", e.name, "\": got the compression method ", s.comp_method,
            ", expected 0 (stored) or 8 (deflated)");
      }
      const bool stored = s.comp_method == ZIP_CM_STORE;
      if (s.comp_size > file_bytes - compressed ||
          (stored ? s.size != s.comp_size : s.size > kMostOfAByte * s.comp_size + kMostOfNothing)) {
        bad("\"", e.name, "\": got ", s.size, " bytes in ", s.comp_size, " of a file of ",
            file_bytes, ", expected as many as are there");
      }
      compressed += s.comp_size;
      e.bytes = s.size;
      if (!by_name_.emplace(e.name, entries_.size()).second)
        bad("got the name \"", e.name, "\" twice, expected once");
      entries_.push_back(std::move(e));
      places_.push_back(place);
    }
  } catch (...) {
    zip_discard(zip_);
    zip_ = nullptr;
    throw;
  }
}

const ZipReader::Entry* ZipReader::find(const std::string& name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : &entries_[at->second];
}

ZipReader::Stream::Stream(ZipReader& zip, const Entry& entry)
    : zip_(zip), entry_(entry), left_(entry.bytes) {
  const size_t i = static_cast<size_t>(&entry - zip.entries_.data());
  file_ = zip_fopen_index(zip.zip_, zip.places_[i], 0);
  RAMET_CHECK(file_, zip.op_, "\"", zip.file_, "\", entry \"", entry.name, "\": cannot be read (",
              zip_error_strerror(zip_get_error(zip.zip_)), ")");
}

ZipReader::Stream::~Stream() { zip_fclose(file_); }

void ZipReader::Stream::read(void* to, uint64_t bytes) {
  char* p = static_cast<char*>(to);
  const auto check = [&](bool good, const char* otherwise) {
    if (good) return;
    const zip_error_t* error = zip_file_get_error(file_);
    const std::string why = zip_error_code_zip(error) == ZIP_ER_OK
                                ? otherwise
                                : zip_error_strerror(zip_file_get_error(file_));
    fail(zip_.op_, "\"", zip_.file_, "\", entry \"", entry_.name, "\", offset ",
         entry_.bytes - left_, ": cannot be read (", why, ")");
  };
  while (bytes > 0) {
    // libzip 1.7 counts wrongly where one call asks for more bytes than 32 bits can count.
    const zip_int64_t got = zip_fread(file_, p, std::min(bytes, kMostAtOnce));
    if (zip_.reading_) zip_.reading_->rethrow();
    check(got > 0, "it ends here");
    p += got, bytes -= static_cast<uint64_t>(got), left_ -= static_cast<uint64_t>(got);
  }
  // At the end libzip compares lengths and checksums.
  char more;
  if (left_ == 0) check(zip_fread(file_, &more, 1) == 0, "it goes on behind its end");
}

void ZipReader::read(const Entry& entry, void* to) { Stream(*this, entry).read(to, entry.bytes); }

std::string ZipReader::text(const Entry& entry) {
  std::string text(entry.bytes, ' ');
  read(entry, text.data());
  return text;
}

}  // namespace ramet::formats::detail
