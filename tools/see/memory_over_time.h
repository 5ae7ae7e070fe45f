// Bytes of live storages over time, and their owners at the peak.
#pragma once
#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/memory/memory_observer.h"
#include "runtime/memory/storage_impl.h"
#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Storages are numbered; a number is never used again, while addresses are. Not thread safe.
class MemoryOverTime {
 public:
  /// What devices hold now is what the curves begin with.
  MemoryOverTime();

  void on_made(const MemoryEvent& event, uint64_t time, const std::string& scope);
  void on_gone(const MemoryEvent& event, uint64_t time);
  /// The number of the memory that `memory` shows.
  Id storage_of(StorageImpl* memory);

  /// The number of memory that was allocated during the recording and begins there; -1: none.
  Id made_at(const void* data) const;

  /// One row a device that had any; `device_of`: rows of devices by ordinal. The blocks have a
  /// number and an owner "other" yet.
  std::vector<MemoryRow> rows(const std::map<int, Id>& device_of) const;

 private:
  struct Block {
    Id storage;
    int64_t bytes;
    int device;
    uint64_t made, gone;  // gone: the largest number while it is there
    std::string scope;
    bool before;  // it was there when the recording began
  };
  struct Known {
    Id storage;
    uint64_t serial;  // StorageImpl::serial(), of small memory without an event at its end
  };
  struct Device {
    int64_t current = 0;
    std::vector<std::array<int64_t, 2>> curve;
    int64_t at_begin = 0;
  };
  Id next_ = 0;
  std::map<int, Device> devices_;
  std::vector<Block> blocks_;
  std::unordered_map<const void*, size_t> live_;  // blocks
  std::unordered_map<const void*, Known> storages_;
};

}  // namespace see
}  // namespace ramet
