#include "parallel/distributed/ddp/step_timeline.h"

#include <algorithm>

#include "autograd/graph/graph_observer.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"

namespace ramet::distributed {

double StepTimeline::exposed() const {
  double sum = 0;
  for (const BucketTimeline& b : buckets) sum += b.waited;
  return sum;
}

std::optional<size_t> StepTimeline::held_back_by(size_t bucket) const {
  RAMET_CHECK(bucket < buckets.size(), "held_back_by", "bucket: got ", bucket,
              ", expected one of the step's ", buckets.size());
  size_t latest = bucket;
  if (buckets[bucket].parameters > 0)
    for (size_t i = 0; i < bucket; ++i)
      if (buckets[i].complete > buckets[latest].complete) latest = i;
  return latest == bucket ? std::nullopt : std::optional(latest);
}

std::string StepTimeline::table() const {
  using ramet::detail::formatted;
  if (step == 0) return "no synchronised backward yet\n";
  std::string out =
      formatted("step %lld: gradients computed %.3f ms, reduced %.3f ms, waited %.3f ms\n",
                static_cast<long long>(step), 1e3 * backward, 1e3 * end, 1e3 * exposed());
  out += formatted("%6s %12s %10s %10s %10s %10s %10s %10s  %s\n", "bucket", "bytes", "gradients",
                   "first", "complete", "launched", "done", "waited", "stalled by");
  for (size_t i = 0; i < buckets.size(); ++i) {
    const BucketTimeline& b = buckets[i];
    const std::string gradients =
        std::to_string(b.gradients) + " of " + std::to_string(b.parameters);
    out += formatted("%6zu %12lld %10s %10.3f %10.3f %10.3f %10.3f %10.3f  ", i,
                     static_cast<long long>(b.bytes), gradients.c_str(), 1e3 * b.first,
                     1e3 * b.complete, 1e3 * b.launched, 1e3 * b.done, 1e3 * b.waited);
    // The name comes last: it may be long.
    out += b.parameters == 0  ? "nothing: it takes no part"
           : b.gradients == 0 ? "nothing: no gradient of this rank"
                              : b.stalling_parameter;
    if (const auto other = held_back_by(i)) out += ", held back by " + std::to_string(*other);
    out += '\n';
  }
  return out;
}

}  // namespace ramet::distributed

namespace ramet::distributed::detail {

double GradientReducer::seconds_at(Clock::time_point t) const {
  return std::chrono::duration<double>(t - began_).count();
}

// The engine calls this, so it takes no lock: other threads hold the lock when they call the
// engine. A gradient that replicas computed counts as ready when the last replica is done: sums of
// several parameters are formed together. Contributions that reach the parameter without a replica
// may come later.
void GradientReducer::on_last_contribution(size_t leaf, size_t parts) {
  auto& at = leaves_[leaf]->ready_at;
  if (parts > 1 || at == 0) at = Clock::now().time_since_epoch().count();
}

// A member counts once. An inner backward that adds to it may make its time later.
void GradientReducer::record_gradient_time(Bucket& b, Member& m) {
  BucketTimeline& t = b.times;
  const bool again = std::exchange(m.timed, true);
  const Clock::time_point ready{Clock::duration(leaves_[m.leaf]->ready_at)};
  const double when = seconds_at(again ? Clock::now() : ready);
  if (!again) t.first = t.gradients++ == 0 ? when : std::min(t.first, when);
  if (when < t.complete) return;
  t.complete = when;
  b.stalling = m.leaf;
}

void GradientReducer::wait_for(Bucket& b) const {
  const Clock::time_point from = Clock::now();
  b.work.wait();
  const Clock::time_point done = b.work.ended_at();
  b.times.done = seconds_at(done);
  if (autograd::graph_observed()) {
    const auto when = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(done.time_since_epoch()).count());
    autograd::detail::tell_observers(
        [&](autograd::GraphObserver& o) { o.on_reduce_ended(known_as(b), when); });
  }
  // Thread switches are included. Nothing is added if the reduction had ended before.
  if (done > from) b.times.waited = seconds_at(Clock::now()) - seconds_at(from);
}

StepTimeline GradientReducer::last_step() const {
  const std::lock_guard lock(mutex_);
  return last_step_;
}

}  // namespace ramet::distributed::detail
