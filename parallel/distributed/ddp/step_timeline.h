// Where the time of a data-parallel backward goes: what each bucket waited for, and who for it.
//
//   loss.backward();
//   const StepTimeline t = ddp.last_step();
//   if (t.exposed() > 0.1 * t.end) std::cout << t.table();
//
// Note [Step timeline]
// A bucket is complete when this rank's last gradient of it has come, and launched when all before
// it have been. So there are two ways to lose time beside the network's: one late parameter (of a
// layer that is used early in the forward, say) holds its bucket (`stalling_parameter`), and a
// bucket that is late holds those behind it (held_back_by). (And a user's Function that has still
// to run and may lead to it by a backward of its own, of which nothing here tells.) What was
// reduced while the backward still ran costs nothing; the rest is `waited`.
//
// A gradient has come when all replicas of the rank have computed theirs. Their sums are formed
// several parameters at a time (DdpOptions::bucket_bytes), so a bucket that is complete may be
// launched a little later.
//
// Times are those of this rank's host, by the clock that never goes back: a GPU may still have to
// compute what has come or was launched. Every synchronised backward has a timeline, for one
// reading of the clock a gradient, four and one string a bucket. PyTorch's DDP logging data has
// sums of it: backward_compute_time is `backward`, backward_comm_time is from the first `launched`
// to the last `done`, and backward_compute_comm_overlap_time what these two have in common.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/error.h"

namespace ramet {
namespace distributed {

/// One bucket in a backward. Times: seconds since the backward began; first <= complete <= launched
/// <= done.
struct BucketTimeline {
  /// Parameters that took part: those frozen, and those of modules with synchronisation off, do
  /// not. 0: nothing was reduced, and the rest is 0 too.
  int64_t parameters = 0;
  /// Of these, whose gradient this rank's backward had to make; that of the others comes from other
  /// ranks, from backwards without synchronisation before, or not at all.
  int64_t gradients = 0;
  /// Of the gradients of all `parameters`, as this rank keeps them. What is sent is less where no
  /// rank used a parameter or stages compress (CommStages::bytes), and depends on the number of
  /// ranks (ProcessGroup::wire_bytes).
  int64_t bytes = 0;
  /// When the first and the last of `gradients` had come; both 0 without any: such a bucket waits
  /// for none, but for the buckets before it.
  double first = 0, complete = 0;
  /// When its reduction was handed to the group, and when it had ended.
  double launched = 0, done = 0;
  /// How long the end of the backward stood still for it: exposed communication, in seconds.
  double waited = 0;
  /// Name, as in plan(), of the parameter whose gradient came last. Empty where `gradients` is 0.
  std::string stalling_parameter;
};

/// A synchronised backward of this rank: Note [Step timeline].
struct RAMET_API StepTimeline {
  /// CommStages::step() after it: 1 is the first one. 0: there was none yet.
  int64_t step = 0;
  /// Seconds from where the engine met the first of the parameters until this rank had computed all
  /// gradients, and until all were reduced.
  double backward = 0, end = 0;
  /// In the order in which they are reduced, that of plan() at the time. (The plan changes after
  /// the first step, and where parameters are frozen or thawed.)
  std::vector<BucketTimeline> buckets;

  /// The sum of `waited`, in seconds.
  double exposed() const;
  /// Of the buckets before this one, that which was complete last, where that was later than this
  /// one was: without it this bucket would have been launched sooner. An Error for a bucket that is
  /// not there.
  std::optional<size_t> held_back_by(size_t bucket) const;
  /// For people: a line for the step and one a bucket, times in milliseconds.
  std::string table() const;
};

}  // namespace distributed
}  // namespace ramet
