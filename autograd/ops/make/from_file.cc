// Tensors over files that are mapped into memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "autograd/ops/make/factory.h"
#include "runtime/base/checked_size.h"

namespace ramet {

namespace {

constexpr const char* kOp = "from_file";

// A file that the destructor restores to its former length, or absence, unless keep() was called.
struct File {
  const std::string& path;
  int fd = -1;
  bool is_new = false;
  int64_t longer_than = -1;  // 0 or more: it was made longer than that

  void open(int flags) {
    fd = ::open(path.c_str(), flags, 0600);
    if (fd >= 0 || errno != ENOENT || (flags & O_ACCMODE) == O_RDONLY) return;
    fd = ::open(path.c_str(), flags | O_CREAT | O_EXCL, 0600);
    is_new = fd >= 0;
    if (!is_new) fd = ::open(path.c_str(), flags | O_CREAT, 0600);  // a link, or it is new now
  }
  void keep() { is_new = false, longer_than = -1; }
  ~File() {
    if (longer_than >= 0 && ::ftruncate(fd, longer_than) != 0) {}  // nothing can be done
    if (is_new) ::unlink(path.c_str());
    if (fd >= 0) ::close(fd);
  }
};

// The first bytes of a file, as memory that is unmapped with its last owner.
std::shared_ptr<void> mapped(const std::string& path, bool shared, int64_t bytes) {
  // Opens without waiting for a process that writes into a pipe: a pipe is refused.
  File file{path};
  file.open((shared ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
  RAMET_CHECK(file.fd >= 0, kOp, "cannot open \"", path, "\" (", std::strerror(errno), ")");
  struct stat info {};
  RAMET_CHECK(::fstat(file.fd, &info) == 0 && S_ISREG(info.st_mode), kOp, "\"", path,
              "\": got no regular file");
  const auto there = static_cast<int64_t>(info.st_size);
  RAMET_CHECK(shared || there >= bytes, kOp, "\"", path, "\": got ", there,
              " bytes, expected at least ", bytes);
  RAMET_CHECK(there >= bytes || ::ftruncate(file.fd, bytes) == 0, kOp, "cannot make \"", path,
              "\" ", bytes, " bytes long (", std::strerror(errno), ")");
  if (there < bytes) file.longer_than = there;
  const auto length = static_cast<size_t>(bytes);
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE,
                        file.fd, 0);
  RAMET_CHECK(memory != MAP_FAILED, kOp, "cannot map ", bytes, " bytes of \"", path, "\" (",
              std::strerror(errno), ")");
  file.keep();
  return {memory, [length](void* p) { ::munmap(p, length); }};
}

}  // namespace

Tensor from_file(std::string_view filename, std::optional<bool> shared, std::optional<int64_t> size,
                 const TensorOptions& options) {
  const int64_t n = size.value_or(0);
  RAMET_CHECK(n >= 0, kOp, "size: got ", n, ", expected 0 or more");
  const auto bytes = checked_mul(kOp, "bytes", n, static_cast<int64_t>(item_size(options.dtype())));
  // Where addresses have 64 bits, the system refuses what is too much.
  if constexpr (sizeof(size_t) < sizeof(int64_t))
    RAMET_CHECK(bytes < kMaxStorageBytes, kOp, "size: got ", bytes, " bytes, expected less than 2^",
                kMaxStorageBits);
  RAMET_CHECK(options.device().is_cpu(), kOp, "device: got ", options.device(), ", expected a CPU");
  RAMET_CHECK(!options.pinned_memory(), kOp, "tensors constructed from a file cannot be pinned");
  Tensor none = empty({0}, options);  // empty() checks the options
  if (n == 0) return none;
  const auto memory = mapped(std::string(filename), shared.value_or(false), bytes);
  return from_blob(
      memory.get(), {n}, [memory](void*) {}, options);
}

}  // namespace ramet
