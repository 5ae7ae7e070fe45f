// GraphTask: the general backward pass, for grad(outputs, inputs) and for graphs that span devices.
//
// It first visits the graph and counts the contributions that every node will get (GraphOrder). A
// node runs when all of them have come. Undefined gradients are delivered like any other, so every
// node that was visited becomes ready.
//
// Each device has a lane: a heap of the nodes and buckets that are ready there. Its worker runs the
// lane; the thread that began the pass runs that of its own device.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <tuple>

#include "autograd/graph/bucket_groups.h"
#include "autograd/graph/graph_order.h"
#include "autograd/graph/nested_sums.h"
#include "runtime/devices/devices.h"
#include "runtime/observe/thread_local_state.h"

namespace ramet {
namespace autograd {

struct FunctionNode;  // autograd/graph/function.h

namespace detail {
class ObservedWalk;

/// Nodes that meet other processes (Node::kInTurn) run in the order of the graph. The timing of
/// devices must not decide which of two branches meets them first: each rank has its own.
class InTurn {
 public:
  /// Adds a node; call it in the order of the graph.
  void add(Node* n) { nodes_.push_back({n, false}); }
  /// `n` is complete. May it run now? If not, finish() returns it when its turn comes.
  bool may_run(Node* n);
  /// The node of the present turn has run, or failed. Returns the next one if it is complete, else
  /// null.
  Node* finish();

 private:
  std::vector<std::pair<Node*, bool>> nodes_;  // true: complete before its turn
  size_t turn_ = 0;
};

/// User's Functions that have still to run.
class PendingFunctions {
 public:
  void add(FunctionNode* f);
  void remove(const Node* f);
  /// May one of them lead to `leaf` by a backward pass of its own?
  bool may_differentiate(const Node* leaf) const;
  /// Did the forward of one of them meet other processes?
  bool may_meet() const;

 private:
  struct Function {
    FunctionNode* node;
    bool meets;  // as its flags were at first: they change while other threads ask
  };
  std::vector<Function> functions_;
};

/// The failure that comes first in the order of the graph.
class FirstFailure {
 public:
  /// Records the exception that is being handled, thrown by the node with this rank.
  void note(uint64_t rank) {
    if (rank < rank_) error_ = std::current_exception(), rank_ = rank;
  }
  bool any() const { return error_ != nullptr; }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }
  /// The rank for work that runs after all nodes.
  static constexpr uint64_t kAfterNodes = ~uint64_t{0} - 1;

 private:
  std::exception_ptr error_;
  uint64_t rank_ = ~uint64_t{0};
};
}  // namespace detail

class GraphTask {
 public:
  GraphTask(bool retain, bool create);
  ~GraphTask();
  /// `captured`: receives the gradients of `captures`, by index. Null: leaves accumulate theirs.
  void prepare(std::vector<Root>& roots, ArrayRef<RawEdge> captures, std::vector<Tensor>* captured);
  void run();
  bool wanted(const Node* n) const {
    const GraphOrder::Entry* const entry = order_.find(n);
    return entry && entry->wanted;
  }
  bool create_graph() const { return create_; }
  /// Is this pass `outer`, or does it run inside a node of `outer`, directly or in further passes?
  bool within(const GraphTask& outer) const;
  /// May a user's Function that has still to run lead to `leaf` by a backward pass of its own? Or
  /// did a replica's Function do so, and its part waits here for those of the other replicas?
  bool may_reach(const Node* leaf);
  /// Does this pass bring the leaf only one gradient, which has not come yet? And does no user code
  /// run that could read it before the end? If both hold, its kernel may run until the end.
  bool is_unread_until_end(const Node* leaf);
  /// Is there a user's Function that has still to run, and that met other processes in its forward?
  bool may_meet();
  bool several_devices() const { return several_devices_; }
  /// The pass around this one, where this one runs inside a Function of a replica; else null. The
  /// outer pass keeps gradients that go to sums over replicas (Note [Backwards inside replicas]).
  GraphTask* keeper() const { return captured_ ? nullptr : keeper_; }
  /// Keeps a gradient that the inner pass `from` brings to a slot.
  void keep(Node* sum, uint32_t slot, const GraphTask& from, const Tensor& gradient);
  /// Registers `f`, which runs once when the pass is over, on the thread that began it, before the
  /// first failure is thrown. `failed`: there is a failure, or the pass never began. An exception
  /// of `f` is thrown where nothing failed before.
  void at_end(std::function<void(bool failed)> f) {
    const std::lock_guard lock(mutex_);
    at_end_.push_back(std::move(f));
  }
  /// Did this pass claim the bucket's slots?
  bool owns(const ReduceBucket* b) const { return buckets_.owns(b); }

