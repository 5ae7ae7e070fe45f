// Process groups: ranks that run collective operations together.
//
// Note [Collectives]
// Every rank calls the same operations in the same order. An operation is numbered, and before
// anything is written all ranks have shown each other what they run: operation, number, name,
// dtype, shape, reduction and its order. If these differ, or a rank does not come until the
// deadline, the operation ends with a CommError that names the ranks, on every rank; no tensor has
// been written. The data comes into memory of the library's own, and is copied to the caller's
// tensors when it is complete (in a large all-reduce: sums replace the caller's values, which are
// kept until all is complete and put back if it is not): an operation that fails in the middle
// leaves its tensors as they were. After a failure the group has ended: later calls throw the same
// error at once, waits of other ranks are released within a second, and regroup() makes a group of
// those that are left.
//
// Sums follow Note [Order of sums] in parallel/move/options.h: rank r's contribution is leaf r.
// Chunks of all contributions go to one rank each (all-to-all), which adds them by
// kernels/pointwise/nary_sum.h, and the sums come back (all-gather); small ones go everything to
// everybody. The same bits with every engine, run to run and on all ranks. `any` is the same but
// between cards.
//
// Two engines: threads of one process (make_local_groups, inproc://), and Gloo's TCP connections
// between processes on one or several hosts (init_process_group). Processes of one host reduce
// larger tensors through memory that they share, where they can: the same bits, errors and
// deadlines; RAMET_SHARED_MEMORY=0 keeps it to messages. Tensors have any strides; one that is not
// contiguous is copied.
//
// Note [Tensors of GPUs]
// All tensors of one call are in host memory, or on one GPU; each rank may have another GPU, and on
// the host's engines another rank may even have its tensor in host memory. The operation begins
// after what the GPU's compute stream was given before the call, and what that is given after the
// end comes behind the results: Work::wait() waits on the host, kernels queued after it see them.
// Without a backend for GPUs, bytes go through pinned memory of the host. With
// GroupOptions::backend "nccl" they go from card to card over NCCL, which is opened at the first
// such operation: the same algorithms over the same messages, so fixed and tree(V) sums have the
// same bits; order `any` is NCCL's own all-reduce. Every rank needs NCCL 2.14 and a card of its
// own; else all ranks get an error that says so before data moves. barrier() and exchange() stay on
// the host.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/tensor.h"
#include "parallel/distributed/group/operation_record.h"
#include "parallel/distributed/group/work.h"
#include "parallel/distributed/meet/rendezvous.h"
#include "parallel/distributed/wire/comm_error.h"
#include "parallel/distributed/wire/reduce_op.h"

namespace ramet {
namespace distributed {

class BackendCaps;

struct CollectiveOptions {
  std::string name;                     // in error texts; must be the same on all ranks
  std::optional<Milliseconds> timeout;  // by default the group's
  /// What becomes of the ranks' values.
  ReduceOp op = ReduceOp::sum;
  ReduceOrder order;  // of sums
  /// all_reduce_members, all_gather and broadcast: after an error the tensors' values are
  /// undefined, not as before. Saves memory of their size, and a copy.
  bool undefined_on_failure = false;
  CollectiveOptions() = default;
  CollectiveOptions(ReduceOp o) : op(o) {}                  // NOLINT(google-explicit-constructor)
  CollectiveOptions(std::string n) : name(std::move(n)) {}  // NOLINT(google-explicit-constructor)
  CollectiveOptions(const char* n) : name(n) {}             // NOLINT(google-explicit-constructor)
};

struct GroupOptions {
  /// What errors call it; the same on all ranks.
  std::string name = "world";
  /// Of each operation, from when it begins to its error. Over Gloo the other ranks are waited for
  /// three quarters of it, or all but 1.25 s (between cards 3.25 s): telling them takes the rest,
  /// where some cannot be reached. A shorter timeout than four times as much may be exceeded for
  /// that, by little more than a second (between cards three).
  Milliseconds timeout = kDefaultTimeout;
  /// "gloo": GPUs' tensors go through the host. "nccl", or "cpu:gloo,cuda:nccl": they go from card
  /// to card, what lies on the host still goes by Gloo. Empty: the parent's, of a subgroup; else
  /// "gloo".
  std::string backend;
};

/// What the ranks contributed to an all_reduce_members.
struct MemberReport {
  std::vector<bool> present;  // [member]: by some rank
  std::vector<double> notes;  // [rank]: the number that each rank sent along
};

/// Thread safety: operations may be started by several threads, if they agree with the other ranks
/// about the order. They run one after the other on a thread of the group's own; send and recv
/// beside them.
class RAMET_API ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  /// Ends operations under way; others see this rank as lost. Call barrier() before, where others
  /// may still be busy.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// This rank's number, from 0; how many there are; the group's name:
  int rank() const;
  int size() const;
  const std::string& name() const;
  /// What tensors of such devices travel by: "inproc", "gloo" or "nccl".
  const char* backend(DeviceType device = kCPU) const;
  /// What that can do: caps.h.
  const BackendCaps& caps(DeviceType device = kCPU) const;
  /// What GroupOptions::timeout says, and another from the next operation on:
  Milliseconds timeout() const;
  void set_timeout(Milliseconds timeout);
  /// The store that the group was made with; keys of its own are the caller's business.
  const std::shared_ptr<Store>& store() const;

  /// Bytes of data that this rank has sent to others, without headers, since the group was made or
  /// reset_wire_bytes(): of one kind of operation, as errors name it ("all_reduce", "send"; DDP's
  /// buckets are "all_reduce_members", or "all_reduce_stages"), or of all. A sum that NCCL forms
  /// counts as one message.
  uint64_t wire_bytes(const std::string& operation = "") const;
  /// Bytes that this rank has put where the other processes of its host read them, instead of
  /// sending them; such an operation's few messages count as wire_bytes(). Since the same moment.
  uint64_t shared_bytes() const;
  /// Both.
  void reset_wire_bytes();

