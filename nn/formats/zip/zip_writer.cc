#include <unistd.h>
#include <zip.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>

#include "nn/formats/zip/zip_internal.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/error.h"

namespace ramet::formats::detail {
namespace {

// The target of libzip's writes, as a source of its own. It is empty at first.
struct Target {
  AtomicFile* file = nullptr;  // else `memory`
  std::vector<char> memory;
  uint64_t at = 0, end = 0;
  int reason = 0;  // errno of what failed

  bool write(const void* data, uint64_t bytes) {
    if (!file) {
      try {
        if (memory.size() < at + bytes) memory.resize(at + bytes);
      } catch (const std::exception&) {  // libzip, which called this, is C
        reason = ENOMEM;
        return false;
      }
      std::memcpy(memory.data() + at, data, bytes);
    } else {
      const char* p = static_cast<const char*>(data);
      for (uint64_t done = 0; done < bytes;) {
        const ssize_t n =
            ::pwrite(file->descriptor(), p + done, bytes - done, static_cast<off_t>(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
          reason = errno;
          return false;
        }
        done += static_cast<uint64_t>(n);
      }
    }
    at += bytes;
    end = std::max(end, at);
    return true;
  }
};

zip_int64_t answer(void* self, void* data, zip_uint64_t bytes, zip_source_cmd_t command) {
  Target& t = *static_cast<Target*>(self);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return zip_source_make_command_bitmap(
          ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
          ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
          ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE,
          ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_BEGIN_WRITE: t.at = t.end = 0; return 0;
    case ZIP_SOURCE_WRITE: return t.write(data, bytes) ? static_cast<zip_int64_t>(bytes) : -1;
    case ZIP_SOURCE_SEEK_WRITE: {
      zip_error_t error;
      zip_error_init(&error);
      const zip_int64_t to = zip_source_seek_compute_offset(t.at, t.end, data, bytes, &error);
      zip_error_fini(&error);
      if (to < 0) {
        t.reason = EINVAL;
        return -1;
      }
      t.at = static_cast<uint64_t>(to);
      return 0;
    }
    case ZIP_SOURCE_TELL_WRITE: return static_cast<zip_int64_t>(t.at);
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE: return 0;
    case ZIP_SOURCE_ERROR: {
      int* errors = static_cast<int*>(data);
      errors[0] = t.reason ? ZIP_ER_WRITE : ZIP_ER_READ;  // of a stat: no such file yet
      errors[1] = t.reason ? t.reason : ENOENT;
      return 2 * sizeof(int);
    }
    default: return -1;
  }
}

// The longest name that the format can state.
constexpr size_t kMostOfName = 65535;

// The start of a name, for errors, without what a terminal would obey.
std::string shown(const std::string& name) {
  std::string text = name.substr(0, 60);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = '?';
  return text;
}

void write_to(const char* op, const std::string& where, Target& target,
              const std::vector<ZipPart>& parts, bool deflate) {
  for (const ZipPart& part : parts)
    RAMET_CHECK(is_entry_name(part.name), op, "cannot write the archive ", where,
                ": name of an entry: got \"", shown(part.name), "\", ", part.name.size(),
                " bytes, expected valid UTF-8 of 1 to ", kMostOfName,
                " bytes, without control characters");
  if (parts.empty()) {  // of which libzip makes no file: the end of a directory
    const char end[22] = {'P', 'K', 5, 6};
    RAMET_CHECK(target.write(end, sizeof end), op, "cannot write the archive ", where, " (",
                std::strerror(target.reason), ")");
    return;
  }
  zip_error_t error;
  zip_error_init(&error);
  const auto check = [&](bool good, zip_t* zip) {
    if (good) return;
    const std::string why = zip_error_strerror(zip ? zip_get_error(zip) : &error);
    if (zip) zip_discard(zip);
    fail(op, "cannot write the archive ", where, " (", why, ")");
  };
  zip_source_t* source = zip_source_function_create(answer, &target, &error);
  check(source, nullptr);
  zip_t* zip = zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &error);
  if (!zip) zip_source_free(source);
  check(zip, nullptr);
  for (const ZipPart& part : parts) {
    std::vector<zip_buffer_fragment_t> pieces;
    for (const auto& [data, bytes] : part.pieces) {
      if (bytes == 0) continue;
      auto* p = static_cast<zip_uint8_t*>(const_cast<void*>(data));  // libzip only reads it
      pieces.push_back({p, bytes});
    }
    zip_source_t* content = zip_source_buffer_fragment(zip, pieces.data(), pieces.size(), 0);
    check(content, zip);
    const zip_int64_t i = zip_file_add(zip, part.name.c_str(), content, ZIP_FL_ENC_UTF_8);
    if (i < 0) zip_source_free(content);
    check(i >= 0, zip);
    const auto place = static_cast<zip_uint64_t>(i);
    check(zip_set_file_compression(zip, place, deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0,
          zip);
    // 1980-01-01, as Python's: the same content is the same file.
    check(zip_file_set_dostime(zip, place, 0, 1 << 5 | 1, 0) == 0, zip);
  }
  check(zip_close(zip) == 0, zip);
}

}  // namespace

bool is_utf8(const std::string& s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const int more = c < 0x80                ? 0
                     : c >= 0xc2 && c < 0xe0 ? 1
                     : c >= 0xe0 && c < 0xf0 ? 2
                     : c >= 0xf0 && c < 0xf5 ? 3
                                             : -1;
    if (more < 0 || s.size() - i <= static_cast<size_t>(more)) return false;
    for (int k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(s[i + static_cast<size_t>(k)]) & 0xc0) != 0x80) return false;
    i += static_cast<size_t>(more) + 1;
  }
  return true;
}

// libzip takes text with other control characters for CP 437, and refuses it.
bool is_entry_name(const std::string& name) {
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 32 && c != '\t' && c != '\n' && c != '\r') return false;
  return !name.empty() && name.size() <= kMostOfName && is_utf8(name);
}

void write_zip(const char* op, const std::string& path, const std::vector<ZipPart>& parts,
               bool deflate) {
  AtomicFile file(path);
  Target target;
  target.file = &file;
  write_to(op, "\"" + path + "\"", target, parts, deflate);
  file.commit();
}

std::vector<char> zip_bytes(const char* op, const std::vector<ZipPart>& parts, bool deflate) {
  Target target;
  write_to(op, "in memory", target, parts, deflate);
  return std::move(target.memory);
}

}  // namespace ramet::formats::detail
