// Ranks with different numbers of steps: DistributedDataParallel::join.
#include <algorithm>
#include <thread>

#include "autograd/grad_mode.h"
#include "autograd/ops.h"
#include "parallel/distributed/ddp/buffer_sync_internal.h"
#include "parallel/distributed/ddp/companion_internal.h"
#include "parallel/distributed/ddp/gradient_reducer_internal.h"
#include "parallel/distributed/meet/socket_internal.h"
#include "parallel/distributed/model/model_table_internal.h"
#include "runtime/base/logging.h"

namespace ramet::distributed::detail {

void GradientReducer::begin_join(bool divide_by_active, bool throw_on_early_termination) {
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!joining_, "join", "inside another join of this module");
  // This rank must answer the others' forwards, and take over their values at the end.
  const auto together =
      std::ranges::count_if(units_, [](const Unit& u) { return !u.removed && !u.owner.expired(); });
  RAMET_CHECK(together <= 1, "join", "the module's gradients are reduced together with those of ",
              together - 1, " more, which were given to replicate(): expected one module");
  RAMET_CHECK(!stages_.routes(), "join",
              "got a communication stage that chooses the ranks, expected all of the group");
  joining_ = true;
  by_active_ = divide_by_active;
  throw_early_ = throw_on_early_termination;
  steps_ = 0;
}

void GradientReducer::end_join() {
  const std::lock_guard lock(mutex_);
  joining_ = by_active_ = throw_early_ = false;
  // Ranks that finished earlier do not have the gradients that the last steps left in the others'
  // leaves.
  for (const auto& leaf : leaves_)
    if (leaf) leaf->sink->mark = anything;
}

int64_t GradientReducer::synchronised_steps() const {
  const std::lock_guard lock(mutex_);
  return steps_;
}

// Reduces the buckets of a backward that has reached nothing. The results are discarded.
int GradientReducer::shadow_step() {
  const NoGradGuard off;
  const std::lock_guard lock(mutex_);
  RAMET_CHECK(!task_, "join", "a backward runs");
  begin_buckets(/*with_sync=*/true);
  const ScopedValue<bool> shadow(shadow_, true);
  int active = -1;
  try {
    for (size_t i = 0; i < buckets_.size() && active != 0; ++i) {
      Bucket& b = buckets_[i];
      for (Member& m : b.members) {
        const Leaf& leaf = *leaves_[m.leaf];
        m.sent = empty_like(leaf.tensor.detach(), wire_dtype(leaf));
      }
      launch_bucket(b, i, /*fresh=*/true);
      if (!b.launched || active >= 0) continue;
      // The first bucket shows whether there is a step at all.
      b.work.wait();
      active = 0;
      for (double note : b.report->notes) active += note >= 0;
    }
    for (Bucket& b : buckets_)
      if (b.launched) b.work.wait();
  } catch (...) {
    buckets_.clear();
    abort("a step of others failed on this rank, which has no inputs any more");
    explain(std::current_exception());
  }
  buckets_.clear();
  if (active > 0) stages_.step_done(/*failed=*/false);
  if (active > 0 && !throw_early_) agree_on_order();
  return std::max(active, 0);
}

namespace {

// Answers the others' forwards while this rank's thread takes part in their backwards.
class Answers {
 public:
  Answers(GradientReducer& reducer, Companion* companion) {
    if (!companion) return;
    thread_ = std::thread([this, companion, &reducer] {
      try {
        companion->answer_until_all_are_here();
      } catch (const std::exception& e) {
        error_ = std::current_exception();
        reducer.abort(e.what());  // the other thread may wait there
      } catch (...) {
        error_ = std::current_exception();
        reducer.abort("the answers to others' forwards threw what is no std::exception");
      }
    });
  }
  // If an exception leaves the join, either the group has been aborted or all ranks come here.
  ~Answers() {
    if (thread_.joinable()) thread_.join();
  }
  void wait() {
    if (thread_.joinable()) thread_.join();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
  std::thread thread_;
};

// The rank with the most steps; of several, the highest.
int last_to_join(ProcessGroup& group, int64_t steps, const std::string& name) {
  const auto all = group.exchange(Packer().number(static_cast<uint64_t>(steps)).bytes(), name);
  int root = 0;
  uint64_t most = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    const uint64_t n = Unpacker(all[r]).number();
    if (n < most) continue;
    most = n;
    root = static_cast<int>(r);
  }
  return root;
}

constexpr int64_t kManySteps = 1000;

}  // namespace

void DdpCore::join(const std::function<void()>& loop, const JoinOptions& options) {
  RAMET_CHECK(loop, "join", "got an empty function");
  if (group_->size() == 1) return loop();
  reducer_->begin_join(!options.divide_by_initial_world_size, options.throw_on_early_termination);
  struct End {
    GradientReducer& reducer;
    ~End() { reducer.end_join(); }
  } end{*reducer_};
  const std::string rank = std::to_string(group_->rank());
  try {
    loop();
  } catch (const EarlyTermination&) {
    if (companion_) companion_->answer_until_all_are_here();
    throw;
  } catch (const std::exception& e) {
    reducer_->abort("the loop of a join failed on this rank: " + std::string(e.what()));
    throw;
  } catch (...) {
    reducer_->abort("the loop of a join failed on this rank");
    throw;
  }
  const int64_t mine = reducer_->synchronised_steps();
  {
    Answers answers(*reducer_, companion_.get());
    for (int64_t steps = 1; reducer_->shadow_step() > 0; ++steps) {
      if (options.throw_on_early_termination) fail("join", "Rank ", rank, " exhausted all inputs.");
      if (steps == kManySteps)
        log(LogLevel::Warning, "[join] rank ", rank, " has taken part in ", steps,
            " steps of other ranks without inputs of its own");
    }
    answers.wait();
  }
  const int root = last_to_join(*group_, mine, options_.name + "/join");
  copy_model(*group_, *module(), *exceptions_, root, options_.name);
  buffers_->mark_equal();
}

}  // namespace ramet::distributed::detail
