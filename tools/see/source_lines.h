// Finds the program's lines from return addresses.
//
// Note [Source lines]
// A recording only takes return addresses (some microseconds). They become lines later, by the
// debugging information of this process. libdw says which functions and inlined functions an
// address is in, and where each was called. The result is the innermost line that is not Ramet's
// own.
//
// The file of a function decides. It is Ramet's if its file is in an installed include folder of
// the library. It is also Ramet's in the folders of the library that was compiled together with
// this file. Of an installed library only headers have lines, because a program may have its own
// folder nn. A function is the standard library's if its file is a system header. Without debugging
// information the function's name decides: `ramet::` and `std::` are skipped, and others are given
// without a line. So a program's own classes in namespace ramet need -g to be seen.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Return addresses of the calling thread's functions, innermost first, each less 1, so that it
/// lies inside the call.
std::vector<uintptr_t> return_addresses();

/// Reads debugging information; not for signal handlers.
class SourceLines {
 public:
  SourceLines();
  ~SourceLines();
  SourceLines(const SourceLines&) = delete;
  SourceLines& operator=(const SourceLines&) = delete;
  /// The innermost place in the program. `file` is empty where only the function is known;
  /// everything is empty where nothing is.
  SourceRow program_line(const std::vector<uintptr_t>& addresses);

 private:
  struct Frame {
    std::string function, file;
    int line = 0;
  };
  const std::vector<Frame>& frames_at(uintptr_t address);  // inlined ones first
  struct Dwarf;
  Dwarf* const dwarf_;
  std::map<uintptr_t, std::vector<Frame>> known_;
};

namespace detail {
/// Does a file, as debugging information names it, belong to Ramet (or to the system)?
bool is_library_file(const std::string& file);
/// Does a function, by its full name?
bool is_library_function(const std::string& function);
}  // namespace detail

}  // namespace see
}  // namespace ramet
