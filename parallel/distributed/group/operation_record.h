// What a process group did last: ProcessGroup::recent_operations() and report().
//
// Note [The record of operations]
// Each rank's group remembers its last 1024 operations, in memory that does not grow from then on:
// what each was, as errors name it, and when it was called, began and ended. That costs a copy of
// 250 bytes and three readings of the clock an operation, and no message.
//
// An error names who was missing, and in which operation. What it cannot say is where the missing
// rank was instead, since only that rank knows. report() puts together what all ranks that call it
// after a failure remember, over the group's store. So who wants to know writes, on every rank:
//
//   } catch (const CommError& e) {
//     std::cerr << e.what() << '\n' << group->report();
//   }
//
// PyTorch's flight recorder writes a file for each rank on a timeout, which a program of its own
// compares afterwards.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

/// One operation of a group, as one rank saw it. Times: seconds since the group was made there.
struct OperationRecord {
  /// How far it is.
  enum class State : uint8_t {
    queued,   // called; others are before it
    running,  // waits for the other ranks, or moves data
    done,
    failed,  // its Work threw; queued ones fail without having run when the group does
  };
  /// Of the group's operations of all ranks, from 1: the same on all ranks. Of a send or recv: of
  /// those to or from that rank with that tag.
  uint64_t number = 0;
  /// As errors name it: `all_reduce(operation 5, "bucket 3", float32[4, 2], sum, fixed)`.
  std::string text;
  /// The other rank of a send or recv; -1 of an operation of all ranks.
  int peer = -1;
  bool sends = false;  // of these two
  /// How far it is.
  State state = State::queued;
  /// When it was called, when it began, and when it ended:
  double called = 0;
  std::optional<double> began, ended;
};
/// "queued", "running", "done", "failed".
RAMET_API const char* name_of(OperationRecord::State state);

/// How many a group remembers.
inline constexpr size_t kRecordedOperations = 1024;

}  // namespace distributed
}  // namespace ramet
