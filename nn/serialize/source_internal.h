// Where readers of files take their bytes from.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace ramet {
namespace serialize {
namespace detail {

/// A source of bytes of a known size, with access to any of them at any time.
class Source {
 public:
  virtual ~Source();
  virtual uint64_t size() const = 0;
  /// REQUIRES: at + bytes <= size(). A reader first compares sizes that the file gives with size().
  virtual void read(uint64_t at, void* to, uint64_t bytes) = 0;
};

class MemorySource final : public Source {
 public:
  MemorySource(const char* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  uint64_t size() const override { return bytes_; }
  void read(uint64_t at, void* to, uint64_t bytes) override;

 private:
  const char* data_;
  uint64_t bytes_;
};

/// A plain file. Errors are `op`'s and name the path. Another kind of file is refused as not the
/// expected `what`.
class FileSource final : public Source {
 public:
  FileSource(const char* op, const std::string& path, const char* what);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  uint64_t size() const override { return bytes_; }
  void read(uint64_t at, void* to, uint64_t bytes) override;
  int descriptor() const { return fd_; }

 private:
  const char* op_;
  std::string path_;
  int fd_;
  uint64_t bytes_ = 0;
};

/// Maps a whole file into memory; the first access to a page reads it. Writes to it stay in this
/// process. The mapping lives as long as a copy of the pointer; null for an empty file.
std::shared_ptr<char> map_file(const char* op, const std::string& path, const FileSource& file);

}  // namespace detail
}  // namespace serialize
}  // namespace ramet
