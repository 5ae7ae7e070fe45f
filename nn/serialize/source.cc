#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "nn/serialize/source_internal.h"
#include "runtime/base/checked_size.h"
#include "runtime/base/error.h"

namespace ramet::serialize::detail {

Source::~Source() = default;

void MemorySource::read(uint64_t at, void* to, uint64_t bytes) {
  if (bytes) std::memcpy(to, data_ + at, bytes);
}

FileSource::FileSource(const char* op, const std::string& path, const char* what)
    : op_(op), path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  RAMET_CHECK(fd_ >= 0, op, "cannot open the file: got \"", path, "\" (", std::strerror(errno),
              ")");
  struct stat info;
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd_);
    fail(op, "not a file: got ", S_ISDIR(info.st_mode) ? "the folder \"" : "\"", path,
         "\", expected ", what);
  }
  bytes_ = static_cast<uint64_t>(info.st_size);
}

FileSource::~FileSource() { ::close(fd_); }

void FileSource::read(uint64_t at, void* to, uint64_t bytes) {
  char* p = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, p, bytes, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    RAMET_CHECK(got > 0, op_, "cannot read the file: got \"", path_, "\" (",
                got < 0 ? std::strerror(errno) : "it became shorter while it was read", ")");
    p += got, at += static_cast<uint64_t>(got), bytes -= static_cast<uint64_t>(got);
  }
}

std::shared_ptr<char> map_file(const char* op, const std::string& path, const FileSource& file) {
  RAMET_CHECK(file.size() < static_cast<uint64_t>(kMaxStorageBytes), op,
              "cannot map the file into memory: got \"", path, "\" of ", file.size(),
              " bytes, expected less than 2^", kMaxStorageBits);
  const auto bytes = static_cast<size_t>(file.size());
  if (bytes == 0) return nullptr;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                    file.descriptor(), 0);
  RAMET_CHECK(at != MAP_FAILED, op, "cannot map the file into memory: got \"", path, "\" (",
              std::strerror(errno), ")");
  return {static_cast<char*>(at), [bytes](char* p) { ::munmap(p, bytes); }};
}

}  // namespace ramet::serialize::detail
