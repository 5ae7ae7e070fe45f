// The messages of one operation, and how its failures are named.
//
// Note [Groups of GPUs]
// If a group uses NCCL, operations on tensors of GPUs use the same algorithms and the same
// messages. But these messages go from GPU to GPU, and their memory is device memory. The host does
// not wait between the rounds of an operation. Messages, sums and copies are queued on the link's
// stream. That stream begins after the work that the caller queued for the tensors. Results are
// written when all of this is done, so a failure leaves the tensors unchanged. Headers still go
// over the host's connections, and are compared before anything is queued. So ranks that disagree
// or do not come never meet in NCCL. A GPU's staging memory stays with the link; only the link's
// stream uses it.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parallel/distributed/wire/engine_internal.h"
#include "parallel/distributed/wire/header_internal.h"
#include "parallel/distributed/wire/inbox_internal.h"
#include "parallel/distributed/wire/shared_memory_internal.h"
#include "parallel/distributed/wire/staging_internal.h"
#include "runtime/devices/gpu_link.h"

namespace ramet::distributed::detail {

/// Why an operation failed, from this rank's view.
struct Failure {
  CommError::Kind kind;
  std::vector<int> ranks;
  std::string what;
};

using Outgoing = gpu::Link::Outgoing;
using Incoming = gpu::Link::Incoming;

/// Messages under way; the first `receives` of them are received by this rank.
struct Round {
  struct Started {
    int peer;
    TransferPtr transfer;
  };
  std::vector<Started> started;
  size_t receives = 0;
};

/// Where an operation's tensors are; on a GPU, also the point in its work at which they are ready.
struct TensorPlace {
  Device device{kCPU, 0};
  std::shared_ptr<gpu::Event> ready;
};

/// A link between GPUs of some ranks, and the memory of this rank's GPU that the link's stream
/// uses.
struct Card {
  Card(std::unique_ptr<gpu::Link> made, Device where);
  const std::unique_ptr<gpu::Link> link;
  const Device device;
  StagingPool pool;
  int peer = -1;        // in a link of only two ranks: the other one's number in it
  std::set<int> known;  // for Channel::is_new_to_card
};

class Channel {
 public:
  /// `tell` ends the group. It is called while the messages under way and their memory still exist.
  /// So half-sent messages are completed, and the other ranks get the notes after them. `sent`
  /// counts the bytes of begin() and move().
  Channel(Engine& engine, StagingPool& pool, int rank, int size, uint64_t first_tag,
          Deadline deadline, std::function<void(const Failure&)> tell,
          std::atomic<uint64_t>* sent = nullptr)
      : engine_(engine),
        pool_(pool),
        rank_(rank),
        size_(size),
        tag_(first_tag),
        deadline_(deadline),
        tell_(std::move(tell)),
        sent_(sent) {}
  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Memory that messages are sent from and received in.
  Staging staging(size_t bytes) const { return Staging(card_ ? card_->pool : pool_, bytes); }

  /// The group's blocks of shared memory; null: there are none.
  void share_memory(SharedMemory* memory) { shared_memory_ = memory; }
  SharedMemory* shared_memory() const { return shared_memory_; }

  /// Makes this an operation with one other rank.
  void with_peer(int rank) { peer_ = rank; }
  void set_tensor_place(const TensorPlace& place) { place_ = place; }
  const TensorPlace& tensor_place() const { return place_; }
  /// Waits until the work that the tensors' GPU was given before the call is done. Staged copies
  /// wait for it, without a deadline.
  void wait_for_tensors();
  /// From here on messages go from GPU to GPU. All headers agree.
  void use_card(Card& card);
  bool over_cards() const { return card_ != nullptr; }
  /// The device of the memory that staging() returns.
  Device device() const { return card_ ? card_->device : Device(kCPU, 0); }
  /// Is this the first call for `what` among all of the link's operations? False in host memory.
  bool is_new_to_card(int what) const { return card_ && card_->known.insert(what).second; }
  void copy(void* to, const void* from, size_t bytes) const;
  /// Sets the memory to zero.
  void clear(void* memory, int64_t bytes) const;
  /// Runs kernels over that memory, which allocate nothing.
  template <class F> void compute(const F& kernels) const {
    if (card_) card_->link->run(kernels);
    else kernels();
  }
  /// Sums in place, over all ranks, only between GPUs. Returns false if NCCL does not have the
  /// dtype.
  bool sum_in_any_order(void* data, int64_t n, ScalarType dtype);
  /// Waits until all queued work is done.
  void complete();
  /// Ends the operation: all queued work is done, and kernels that the caller queues from now on
  /// run after it.
  void close();
  /// Waits until `done`, but not beyond the deadline. `by`: the ranks that missed the deadline.
  void wait_until(const std::function<bool()>& done, const char* late,
                  const std::vector<int>& by = {});

