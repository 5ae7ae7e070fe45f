// One operation's messages, and what its failures are called.
//
// Note [Groups of cards]
// Where a group was asked for NCCL, operations on tensors of GPUs are the same algorithms over the
// same messages, but these travel from card to card, and what they travel to and from is device
// memory. Nothing waits on the host between the rounds of an operation: messages, sums and copies
// are queued on the link's stream, which begins after what the tensors were given by the caller.
// Results are written when all of it is done, so a failure leaves the tensors as they were. Headers
// still go over the host's connections, and are compared before anything is queued: ranks that
// disagree or do not come never meet in NCCL. A card's staging memory stays with the link, whose
// stream alone uses it.
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

/// Why an operation failed, as this rank saw it.
struct Failure {
  CommError::Kind kind;
  std::vector<int> ranks;
  std::string what;
};

using Outgoing = gpu::Link::Outgoing;
using Incoming = gpu::Link::Incoming;

/// Messages under way; the first `receives` of them come to us.
struct Round {
  struct Started {
    int peer;
    TransferPtr transfer;
  };
  std::vector<Started> started;
  size_t receives = 0;
};

/// Where an operation's tensors lie; on a GPU, the point in its work that they are ready at.
struct TensorPlace {
  Device device{kCPU, 0};
  std::shared_ptr<gpu::Event> ready;
};

/// A link of some ranks' cards, and the memory of this rank's one that its stream uses.
struct Card {
  Card(std::unique_ptr<gpu::Link> made, Device where);
  const std::unique_ptr<gpu::Link> link;
  const Device device;
  StagingPool pool;
  int peer = -1;        // of a link of two ranks alone: the other one's number in it
  std::set<int> known;  // Channel::is_new_to_card
};

class Channel {
 public:
  /// `tell` ends the group. It is called while the messages under way and their memory are still
  /// there: what was half sent is finished, and the other ranks' notes come behind it. `sent`
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
  /// Memory that messages travel from and to.
  Staging staging(size_t bytes) const { return Staging(card_ ? card_->pool : pool_, bytes); }

  /// The group's blocks of shared memory; null: there are none.
  void share_memory(SharedMemory* memory) { shared_memory_ = memory; }
  SharedMemory* shared_memory() const { return shared_memory_; }

  /// This is an operation with one other rank.
  void with_peer(int rank) { peer_ = rank; }
  void set_tensor_place(const TensorPlace& place) { place_ = place; }
  const TensorPlace& tensor_place() const { return place_; }
  /// Until what their GPU was given before the call is done: staged copies wait for it, without a
  /// deadline.
  void wait_for_tensors();
  /// From here on messages travel from card to card. All headers agree.
  void use_card(Card& card);
  bool over_cards() const { return card_ != nullptr; }
  /// Of the memory that staging() gives.
  Device device() const { return card_ ? card_->device : Device(kCPU, 0); }
  /// Has none of the link's operations asked this of `what` before? False in the host's memory.
  bool is_new_to_card(int what) const { return card_ && card_->known.insert(what).second; }
  void copy(void* to, const void* from, size_t bytes) const;
  /// All zero.
  void clear(void* memory, int64_t bytes) const;
  /// Kernels over that memory, which allocate nothing.
  template <class F> void compute(const F& kernels) const {
    if (card_) card_->link->run(kernels);
    else kernels();
  }
  /// In place, over all ranks; over cards only. False: it is no type of NCCL's.
  bool sum_in_any_order(void* data, int64_t n, ScalarType dtype);
  /// Everything that was queued is done.
  void complete();
  /// The end: what was queued is done, and the kernels that the caller queues from now on come
  /// behind it.
  void close();
  /// Waits until `done`, and for nothing longer than the deadline, which these ranks missed.
  void wait_until(const std::function<bool()>& done, const char* late,
                  const std::vector<int>& by = {});

  /// What to show to all: `mine`, as `to_each(rank)` changes it. It goes with the first round, or
  /// when headers() asks for the others'. They come into `inbox`, which then expects `next_tag`.
  template <class F>
  void show(const Header& mine, Inbox& inbox, uint64_t next_tag, const F& to_each) {
    shown_.assign(static_cast<size_t>(size_), mine);
    for (int i = 0; i < size_; ++i) to_each(i, shown_[static_cast<size_t>(i)]);
    inbox_ = &inbox;
    next_tag_ = next_tag;
    all_ = shown_;
    compared_ = false;
  }
  /// Everybody's, by rank. Throws a Failure where some do not come or differ.
  const std::vector<Header>& headers();
  /// One message each way and peer; those of no bytes are not sent. All have arrived, all of ours
  /// were taken, and all headers are known to agree, when it returns. Every rank calls it equally
  /// often. The first one begins before the headers have come: its messages are parts of theirs, or
  /// carry a hash of the header, so that ranks which are about to do different things do not take
  /// each other's.
  void move(const std::vector<Outgoing>& out, const std::vector<Incoming>& in,
            const char* who_is_late = "stopped in the middle");
  /// all[rank] of every rank to all ranks.
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
  /// Rounds that an operation may have.
  static constexpr int kMaxRounds = (1 << kRoundBits) - 2;
  /// Tells the other ranks and throws.
  [[noreturn]] void fail(const Failure& failure) const;

 private:
  // Takes from the round what goes with the headers.
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
  Inbox::Messages* arrived_ = nullptr;              // once the headers are on their way
  std::vector<Incoming> after_headers_;             // where to what comes with them belongs
  std::vector<std::vector<char>> header_messages_;  // [rank]: header and what goes with it
  Round showing_;                                   // after what it sends
  bool compared_ = true;
  int peer_ = -1;  // -1: all
  TensorPlace place_;
  Card* card_ = nullptr;
  bool queued_ = false;  // something that is not known to be done
};

}  // namespace ramet::distributed::detail