 private:
  using Entry = GraphOrder::Entry;
  using Member = BucketGroups::Member;
  using Delivery = std::tuple<RawEdge, uint64_t, Tensor>;
  // The position of a running node: its rank in its pass, and the node around that pass.
  struct Place {
    const Place* outer;
    uint64_t rank;
  };
  // The state of this thread: the pass that it runs, the pass that keeps sums, and the node's
  // place. Inside a fast pass, tls.task may say otherwise.
  static __thread GraphTask* running;
  static __thread GraphTask* running_keeper;
  static __thread const Place* running_place;

  struct Ready {
    enum Kind : uint8_t { kBuckets, kLeaves, kNodes };  // earlier ones run first
    Kind kind;
    uint64_t rank;
    Node* node;
    ReduceBucket* bucket;
    bool operator<(const Ready& o) const { return kind != o.kind ? kind > o.kind : rank > o.rank; }
  };
  struct Lane {  // of one device
    std::vector<Ready> heap;
    bool active = false;
  };

  // Preparation.
  void note_special_nodes();
  void share_threads();
  void start(std::vector<Root>& roots);
  // Running what is ready.
  void run_lane(int device);  // until it is empty
  bool run_another_lane();    // where one thread runs all; false: no other device has work
  void process(const Ready& r, const std::vector<Member>& members, std::vector<Delivery>& out);
  void process_bucket(ReduceBucket& bucket, const std::vector<Member>& members,
                      std::vector<Delivery>& out);
  void process_node(Node* n, std::vector<Delivery>& out);
  void run_in_place(Node* n, const Entry& entry, Tensor* in, Tensor* out);
  std::vector<Tensor> collect(Node* n, Entry& entry);  // adds the contributions, runs hooks
  std::vector<Tensor> reduce(ReduceBucket& bucket,
                             const std::vector<std::pair<Node*, std::vector<Tensor>>>& in);
  void failed(uint64_t rank);  // for the exception that is being handled
  // Scheduling; under mutex_.
  void deliver(RawEdge e, uint64_t key, Tensor g, int lane);
  void ready(Node* n, Entry& entry, int lane);  // all of its gradients have come
  void push(int device, Ready r);
  void post_lane(int device);
  void finished(const Ready& r);  // it has run, or failed
  // The end.
  void wait_for_lanes();
  void send_kept();
  void call_at_end();

  const bool retain_, create_, nested_;  // nested_: inside a task of a worker
  GraphTask* const outer_;               // the pass that runs this one inside a node, or null
  GraphTask* const keeper_;
  const Place* const place_;  // of the node that runs this one, or null
  const int home_;            // the thread that began the pass runs this device's lane
  const ThreadLocalState state_{};
  uint8_t share_ = 0;
  bool several_devices_ = false;
  bool users_code_ = false;      // Node::runs_users_code() of any node
  bool leaves_at_once_ = false;  // Note [Hooks of leaves]
  GraphOrder order_;
  BucketGroups buckets_;
  detail::InTurn in_turn_;
  detail::PendingFunctions functions_;
  NestedSums nested_sums_;
  std::vector<Tensor>* captured_ = nullptr;
  uint64_t base_ = 0;  // operation counter of rank 0
  std::mutex mutex_;
  std::condition_variable changed_;
  Lane lanes_[kMaxDevices];
  std::vector<uint64_t> posted_;  // lanes that a worker's own pass waits for
  int active_ = 0;                // lanes that other threads run
  std::vector<std::function<void(bool)>> at_end_;
  detail::FirstFailure failure_;
  const bool observed_;    // graph_observed() where it began
  const bool one_thread_;  // it runs all lanes: for a capture, or for an observer that wants it
  std::unique_ptr<detail::ObservedWalk> observed_pass_;
};

}  // namespace autograd
}  // namespace ramet
