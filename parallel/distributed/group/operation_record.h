// What a process group did last: ProcessGroup::recent_operations() and report().
//
// Note [The record of operations]
// Each rank's group remembers its last 1024 operations, in memory of fixed size. A record says what
// the operation was, in the words of errors, and when it was called, began and ended. An operation
// costs a copy of 250 bytes and three readings of the clock, and no message.
//
// An error says which ranks were missing, and in which operation. It cannot say where a missing
// rank was instead: only that rank knows. report() combines what all ranks remember that call it
// after a failure, through the group's store. A program that wants this calls it on every rank:
//
//   } catch (const CommError& e) {
//     std::cerr << e.what() << '\n' << group->report();
//   }
//
// PyTorch's flight recorder instead writes a file for each rank on a timeout. A separate program
// compares the files afterwards.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "parallel/distributed/meet/store.h"

namespace ramet {
namespace distributed {

/// One operation of a group, as one rank recorded it. Times: seconds since the group was made
/// there.
struct OperationRecord {
  /// How far the operation is.
  enum class State : uint8_t {
    queued,   // called; earlier operations are not done
    running,  // waits for the other ranks, or moves data
    done,
    failed,  // its Work threw; queued ones fail without running when the group fails
  };
  /// The operation's number, from 1. Operations of all ranks have the same number on all ranks. A
  /// send or recv is counted among those with the same peer, direction and tag.
  uint64_t number = 0;
  /// Its text in errors: `all_reduce(operation 5, "bucket 3", float32[4, 2], sum, fixed)`.
  std::string text;
  /// The other rank of a send or recv; -1 for an operation of all ranks.
  int peer = -1;
  bool sends = false;  // send (true) or recv
  /// How far it is.
  State state = State::queued;
  /// The times at which it was called, began, and ended:
  double called = 0;
  std::optional<double> began, ended;
};
/// Returns "queued", "running", "done" or "failed".
RAMET_API const char* name_of(OperationRecord::State state);

/// How many operations a group remembers.
inline constexpr size_t kRecordedOperations = 1024;

}  // namespace distributed
}  // namespace ramet
