// The implementation of a ProcessGroup: its queue, its thread and its failure.
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
  /// Sets the parts of the header that differ from pair to pair; may be empty.
  std::function<void(int rank, Header&)> to_each;
  std::function<void(Channel&)> run;  // may be empty
  std::function<void()> told;         // from told(); called after success
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

/// Does the backend's name ask for NCCL? With "gloo", tensors of GPUs go through the host; with
/// "nccl", from GPU to GPU. The names are PyTorch's.
bool asks_for_nccl(const std::string& backend);

}  // namespace detail

struct ProcessGroup::State {
  State(std::unique_ptr<detail::Engine> carrier, int my_rank, int ranks, GroupOptions o);
  ~State();

  /// Throws the group's failure, if it has one.
  Work start(detail::Task task);
  Work start(detail::Message message);
  void check() const;
  std::exception_ptr failure() const;  // null until the group fails
  std::vector<OperationRecord> recent_operations() const;
  double age() const { return ring_.age(); }
  /// Ends the group on this rank and on all others.
  void abort(CommError::Kind kind, const std::vector<int>& ranks, const std::string& text,
             bool wait);

  const std::unique_ptr<detail::Engine> engine;
  const int rank, size;
  const GroupOptions options;
  const bool nccl;  // tensors of GPUs go from GPU to GPU
  std::atomic<int64_t> timeout_ms;
  // How the group was made; subgroups are made from this.
  std::shared_ptr<Store> store;
  std::string address;
  std::atomic<uint64_t> subgroups{0};
  std::array<std::atomic<uint64_t>, detail::kOps> wire_bytes{};  // bytes sent, by Op
  std::unique_ptr<detail::SharedMemory> shared_memory;           // only between processes

 private:
  struct Queued {
    detail::Task task;
    Work work;
  };
  // A thread that waits for an operation runs it itself, if the group's thread has not begun it.
  // That saves two thread switches. The group may be destroyed in the meantime.
  struct Helpers {
    std::mutex mutex;
    std::condition_variable left;
    State* state = nullptr;
    int inside = 0;
    void help(const Work& work);
  };
  void serve();
  void serve_one(std::unique_lock<std::mutex>& lock);
  std::exception_ptr run(detail::Task& task);  // the error, or null
  void run(const detail::Message& m);
  // On the caller's thread: records the point from which on the tensors are ready.
  void begin_on_gpu(detail::TensorPlace& place, detail::Header& header) const;
  // The link for an operation of all ranks or for a message: group_cards.cc
  detail::Card& card_of_all(detail::Channel& channel, const detail::TensorPlace& place);
  void run_over_cards(detail::Channel& channel, const detail::Message& m,
                      const detail::Header& theirs);
  void abort_cards();
  // When the waits for other ranks end. The error must come by the deadline, also if some of the
  // ranks to notify cannot be reached.
  Deadline waits_end(Milliseconds timeout, const detail::Header& header) const;
  std::string place(const std::string& op_text) const;
  void tell(const detail::Failure& failure, const std::string& op_text);
  // Turns the exception that is being handled into the group's failure.
  std::exception_ptr fail_with(const std::string& op_text);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  bool serving_ = false;  // the first one is running
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
  // The links, made at their first operation. For all ranks the key is their devices. For a pair it
  // is sender or receiver, the other rank and both devices.
  std::map<std::vector<int>, std::unique_ptr<detail::Card>> cards_;
  struct Pair {
    std::mutex mutex;  // one message at a time
    std::map<std::pair<int, int>, std::unique_ptr<detail::Card>> cards;
  };
  std::mutex pairs_mutex_;
  std::map<std::pair<int, bool>, Pair> pairs_;  // (peer, does this rank send)
  const std::shared_ptr<Helpers> helpers_ = std::make_shared<Helpers>();
  std::list<Side> messages_;  // a thread each: they wait for nothing but their peer
  std::thread worker_;
};

namespace detail {
/// Makes another group of the same ranks with the same deadline. Its operations do not wait for
/// those of `group`. Collective.
std::shared_ptr<ProcessGroup> twin_of(ProcessGroup& group, const std::string& name);

/// How often this rank of the group has asked for a number of `kind`, counted from 1. Ranks that
/// ask in the same order get the same number. Always 1 in a group of one rank.
int64_t next_number(ProcessGroup& group, const std::string& kind);
/// Returns the options; from number 2 on, their name includes the number. Thus equal modules have
/// different names in what the ranks compare. A rank that reaches them in another order is
/// detected.
template <class Options> Options with_number(Options o, int64_t number) {
  if (number > 1) o.name += " (number " + std::to_string(number) + ")";
  return o;
}
}  // namespace detail

}  // namespace ramet::distributed
