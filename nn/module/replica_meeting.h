// Where the replicas of one data-parallel forward exchange tensors: what a synchronising layer
// needs.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "autograd/graph/forward_context.h"
#include "nn/module/shard_moments.h"

namespace ramet::nn {

/// A replica was left waiting: the reason is in another one.
class RAMET_API ReplicaAbsent : public Error {
 public:
  using Error::Error;
  ~ReplicaAbsent() override;
};

/// The data-parallel call makes it for modules with a buffer of BufferPolicy::sync. A replica that
/// waits blocks its thread, so every replica has its own thread. With `in_turns` one replica runs
/// at a time, until it waits or ends, and none before start(). A capture is made in this way.
class RAMET_API ReplicaMeeting {
 public:
  explicit ReplicaMeeting(int replicas, bool in_turns = false,
                          std::shared_ptr<ShardsElsewhere> elsewhere = nullptr)
      : replicas_(replicas),
        in_turns_(in_turns),
        elsewhere_(std::move(elsewhere)),
        state_(static_cast<size_t>(replicas), State::kRuns),
        waits_(static_cast<size_t>(replicas), false) {}
  ReplicaMeeting(const ReplicaMeeting&) = delete;

  /// The meeting of the replica that runs on this thread; null outside of one.
  static ReplicaMeeting* current();
  /// A replica's contribution, and its result.
  struct Share {
    std::vector<Tensor> tensors;
    double number = 0;
  };
  /// Replicas of the same module in other processes; null: none.
  using Elsewhere = std::shared_ptr<ShardsElsewhere>;
  /// `brought` holds the shares, with their history; the result is [replica]. `round` numbers the
  /// calls.
  using Combine = std::function<std::vector<Share>(const Elsewhere& elsewhere, uint64_t round,
                                                   const std::vector<Share>& brought)>;
  /// Every replica calls this the same number of times. The last replica to call it combines the
  /// shares of all; each replica gets its own part. All replicas throw what combine() throws. A
  /// ReplicaAbsent if a replica failed, or ended its forward without this call; `who` names the
  /// calling layer.
  Share meet(const char* who, Share mine, const Combine& combine);
  /// Do replicas wait for other processes too? Then none of them runs on a device's worker, which
  /// others of this process may need.
  bool waits_elsewhere() const { return elsewhere_ != nullptr; }
  /// A backward computes the forward again: it must not update statistics a second time.
  bool computes_again() const { return again_; }
  /// Every replica has its thread.
  void start();
  /// Ends all waiting; the waiting replicas report `why`.
  void close(std::string why = "the data-parallel call could not start all replicas");

  /// A replica's presence, on its thread. A null meeting is allowed.
  class RAMET_API Seat {
   public:
    Seat(ReplicaMeeting* meeting, int replica);
    ~Seat();
    Seat(const Seat&) = delete;
    Seat& operator=(const Seat&) = delete;
    /// `left_waiting`: by a ReplicaAbsent, so it is not the reason for anything.
    void failed(bool left_waiting);
    /// False: the meeting was closed before the replica's turn came.
    bool admitted() const { return admitted_; }

   private:
    ReplicaMeeting* meeting_;
    ReplicaMeeting* before_;
    int replica_, replica_before_;
    bool failed_ = false, admitted_ = true;
    autograd::ForwardContextGuard again_;  // for what a backward computes again
  };

 private:
  class Again;
  enum class State : uint8_t { kRuns, kEnded, kFailed, kLeftWaiting };
  void ended(int replica, State how);
  std::string absent() const;
  bool enter(int replica);
  void pass_on();

  const int replicas_;
  const bool in_turns_;
  const Elsewhere elsewhere_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<State> state_;
  std::vector<bool> waits_;  // in meet()
  int turn_ = -1;            // with in_turns_
  std::vector<Share> brought_, result_;
  std::exception_ptr error_;  // of this round
  int present_ = 0;
  uint64_t round_ = 0;
  bool closed_ = false, again_ = false;
  std::string why_closed_;
};

}  // namespace ramet::nn
