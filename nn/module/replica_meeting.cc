#include "nn/module/replica_meeting.h"

#include <utility>

namespace ramet::nn {
namespace {
thread_local ReplicaMeeting* t_meeting = nullptr;
thread_local int t_replica = -1;
}  // namespace

ReplicaAbsent::~ReplicaAbsent() = default;

ReplicaMeeting* ReplicaMeeting::current() { return t_meeting; }

// A forward that a backward computes again meets the other processes as the first forward did.
// Other replicas of this process need not come at that time, and may share its thread.
class ReplicaMeeting::Again final : public autograd::ForwardContext {
 public:
  explicit Again(const ReplicaMeeting& forward)
      : replicas_(forward.replicas_), elsewhere_(forward.elsewhere_) {}
  std::shared_ptr<void> enter() override {
    struct Alone {
      ReplicaMeeting meeting;
      Seat seat;
      Alone(int replicas, const Elsewhere& elsewhere)
          : meeting(replicas, false, elsewhere), seat(&meeting, 0) {
        meeting.again_ = true;
        if (replicas > 1)
          meeting.close(
              "it is computed again in a backward, where this process's other replicas need not "
              "come: expected one replica in each process, or the layer outside of such a part");
      }
    };
    return std::make_shared<Alone>(replicas_, elsewhere_);
  }

 private:
  const int replicas_;
  const Elsewhere elsewhere_;
};

ReplicaMeeting::Seat::Seat(ReplicaMeeting* meeting, int replica)
    : meeting_(meeting),
      before_(t_meeting),
      replica_(replica),
      replica_before_(t_replica),
      again_(meeting ? std::make_shared<Again>(*meeting) : nullptr) {
  t_meeting = meeting;
  t_replica = replica;
  if (meeting_) admitted_ = meeting_->enter(replica);
}
ReplicaMeeting::Seat::~Seat() {
  t_meeting = before_;
  t_replica = replica_before_;
  if (meeting_ && !failed_) meeting_->ended(replica_, State::kEnded);
}
void ReplicaMeeting::Seat::failed(bool left_waiting) {
  failed_ = true;
  if (meeting_) meeting_->ended(replica_, left_waiting ? State::kLeftWaiting : State::kFailed);
}

void ReplicaMeeting::ended(int replica, State how) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_[static_cast<size_t>(replica)] = how;
  pass_on();
  changed_.notify_all();
}

bool ReplicaMeeting::enter(int replica) {
  if (!in_turns_) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return turn_ == replica || closed_; });
  return !closed_;
}

void ReplicaMeeting::start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  pass_on();
  changed_.notify_all();
}

// Gives the turn to the first replica with work to do. Where all replicas wait, the turn goes to
// the first of them, which then reports why the others will not come.
void ReplicaMeeting::pass_on() {
  if (!in_turns_) return;
  for (const bool waiting : {false, true})
    for (size_t i = 0; i < state_.size(); ++i)
      if (state_[i] == State::kRuns && waits_[i] == waiting) {
        turn_ = static_cast<int>(i);
        return;
      }
}

void ReplicaMeeting::close(std::string why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  why_closed_ = std::move(why);
  changed_.notify_all();
}

// Why the others will never all come; empty if they still may. The first reason first.
std::string ReplicaMeeting::absent() const {
  if (closed_) return why_closed_;
  for (const State wanted : {State::kFailed, State::kEnded, State::kLeftWaiting})
    for (size_t i = 0; i < state_.size(); ++i)
      if (state_[i] == wanted)
        return "replica " + std::to_string(i) +
               (wanted == State::kEnded ? " ended its forward without this layer" : " failed");
  return "";
}

ReplicaMeeting::Share ReplicaMeeting::meet(const char* who, Share mine, const Combine& combine) {
  const auto me = static_cast<size_t>(t_replica);
  std::unique_lock<std::mutex> lock(mutex_);
  const uint64_t round = round_;
  brought_.resize(static_cast<size_t>(replicas_));
  brought_[me] = std::move(mine);
  if (++present_ == replicas_) {
    error_ = nullptr;
    try {
      // Under the lock: every other replica only waits here.
      result_ = combine(elsewhere_, round, brought_);
    } catch (...) { error_ = std::current_exception(); }
    brought_.clear();
    present_ = 0;
    ++round_;
    waits_.assign(waits_.size(), false);
    changed_.notify_all();
  } else {
    waits_[me] = true;
    pass_on();
    changed_.notify_all();
    changed_.wait(lock, [&] {
      return (round_ != round || !absent().empty()) &&
             (!in_turns_ || turn_ == static_cast<int>(me));
    });
  }
  if (round_ == round)
    throw ReplicaAbsent("[" + std::string(who) + "] the replicas cannot synchronise: " + absent());
  if (error_) std::rethrow_exception(error_);
  return result_[me];
}

}  // namespace ramet::nn
