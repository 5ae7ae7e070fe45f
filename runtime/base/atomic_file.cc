#include "runtime/base/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace ramet {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// The name that a write to `path` reaches: a symbolic link stays a link and its target is replaced.
std::string target_of(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (!real) return path;
  std::string target(real);
  std::free(real);
  return target;
}

[[noreturn]] void cannot(const char* what, const std::string& path) {
  const int reason = errno;
  fail("write_file", "cannot ", what, ": got \"", std::strerror(reason), "\" for ", path,
       ", expected a writable place");
}

}  // namespace

void AtomicFile::failed(const char* what) const { cannot(what, path_); }

AtomicFile::AtomicFile(const std::string& path) : path_(target_of(path)) {
  RAMET_CHECK(!path.empty() && path.back() != '/', "write_file", "path: got \"", path,
              "\", expected the name of a file");
  static std::atomic<unsigned> number{0};
  struct stat before;
  const bool exists = ::stat(path_.c_str(), &before) == 0;
  if (exists && !S_ISREG(before.st_mode)) {
    errno = S_ISDIR(before.st_mode) ? EISDIR : EINVAL;
    failed("replace what is no plain file");
  }
  // O_EXCL: two processes take different names. So do a process and a file that a killed process
  // with the same id has left.
  for (int tries = 0; fd_ < 0; ++tries) {
    temporary_ = path_ + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(number++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && (errno != EEXIST || tries == 1000)) failed("make a file");
  }
  if (exists) (void)!::fchmod(fd_, before.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  RAMET_CHECK(fd_ >= 0, "write_file",
              "got a file that is committed, expected an open one: ", path_);
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = ::write(fd_, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed("write");
    at += n;
    bytes -= static_cast<size_t>(n);
  }
}

void AtomicFile::commit() {
  RAMET_CHECK(fd_ >= 0, "write_file",
              "got a file that is committed, expected an open one: ", path_);
  if (::fsync(fd_) != 0) failed("write to the disk");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) failed("rename");
  ::close(std::exchange(fd_, -1));
  sync_folder(folder_of(path_));  // otherwise a crash of the machine may lose the rename
}

void sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a folder that may be written but not read
  const int result = ::fsync(fd);
  const int reason = errno;
  ::close(fd);
  errno = reason;
  // File systems that cannot sync a folder return EINVAL.
  if (result != 0 && reason != EINVAL && reason != ENOTSUP)
    cannot("write the folder to the disk", folder);
}

void write_file_atomically(const std::string& path, const std::string& contents) {
  AtomicFile file(path);
  file.write(contents);
  file.commit();
}

}  // namespace ramet
