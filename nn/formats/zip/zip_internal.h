// Zip archives by libzip: read from a file or memory with every size checked first, written whole
// or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct zip;
struct zip_file;

namespace ramet {
namespace serialize {
namespace detail {
class Source;
}
}  // namespace serialize
namespace formats {
namespace detail {

/// An archive's directory and, by name, what is in it. Errors are `op`'s and name file and entry.
class ZipReader {
 public:
  struct Entry {
    std::string name;
    uint64_t bytes = 0;  // uncompressed; no more than its compressed bytes can become
  };

  ZipReader(const char* op, const std::string& path);
  /// From memory, which has to stay; `name` stands for the file in errors.
  ZipReader(const char* op, const std::string& name, const char* data, size_t bytes);
  /// From a source, which has to stay. Only what is asked for is read.
  ZipReader(const char* op, const std::string& name, serialize::detail::Source& source);
  ~ZipReader();
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  /// In the archive's order; names are unique, folders are left out.
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& name) const;

  /// From an entry's first byte to its last. The checksum is compared when all has been read.
  class Stream {
   public:
    Stream(ZipReader& zip, const Entry& entry);
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;
    uint64_t left() const { return left_; }
    /// REQUIRES: bytes <= left().
    void read(void* to, uint64_t bytes);

   private:
    ZipReader& zip_;
    const Entry& entry_;
    zip_file* file_;
    uint64_t left_;
  };
  /// The whole of an entry, into memory of its size.
  void read(const Entry& entry, void* to);
  std::string text(const Entry& entry);

  /// Of the whole archive.
  uint64_t bytes() const { return bytes_; }
  const char* op() const { return op_; }
  const std::string& file() const { return file_; }

 private:
  void list(uint64_t file_bytes);
  const char* op_;
  std::string file_;
  zip* zip_ = nullptr;
  struct Reading;
  std::unique_ptr<Reading> reading_;  // of a source
  uint64_t bytes_ = 0;
  std::vector<Entry> entries_;
  std::vector<uint64_t> places_;  // libzip's numbers of them
  std::map<std::string, size_t> by_name_;
};

/// Is a text valid UTF-8, as names of entries and texts of pickles have to be?
bool is_utf8(const std::string& text);
/// Can an entry be written under this name? It is valid UTF-8 of 1 to 65,535 bytes, and has no
/// control characters but tabs and line ends.
bool is_entry_name(const std::string& name);

/// An entry in pieces of memory, which have to stay until write_zip() returns.
struct ZipPart {
  std::string name;
  std::vector<std::pair<const void*, size_t>> pieces;
};

/// All entries stored, or deflated, in their order; the same bytes for the same parts. Sizes above
/// 4 GiB and many entries are written as zip64. Whole or not at all. Errors are `op`'s.
void write_zip(const char* op, const std::string& path, const std::vector<ZipPart>& parts,
               bool deflate);
/// Into memory.
std::vector<char> zip_bytes(const char* op, const std::vector<ZipPart>& parts, bool deflate);

}  // namespace detail
}  // namespace formats
}  // namespace ramet
