// Files that are whole or absent.
#pragma once
#include <cstddef>
#include <string>

#include "runtime/base/error.h"

namespace ramet {

/// A file that is written under a temporary name in its own folder. commit() moves it to its name.
/// If the program is killed at any moment, the name has either the old contents or the new,
/// complete and on disk. A temporary `NAME.tmp.*` may remain. Errors name path and reason. Belongs
/// to one thread.
class RAMET_API AtomicFile {
 public:
  /// Throws where the temporary file cannot be made.
  explicit AtomicFile(const std::string& path);
  /// Without commit(): removes the temporary file, the old contents stay.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  /// Syncs the file, renames it, syncs the folder.
  void commit();
  /// For writers that take a descriptor.
  int descriptor() const { return fd_; }

 private:
  [[noreturn]] void failed(const char* what) const;
  std::string path_, temporary_;
  int fd_ = -1;
};

/// Waits until the names of a folder's files are on disk, after one was removed or moved there.
/// Does nothing where the file system cannot, or the folder may not be read.
RAMET_API void sync_folder(const std::string& folder);

/// The whole of a file at once.
RAMET_API void write_file_atomically(const std::string& path, const std::string& contents);

}  // namespace ramet