  // Operations that ranks run together. Errors of the arguments are thrown by the call, those of
  // the operation by Work::wait().

  /// `t` becomes that of rank `root`.
  [[nodiscard]] Work broadcast(Tensor t, int root = 0, const CollectiveOptions& options = {});
  /// t becomes the reduction of all ranks' t.
  [[nodiscard]] Work all_reduce(Tensor t, const CollectiveOptions& options = {});
  /// Only root's t is written.
  [[nodiscard]] Work reduce(Tensor t, int root = 0, const CollectiveOptions& options = {});
  /// Several tensors of one dtype as one operation; those that are adjacent in memory, at
  /// multiples of 64 bytes, are sent from where they are. `present` (default: all) says which of
  /// them this rank contributes to; the others are passed over in the sum, not added as zeros.
  /// Those that some rank contributes to are written on every rank. ReduceOp: sum or average.
  [[nodiscard]] Work all_reduce_members(std::vector<Tensor> members,
                                        const CollectiveOptions& options = {},
                                        const std::vector<bool>& present = {}, double note = 0,
                                        std::shared_ptr<MemberReport> report = nullptr);
  /// out[r] = rank r's t; all have one shape and dtype. What is written shares no memory, here and
  /// in all_to_all and gather.
  [[nodiscard]] Work all_gather(std::vector<Tensor> out, Tensor t,
                                const CollectiveOptions& options = {});
  /// out = the reduction of all ranks' in[rank()].
  [[nodiscard]] Work reduce_scatter(Tensor out, std::vector<Tensor> in,
                                    const CollectiveOptions& options = {});
  /// out[r] = rank r's in[rank()]. Shapes may differ from pair to pair.
  [[nodiscard]] Work all_to_all(std::vector<Tensor> out, std::vector<Tensor> in,
                                const CollectiveOptions& options = {});
  /// out = root's in[rank()]; `in` is empty elsewhere.
  [[nodiscard]] Work scatter(Tensor out, std::vector<Tensor> in, int root = 0,
                             const CollectiveOptions& options = {});
  /// Root's out[r] = rank r's t; `out` is empty elsewhere.
  [[nodiscard]] Work gather(std::vector<Tensor> out, Tensor t, int root = 0,
                            const CollectiveOptions& options = {});
  /// Ends when every rank has come.
  [[nodiscard]] Work barrier(const CollectiveOptions& options = {});
  /// Every rank's bytes, by rank.
  std::vector<std::string> exchange(const std::string& mine, const CollectiveOptions& options = {});

  // Between two ranks. Messages of one pair and tag arrive in the order of the calls; they wait for
  // nothing but each other.

  /// `tag`: 0 to 32767. Ends when `t` may be written again: the receiver has it, or over Gloo the
  /// system has taken it, and a receiver that dies then is no error of this.
  [[nodiscard]] Work send(Tensor t, int to, int tag = 0, const CollectiveOptions& options = {});
  /// `t` becomes what rank `from` sends, which has its sizes and dtype.
  [[nodiscard]] Work recv(Tensor t, int from, int tag = 0, const CollectiveOptions& options = {});

  // Other groups.

  /// A group of some of the ranks, numbered in the order of the list. Every rank of this group
  /// calls it with the same list; null for those that are not in it.
  std::shared_ptr<ProcessGroup> subgroup(const std::vector<int>& ranks, GroupOptions options = {});
  /// After a failure: a group of the `survivors`, numbered in that order, who all call it with the
  /// same list, and only they. The store must still be there (over TCP: rank 0's process).
  std::shared_ptr<ProcessGroup> regroup(const std::vector<int>& survivors,
                                        GroupOptions options = {});

  /// Ends the group on every rank: waits throw CommAborted with this text. Ranks that cannot be
  /// reached are not waited for, but by ~ProcessGroup: for a second.
  void abort(const std::string& reason);
  /// Throws what the group failed with; nothing while it is whole.
  void check() const;

  /// The last kRecordedOperations of this rank, the oldest first: Note [The record of operations].
  /// Any thread, also while operations hang.
  std::vector<OperationRecord> recent_operations() const;
  /// After a failure: what it was, how far each rank came and what it did last, as far as ranks
  /// call this too and the store is there. It waits that long for the others, and half a minute
  /// more where the store's host does not answer. An Error while the group is whole.
  std::string report(Milliseconds patience = std::chrono::seconds(2)) const;

  struct State;

 private:
  explicit ProcessGroup(std::unique_ptr<State> state);
  friend class GroupMaker;
  friend class CommStages;
  std::unique_ptr<State> state_;
};

/// The calling process's rank of a group over Gloo, or the calling thread's of one of inproc://;
/// the others call it too. Errors: those of rendezvous() and of reaching the other ranks.
RAMET_API std::shared_ptr<ProcessGroup> init_process_group(const std::string& url = "env://",
                                                           const GroupOptions& options = {},
                                                           const RendezvousOptions& how = {});
/// The same over a rendezvous that is done.
RAMET_API std::shared_ptr<ProcessGroup> make_group(const Rendezvous& rendezvous,
                                                   const GroupOptions& options = {});
/// A group whose ranks are threads of this process: entry r is for the thread that plays rank r.
RAMET_API std::vector<std::shared_ptr<ProcessGroup>> make_local_groups(
    int size, const GroupOptions& options = {});

}  // namespace distributed
}  // namespace ramet