  /// Sets the header to show to all ranks: `mine`, as `to_each(rank)` changes it. It is sent with
  /// the first round, or when headers() asks for the others'. The others' headers arrive in
  /// `inbox`, which then expects `next_tag`.
  template <class F>
  void show(const Header& mine, Inbox& inbox, uint64_t next_tag, const F& to_each) {
    shown_.assign(static_cast<size_t>(size_), mine);
    for (int i = 0; i < size_; ++i) to_each(i, shown_[static_cast<size_t>(i)]);
    inbox_ = &inbox;
    next_tag_ = next_tag;
    all_ = shown_;
    compared_ = false;
  }
  /// Returns every rank's header, by rank. Throws a Failure if some do not come or differ.
  const std::vector<Header>& headers();
  /// Sends and receives one message for each direction and peer; empty messages are not sent. When
  /// it returns, all messages have arrived, all of this rank's were taken, and all headers agree.
  /// Every rank calls it equally often. The first call begins before the headers have come. Its
  /// messages are parts of the headers, or carry a hash of the header. So ranks that run different
  /// operations do not take each other's messages.
  void move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
            const char* who_is_late = "stopped in the middle");
  /// Sends all[rank] of every rank to all ranks.
  template <class T> void share(std::vector<T>& all) {
    std::vector<Outgoing> out;
    std::vector<Incoming> in;
    for (int i = 0; i < size_; ++i) {
      if (i == rank_) continue;
      out.push_back({i, &all[static_cast<size_t>(rank_)], sizeof(T)});
      in.push_back({i, &all[static_cast<size_t>(i)], sizeof(T)});
    }
    move(out, in);
  }
  /// move() in two halves: several rounds may be under way.
  Round begin(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);
  void end(const Round& round, const char* who_is_late = "stopped in the middle");
  /// The maximum number of rounds of an operation.
  static constexpr int kMaxRounds = (1 << kRoundBits) - 2;
  /// Reports the failure to the other ranks and throws.
  [[noreturn]] void fail(const Failure& failure) const;

 private:
  // Takes out of the round the messages that go with the headers.
  void begin_to_show(std::vector<Outgoing>& out, std::vector<Incoming>& in);
  void start(Round& round, uint64_t tag, const std::vector<Outgoing>& out,
             const std::vector<Incoming>& in);
  void finish(const Round& round, const char* who_is_late);
  void compare_headers();
  void exchange(const std::vector<Outgoing>& out, const std::vector<Incoming>& in);
  void probe_others();
  [[noreturn]] void lost(const PeerLost& lost) const;

  Engine& engine_;
  StagingPool& pool_;
  const int rank_, size_;
  uint64_t tag_, next_tag_ = 0;
  const Deadline deadline_;
  const std::function<void(const Failure&)> tell_;
  std::atomic<uint64_t>* const sent_;
  SharedMemory* shared_memory_ = nullptr;
  std::vector<Header> shown_, all_;
  Inbox* inbox_ = nullptr;
  Inbox::Messages* arrived_ = nullptr;              // Once the headers are on their way.
  std::vector<Incoming> after_headers_;             // Where the data that comes with them belongs.
  std::vector<std::vector<char>> header_messages_;  // [rank]: header and the data that goes with it
  Round showing_;                                   // Destroyed before the memory that it sends.
  bool compared_ = true;
  int peer_ = -1;  // -1: all
  TensorPlace place_;
  Card* card_ = nullptr;
  bool queued_ = false;  // some queued work may not be done
};

}  // namespace ramet::distributed::detail
