// The inside of a ProcessGroup: its queue, its thread and its failure.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/distributed/group/operand_internal.h"
#include "parallel/distributed/group/operation_ring_internal.h"
#include "parallel/distributed/group/process_group.h"

namespace ramet::distributed {

namespace detail {

/// An operation of all ranks.
struct Task {
  Header header;
  TensorPlace place;
  Milliseconds timeout{};
  /// What differs from pair to pair; may be empty.
  std::function<void(int rank, Header&)> to_each;
  std::function<void(Channel&)> run;  // may be empty
  std::function<void()> told;         // of told(): once it has ended well
  uint64_t ticket = 0;                // OperationRing
};

/// A message between two ranks.
struct Message {
  Header header;
  TensorPlace place;
  Milliseconds timeout{};
  int peer = 0;
  bool sends = false;
  uint64_t tag = 0;
  Operand tensor;
  std::function<void()> told;
  uint64_t ticket = 0;
};

/// "gloo": tensors of GPUs go through the host; "nccl": from card to card. PyTorch's names.
bool asks_for_nccl(const std::string& backend);

}  // namespace detail

struct ProcessGroup::State {
  State(std::unique_ptr<detail::Engine> carrier, int my_rank, int ranks, GroupOptions o);
  ~State();

  /// Throws the group's failure, where it has one.
  Work start(detail::Task task);
  Work start(detail::Message message);
  void check() const;
  std::exception_ptr failure() const;  // null while the group is whole
  std::vector<OperationRecord> recent_operations() const;
  double age() const { return ring_.age(); }
  /// Ends the group here and everywhere.
  void abort(CommError::Kind kind, const std::vector<int>& ranks, const std::string& text,
             bool wait);

  const std::unique_ptr<detail::Engine> engine;
  const int rank, size;
  const GroupOptions options;
  const bool nccl;  // tensors of GPUs travel from card to card
  std::atomic<int64_t> timeout_ms;
  // How the group was made, for further ones.
  std::shared_ptr<Store> store;
  std::string address;
  std::atomic<uint64_t> subgroups{0};
  std::array<std::atomic<uint64_t>, detail::kOps> wire_bytes{};  // sent, by Op
  std::unique_ptr<detail::SharedMemory> shared_memory;           // of processes alone

 private:
  struct Queued {
    detail::Task task;
    Work work;
  };
  // Who waits for an operation that the group's thread has not begun runs it itself: two thread
  // switches less. The group may go meanwhile.
  struct Helpers {
    std::mutex mutex;
    std::condition_variable left;
    State* state = nullptr;
    int inside = 0;
    void help(const Work& work);
  };
  void serve();
  void serve_one(std::unique_lock<std::mutex>& lock);
  std::exception_ptr run(detail::Task& task);  // what it failed with
  void run(const detail::Message& m);
  // On the caller's thread: notes the point from which on the tensors are ready.
  void begin_on_gpu(detail::TensorPlace& place, detail::Header& header) const;
  // The link for an operation of all ranks or for a message: group_cards.cc
  detail::Card& card_of_all(detail::Channel& channel, const detail::TensorPlace& place);
  void run_over_cards(detail::Channel& channel, const detail::Message& m,
                      const detail::Header& theirs);
  void abort_cards();
  // The error is to come by the deadline, also where some of those who are told cannot be reached.
  Deadline waits_end(Milliseconds timeout, const detail::Header& header) const;
  std::string place(const std::string& op_text) const;
  void tell(const detail::Failure& failure, const std::string& op_text);
  // The failure that is being handled, as the group's.
  std::exception_ptr fail_with(const std::string& op_text);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool serving_ = false;  // the first one is being run
  uint64_t sequence_ = 0;
  detail::OperationRing ring_;
  std::map<std::pair<int, int>, uint64_t> sent_, received_;  // (peer, tag): how many
  mutable std::exception_ptr failure_;
  bool closing_ = false;
  struct Side {
    std::thread thread;
    std::atomic<bool> done{false};
  };
  detail::StagingPool staging_;
  detail::Inbox inbox_;
  // Made at their first operation. Of all ranks: by their devices. Of two: by sender or receiver,
  // the other rank and both devices.
  std::map<std::vector<int>, std::unique_ptr<detail::Card>> cards_;
  struct Pair {
    std::mutex mutex;  // one message at a time
    std::map<std::pair<int, int>, std::unique_ptr<detail::Card>> cards;
  };
  std::mutex pairs_mutex_;
  std::map<std::pair<int, bool>, Pair> pairs_;  // (peer, do we send)
  const std::shared_ptr<Helpers> helpers_ = std::make_shared<Helpers>();
  std::list<Side> messages_;  // a thread each: they wait for nothing but their peer
  std::thread worker_;
};

namespace detail {
/// Another group of the same ranks, with the same deadline: its operations do not wait for those of
/// `group`. Collective.
std::shared_ptr<ProcessGroup> twin_of(ProcessGroup& group, const std::string& name);

/// How often this rank of the group has asked for a number of `kind`, from 1: ranks that ask alike
/// get the same one. Always 1 in a group of one.
int64_t next_number(ProcessGroup& group, const std::string& kind);
/// The options with, from the second on, the number in their name. Modules that are alike have
/// other names in what the ranks compare: where a rank comes to them in another order, that is
/// seen.
template <class Options> Options with_number(Options o, int64_t number) {
  if (number > 1) o.name += " (number " + std::to_string(number) + ")";
  return o;
}
}  // namespace detail

}  // namespace ramet::distributed
