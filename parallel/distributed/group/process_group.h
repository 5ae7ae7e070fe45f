// Process groups: ranks that run collective operations together.
//
// Note [Collectives]
// Every rank calls the same operations in the same order. Each operation has a number. Before an
// operation writes anything, all ranks show each other what they run: operation, number, name,
// dtype, shape, reduction and its order. If these differ, or if a rank does not come by the
// deadline, the operation ends on every rank. The CommError names the ranks, and no tensor has been
// written.
//
// Data arrives in the library's own memory and is copied to the caller's tensors when it is
// complete. An operation that fails in the middle thus leaves its tensors as they were. A large
// all-reduce is different: sums replace the caller's values at once. The old values are kept until
// all is complete, and are put back if it fails.
//
// After a failure the group has ended. Later calls throw the same error at once, and waits of other
// ranks end within a second. regroup() makes a group of the ranks that are left.
//
// Sums follow Note [Order of sums] in parallel/move/options.h: rank r's contribution is leaf r.
// Each rank receives one chunk of all contributions (all-to-all) and adds it with
// kernels/pointwise/nary_sum.h. Then the sums go back to all ranks (all-gather). For small tensors,
// every rank sends all of its elements to every other rank. The bits are the same with every
// engine, in every run and on all ranks. Order `any` has the same bits too, except between GPUs.
//
// There are two engines: threads of one process (make_local_groups, inproc://), and Gloo's TCP
// connections between processes on one or several hosts (init_process_group). Processes of one host
// reduce larger tensors through memory that they share, where they can. Bits, errors and deadlines
// are the same. RAMET_SHARED_MEMORY=0 restricts them to messages. Tensors may have any strides; one
// that is not contiguous is copied.
//
// Note [Tensors of GPUs]
// All tensors of one call are in host memory, or on one GPU. Each rank may use another GPU. On the
// host's engines, a rank may even have its tensor in host memory while others use GPUs. The
// operation begins after the work that the GPU's compute stream was given before the call. Work
// that the stream is given after the operation's end runs after the results are written.
// Work::wait() waits on the host, so kernels queued after it see the results.
//
// Without a backend for GPUs, bytes go through pinned memory of the host. With
// GroupOptions::backend "nccl" they go from GPU to GPU over NCCL, which is opened at the first such
// operation. The algorithms and messages are the same, so fixed and tree(V) sums have the same
// bits. Order `any` is NCCL's own all-reduce. Every rank needs NCCL 2.14 and a GPU of its own. If
// not, all ranks get an error that says so before data moves. barrier() and exchange() stay on the
// host.
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
  std::optional<Milliseconds> timeout;  // the group's by default
  /// How the ranks' values are combined.
  ReduceOp op = ReduceOp::sum;
  ReduceOrder order;  // the order of sums
  /// For all_reduce_members, all_gather and broadcast: after an error the tensors' values are
  /// undefined instead of restored. This saves memory of their size, and a copy.
  bool undefined_on_failure = false;
  CollectiveOptions() = default;
  CollectiveOptions(ReduceOp o) : op(o) {}                  // NOLINT(google-explicit-constructor)
  CollectiveOptions(std::string n) : name(std::move(n)) {}  // NOLINT(google-explicit-constructor)
  CollectiveOptions(const char* n) : name(n) {}             // NOLINT(google-explicit-constructor)
};

struct GroupOptions {
  /// The group's name in errors; the same on all ranks.
  std::string name = "world";
  /// The time limit of each operation, from its begin to its error. Over Gloo an operation waits
  /// for the other ranks for three quarters of it, or for all but 1.25 s of it (between GPUs 3.25
  /// s). The longer of the two counts. The rest is time to notify the other ranks where some cannot
  /// be reached. With a timeout below 5 s (between GPUs 13 s), the error may come after it, by
  /// little more than a second (between GPUs three).
  Milliseconds timeout = kDefaultTimeout;
  /// "gloo": tensors of GPUs go through the host. "nccl", or "cpu:gloo,cuda:nccl": they go from GPU
  /// to GPU, while tensors on the host still go over Gloo. Empty: a subgroup takes its parent's
  /// backend; any other group takes "gloo".
  std::string backend;
};

/// What the ranks contributed to an all_reduce_members.
struct MemberReport {
  std::vector<bool> present;  // [member]: by some rank
  std::vector<double> notes;  // [rank]: the number that each rank sent with it
};

