// Where the time of a data-parallel backward goes: what each bucket waited for.
//
//   loss.backward();
//   const StepTimeline t = ddp.last_step();
//   if (t.exposed() > 0.1 * t.end) std::cout << t.table();
//
// Note [Step timeline]
// A bucket is complete when this rank's last gradient of it has come. It is launched when it is
// complete and all buckets before it have been launched. So time is lost in two ways, in addition
// to the network's time. One late parameter (for example of a layer that is used early in the
// forward) holds back its bucket (`stalling_parameter`). A late bucket holds back the buckets after
// it (held_back_by). The timeline has no record of a third way: a user's Function that has not run
// yet may lead to the bucket. A reduction that ends while the backward still runs costs nothing;
// the rest is `waited`.
//
// A gradient has come when all replicas of the rank have computed theirs. Their sums are formed for
// several parameters at a time (DdpOptions::bucket_bytes), so a complete bucket may be launched a
// little later.
//
// Times are those of this rank's host, by a monotonic clock. A GPU may still have to compute what
// has come or was launched. Every synchronised backward has a timeline. It costs one reading of the
// clock for each gradient, and four readings and one string for each bucket. PyTorch's DDP logging
// data has sums of these times. backward_compute_time is `backward`. backward_comm_time is the time
// from the first `launched` to the last `done`. backward_compute_comm_overlap_time is the time that
// these two share.
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
  /// The number of parameters that took part. Frozen parameters do not, nor those of modules with
  /// synchronisation off. 0: nothing was reduced, and all other values are 0 too.
  int64_t parameters = 0;
  /// The number of these with a gradient that this rank's backward had to compute. The gradients of
  /// the others come from other ranks, from earlier backwards without synchronisation, or not at
  /// all.
  int64_t gradients = 0;
  /// Bytes of the gradients of all `parameters`, in this rank's dtypes. Fewer bytes are sent where
  /// no rank used a parameter or communication hooks compress (CommStages::bytes). The bytes sent
  /// also depend on the number of ranks (ProcessGroup::wire_bytes).
  int64_t bytes = 0;
  /// When the first and the last of `gradients` had come. Both are 0 without any gradients: such a
  /// bucket waits only for the buckets before it.
  double first = 0, complete = 0;
  /// When its reduction was handed to the group, and when the reduction had ended.
  double launched = 0, done = 0;
  /// How long the end of the backward waited for it: exposed communication, in seconds.
  double waited = 0;
  /// The name, as in plan(), of the parameter with the last gradient. Empty if `gradients` is 0.
  std::string stalling_parameter;
};

/// A synchronised backward of this rank: Note [Step timeline].
struct RAMET_API StepTimeline {
  /// CommStages::step() after it: 1 for the first one. 0: there was none yet.
  int64_t step = 0;
  /// Seconds from when the engine met the first of the parameters. `backward`: until this rank had
  /// computed all gradients. `end`: until all were reduced.
  double backward = 0, end = 0;
  /// In the order in which they are reduced, that of plan() at the time. (The plan changes after
  /// the first step, and where parameters are frozen or thawed.)
  std::vector<BucketTimeline> buckets;

  /// The sum of `waited`, in seconds.
  double exposed() const;
  /// Of the buckets before this one, the one that was complete last, if that was after this bucket
  /// was complete. Without it this bucket would have been launched sooner. An Error if there is no
  /// such bucket number.
  std::optional<size_t> held_back_by(size_t bucket) const;
  /// A table for people: one line for the step and one for each bucket, times in milliseconds.
  std::string table() const;
};

}  // namespace distributed
}  // namespace ramet
