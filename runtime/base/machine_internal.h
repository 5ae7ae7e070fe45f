// The processors and the memory of its machine that this process may use.
//
// A container sees all processors and all memory of its machine. Its control groups define how much
// of both it may use. Without these limits a process would start 64 threads, which share one and a
// half processors. Or it would be killed for memory that it did not need.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/base/error.h"

namespace ramet {
namespace detail {

/// The limits by the control groups of a process. For nested groups the smallest limit counts.
/// Versions 1 and 2 are read, and both in one system.
struct GroupLimits {
  double processors = 0;  ///< processor seconds in a second; 0: no limit
  int64_t memory = 0;     ///< bytes; 0: no limit
  /// The file that counts the memory of the group with the smallest limit.
  std::string usage_file;
  /// the word before its number of bytes without file caches
  std::string usage_word;
};

/// Of this process. `root` is put before every path that is read, so tests can make such files. A
/// value that is missing or no number sets no limit.
GroupLimits group_limits(const std::string& root = "");
/// Bytes in use in the group with the smallest limit, without caches of files. 0 where there is no
/// limit or no such file.
int64_t group_memory_in_use(const GroupLimits& limits);
/// The number of threads with a processor each: 1.5 processors are 2 threads. At least 1, and at
/// most `processors`, the number to run on.
int usable_threads(const GroupLimits& limits, int processors);

/// The limits at the first call, for the life of the process.
const GroupLimits& my_group_limits();
/// usable_threads() of my_group_limits() and of the processors that the process may run on.
RAMET_API int usable_threads();
/// Bytes: the machine's memory, or the limit of the process's groups where that is less.
int64_t usable_memory();

}  // namespace detail
}  // namespace ramet