/// Thread safety: several threads may start operations, if the order agrees with that of the other
/// ranks. The group's own thread runs them one after the other. send and recv run concurrently with
/// them.
class RAMET_API ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  /// Ends operations under way; the other ranks then see this rank as lost. Call barrier() before,
  /// where other ranks may still be busy.
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  /// This rank's number, from 0; the number of ranks; the group's name:
  int rank() const;
  int size() const;
  const std::string& name() const;
  /// The backend that carries tensors of such devices: "inproc", "gloo" or "nccl".
  const char* backend(DeviceType device = kCPU) const;
  /// What that backend can do: caps.h.
  const BackendCaps& caps(DeviceType device = kCPU) const;
  /// GroupOptions::timeout; the setter changes it from the next operation on:
  Milliseconds timeout() const;
  void set_timeout(Milliseconds timeout);
  /// The store that the group was made with. The caller may use keys of its own in it.
  const std::shared_ptr<Store>& store() const;

  /// Bytes of data that this rank has sent to others, without headers, since the group was made or
  /// since reset_wire_bytes(). `operation` selects one kind of operation by its name in errors,
  /// such as "all_reduce" or "send"; empty: all. DDP's buckets are "all_reduce_members" or
  /// "all_reduce_stages". A sum that NCCL forms counts as one message.
  uint64_t wire_bytes(const std::string& operation = "") const;
  /// Bytes that this rank has put into memory that it shares with its host's other processes, since
  /// the same moment. The few messages of such an operation count as wire_bytes().
  uint64_t shared_bytes() const;
  /// Sets both counts to 0.
  void reset_wire_bytes();

  // Operations that all ranks run together. The call throws errors of the arguments; Work::wait()
  // throws those of the operation.

  /// `t` becomes the `t` of rank `root`.
  [[nodiscard]] Work broadcast(Tensor t, int root = 0, const CollectiveOptions& options = {});
  /// t becomes the reduction of all ranks' t.
  [[nodiscard]] Work all_reduce(Tensor t, const CollectiveOptions& options = {});
  /// As all_reduce, but writes only root's t.
  [[nodiscard]] Work reduce(Tensor t, int root = 0, const CollectiveOptions& options = {});
  /// Reduces several tensors of one dtype as one operation; ReduceOp: sum or average. Tensors that
  /// are adjacent in memory, at multiples of 64 bytes, are sent from where they are. `present`
  /// (default: all) says to which of them this rank contributes. A rank's other tensors are left
  /// out of the sum, not added as zeros. A tensor that some rank contributes to is written on every
  /// rank.
  [[nodiscard]] Work all_reduce_members(std::vector<Tensor> members,
                                        const CollectiveOptions& options = {},
                                        const std::vector<bool>& present = {}, double note = 0,
                                        std::shared_ptr<MemberReport> report = nullptr);
  /// out[r] = rank r's t; all have one shape and dtype. The tensors that are written must share no
  /// memory, also in all_to_all and gather.
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
  /// Ends when every rank has called it.
  [[nodiscard]] Work barrier(const CollectiveOptions& options = {});
  /// Returns every rank's bytes, by rank.
  std::vector<std::string> exchange(const std::string& mine, const CollectiveOptions& options = {});

  // Between two ranks. Messages of one pair and tag arrive in the order of the calls. They wait for
  // nothing but each other.

  /// `tag`: 0 to 32767. Ends when `t` may be written again: then the receiver has it, or over Gloo
  /// the operating system has taken it. In the second case, a receiver that dies afterwards causes
  /// no error here.
  [[nodiscard]] Work send(Tensor t, int to, int tag = 0, const CollectiveOptions& options = {});
  /// `t` becomes what rank `from` sends, which has the sizes and dtype of `t`.
  [[nodiscard]] Work recv(Tensor t, int from, int tag = 0, const CollectiveOptions& options = {});

  // Other groups.

  /// Makes a group of some of the ranks, numbered in the order of the list. Every rank of this
  /// group calls it with the same list. Returns null on ranks that are not in the list.
  std::shared_ptr<ProcessGroup> subgroup(const std::vector<int>& ranks, GroupOptions options = {});
  /// After a failure: makes a group of the `survivors`, numbered in that order. All of them, and
  /// only they, call it with the same list. The store must still be there (over TCP: rank 0's
  /// process).
  std::shared_ptr<ProcessGroup> regroup(const std::vector<int>& survivors,
                                        GroupOptions options = {});

  /// Ends the group on every rank: waits throw CommAborted with this text. It does not wait for
  /// ranks that cannot be reached. Only ~ProcessGroup waits for them, for a second.
  void abort(const std::string& reason);
  /// Throws the group's failure, if there is one.
  void check() const;

  /// The last kRecordedOperations of this rank, the oldest first: Note [The record of operations].
  /// Any thread may call it, also while operations hang.
  std::vector<OperationRecord> recent_operations() const;
  /// After a failure: reports what it was, how far each rank came and what it did last. It covers
  /// the ranks that call this too, as long as the store is reachable. It waits for the other ranks
  /// for `patience`, and half a minute more where the store's host does not answer. An Error if the
  /// group has not failed.
  std::string report(Milliseconds patience = std::chrono::seconds(2)) const;

  struct State;

 private:
  explicit ProcessGroup(std::unique_ptr<State> state);
  friend class GroupMaker;
  friend class CommStages;
  std::unique_ptr<State> state_;
};

/// Makes the calling process's rank of a group over Gloo, or the calling thread's rank of an
/// inproc:// group. The other ranks call it too. Errors: those of rendezvous() and of connecting to
/// the other ranks.
RAMET_API std::shared_ptr<ProcessGroup> init_process_group(const std::string& url = "env://",
                                                           const GroupOptions& options = {},
                                                           const RendezvousOptions& how = {});
/// The same, after a rendezvous that is complete.
RAMET_API std::shared_ptr<ProcessGroup> make_group(const Rendezvous& rendezvous,
                                                   const GroupOptions& options = {});
/// A group of threads of this process, one for each rank: entry r is for the thread that is rank r.
RAMET_API std::vector<std::shared_ptr<ProcessGroup>> make_local_groups(
    int size, const GroupOptions& options = {});

}  // namespace distributed
}  // namespace ramet
