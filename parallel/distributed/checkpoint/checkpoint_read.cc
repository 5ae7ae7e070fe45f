#include "parallel/distributed/checkpoint/checkpoint_read_internal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "autograd/ops/make/factory.h"

namespace ramet::distributed::detail {
namespace {

class OpenFile {
 public:
  OpenFile(const std::string& folder, const std::string& name)
      : name_(name),
        fd_(::open((std::filesystem::path(folder) / name).c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw Damaged(name_ + " cannot be opened (" + std::strerror(errno) + ")");
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  uint64_t size() const {
    struct stat info;
    if (::fstat(fd_, &info) != 0) throw Damaged(name_ + " cannot be read");
    return static_cast<uint64_t>(info.st_size);
  }
  void read(uint64_t at, char* to, size_t bytes) const {
    while (bytes > 0) {
      const ssize_t n = ::pread(fd_, to, bytes, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        throw Damaged(name_ + " cannot be read (" + (n < 0 ? std::strerror(errno) : "it ended") +
                      ")");
      to += n, at += static_cast<uint64_t>(n), bytes -= static_cast<size_t>(n);
    }
  }

 private:
  std::string name_;
  int fd_;
};

}  // namespace

StoredStep::StoredStep(const std::string& folder, const CheckpointName& name)
    : folder_(folder),
      manifest_(read_manifest((std::filesystem::path(folder) / name.manifest()).string())) {
  if (manifest_.step != name.step)
    throw Damaged(name.manifest() + " is of step " + std::to_string(manifest_.step));
  for (const DataFile& f : manifest_.files) read_header(f);
}

void StoredStep::read_header(const DataFile& f) {
  const OpenFile file(folder_, f.name);
  const uint64_t size = file.size();
  if (size != f.bytes)
    throw Damaged(f.name + " is damaged: got " + std::to_string(size) + " bytes, expected " +
                  std::to_string(f.bytes));
  const auto head_is_damaged = [&] { return Damaged(f.name + " is damaged: in its header"); };
  char length[8];
  if (size < 8) throw head_is_damaged();
  file.read(0, length, 8);
  uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | static_cast<unsigned char>(length[i]);
  if (n > size - 8) throw head_is_damaged();
  std::string text(8 + n, ' ');
  file.read(0, text.data(), text.size());
  if (digest_of(text) != f.header) throw head_is_damaged();
  // From here on the text is what write_data wrote.
  const Json header = json_of(text.substr(8));
  const Json parts = json_of(header.at("__metadata__").at(kParts).get<std::string>());
  for (const auto& [name, part] : parts.items()) {
    const Json& entry = header.at(name);
    const uint64_t begin = entry.at("data_offsets")[0].get<uint64_t>(),
                   end = entry.at("data_offsets")[1].get<uint64_t>();
    Stored& stored = tensors_[name];
    stored.dtype = dtype_named(part.at("dtype").get<std::string>());
    stored.sizes = part.at("sizes").get<std::vector<int64_t>>();
    stored.pieces.push_back(
        {f.name, 8 + n + begin, runs_of(name, stored.sizes, cuts_of(part.at("cuts"))),
         static_cast<int64_t>(end - begin), part.at("xxh64").get<std::string>()});
  }
}

Tensor StoredStep::read(const std::string& name, const std::vector<Cut>& cuts,
                        const std::vector<int64_t>& shape) const {
  const Stored& stored = tensors_.at(name);
  const Tensor result = empty(shape, TensorOptions(stored.dtype).device(Device(kCPU, 0)));
  char* to = static_cast<char*>(result.data_ptr());
  const int64_t item = static_cast<int64_t>(item_size(stored.dtype));
  std::vector<PartRun> missing = runs_of(name, stored.sizes, cuts);
  std::vector<char> block;
  for (const Piece& piece : stored.pieces) {
    if (missing.empty()) break;
    const std::vector<CopyRun> copies = intersect(piece.runs, missing);
    if (copies.empty()) continue;
    missing = subtract(missing, piece.runs);
    const OpenFile file(folder_, piece.file);
    int64_t at = -1, bytes = 0;  // the range of the piece that `block` holds
    for (const CopyRun& c : copies) {
      for (int64_t done = 0; done < c.length * item;) {
        const int64_t from = c.from * item + done;
        if (at < 0 || from >= at + bytes) {
          at = from / kBlock * kBlock, bytes = std::min(kBlock, piece.bytes - at);
          block.resize(static_cast<size_t>(bytes));
          file.read(piece.offset + static_cast<uint64_t>(at), block.data(), block.size());
          if (digest_of(block.data(), block.size()) !=
              piece.digests.substr(static_cast<size_t>(at / kBlock) * 16, 16))
            throw Damaged(piece.file + " is damaged: in \"" + name + "\"");
        }
        const int64_t n = std::min(c.length * item - done, at + bytes - from);
        std::memcpy(to + c.to * item + done, block.data() + (from - at), static_cast<size_t>(n));
        done += n;
      }
    }
  }
  if (!missing.empty())
    throw Damaged("no file has element " + std::to_string(missing[0].whole) + " of \"" + name +
                  "\"");
  return result;
}

}  // namespace ramet::distributed::detail
