// Two walks over one graph.
//
// Fast walk: backward() on a graph whose nodes are all on the caller's device. Operation counters
// are a topological order, so a heap of (counter, node) suffices: no dependency count, no map, no
// lock, no other thread. Gradients wait in the node itself, or, where a single edge leads to it, in
// the heap; those of a node with several slots in a table of the walk.
//
// General walk (GraphTask): everything else, that is grad(outputs, inputs) and graphs that span
// devices. It first visits the reachable graph and counts the
// contributions every node will get. Undefined gradients are delivered like any other, so every
// reachable node becomes ready and no flush at the end is needed.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <tuple>
#include <unordered_map>

#include "autograd/graph/node.h"
#include "autograd/graph/reduce_bucket.h"
#include "runtime/devices.h"
#include "runtime/thread_local_state.h"

namespace ramet {
namespace autograd {

struct FunctionNode;  // autograd/graph/function.h

namespace detail {
class ObservedWalk;
}

struct Root {
  NodePtr node;  // a reference: a hook may detach the tensor
  uint32_t slot;
  Tensor grad;
};
void run_backward(std::vector<Root>& roots, bool retain_graph, bool create_graph);
/// sum += g, in place where nobody can see it; recorded in grad mode.
Tensor accumulate(Tensor sum, const Tensor& g);
/// n->apply with profiling scope and anomaly checks.
void run_node(Node* n, Tensor* in, Tensor* out);
/// Tells the graph's observers of what a node delivers: `out`, one an edge.
[[gnu::cold]] void tell_delivered(const void* walk, Node& from, const Tensor* out);

class GraphTask {
 public:
  GraphTask(bool retain, bool create);
  ~GraphTask();
  void prepare(std::vector<Root>& roots, ArrayRef<RawEdge> captures, std::vector<Tensor>* captured);
  void run();
  bool wanted(Node* n) const {
    auto it = info_.find(n);
    return it != info_.end() && it->second.wanted;
  }
  bool create_graph() const { return create_; }
  /// Is it `outer`, or does it run inside a node of it, or of a backward inside that?
  bool within(const GraphTask& outer) const;
  /// May a user's Function that has still to run lead to `leaf` by a backward of its own, or did
  /// one of a replica, whose part waits here for those of the others?
  bool may_come_to(const Node* leaf);
  /// Does this backward bring the leaf one gradient only, which has yet to come, and run no user's
  /// code that could look at it before the end? Then who brings it need not be done with it.
  bool unseen_before_the_end(const Node* leaf);
  /// Has a user's Function still to run whose forward met other processes?
  bool may_meet();
  bool several_devices() const { return several_devices_; }
  /// Where this backward runs inside a Function of a replica: the one that keeps what goes to sums
  /// over replicas. Null: nobody has to.
  ///
  /// Note [Backwards inside replicas]: each replica's Function runs a backward of its own, whenever
  /// its device comes to it. Sums over replicas in the order of these would depend on timing, and
  /// be no tree. So the slots' gradients wait until the walk around them has ended.
  GraphTask* keeper() const { return captured_ ? nullptr : keeper_; }
  /// Keeps what the backward `from`, which runs inside this one, brings to a slot.
  void keep(Node* sum, uint32_t slot, const GraphTask& from, const Tensor& gradient);
  /// `f` runs once when the walk is over, on the thread that began it, before the first failure is
  /// thrown; `failed`: there is one, or the walk never began. What it throws is thrown where
  /// nothing failed before.
  void at_end(std::function<void(bool failed)> f) {
    const std::lock_guard lock(mutex_);
    at_end_.push_back(std::move(f));
  }
  /// Did this backward claim the bucket's slots?
  bool owns(const ReduceBucket* b) const { return owned_.count(const_cast<ReduceBucket*>(b)) != 0; }

 private:
  // Where a node runs: its rank in its walk, and the node around that walk.
  struct Place {
    const Place* around;
    uint64_t rank;
  };
  static __thread const Place* here;
  // Contributions to one slot, with the sender's place in the deterministic order as key.
  struct Part {
    uint64_t key;
    uint32_t slot;
    Tensor grad;
  };
  struct Info {
    int waits = 0;                                   // contributions still to come
    uint64_t rank = 0;                               // place in the order; smaller runs first
    bool wanted = true;                              // leads to something asked for
    std::vector<std::pair<uint32_t, int>> captures;  // slot, index of the result
    std::vector<Part> parts;
  };
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
  using Member = std::pair<Node*, Info*>;
  struct Group {
    int waits = 0;
    std::vector<Member> members;  // complete, not yet taken
  };
  using Delivery = std::tuple<RawEdge, uint64_t, Tensor>;

  void walk(int device);                             // runs the lane of a device until it is empty
  std::vector<Tensor> collect(Node* n, Info& info);  // sums the parts per slot, runs hooks
  std::vector<Tensor> reduce(ReduceBucket& bucket,
                             const std::vector<std::pair<Node*, std::vector<Tensor>>>& in);
  void process(const Ready& r, const std::vector<Member>& members, std::vector<Delivery>& out);
  void deliver(RawEdge e, uint64_t key, Tensor g, int lane);  // under mutex_
  void push(int device, Ready r);
  bool serve_another();                       // where it is alone; false: no other device has work
  void ready(Node* n, Info& info, int lane);  // all of its gradients have come
  void push_group(int lane, ReduceBucket* b, Group& group);
  void left(const Ready& r);  // it has run, or failed; under mutex_
  void send_kept();
  void give_back();            // the buckets that it owns
  void failed(uint64_t rank);  // with the exception that is being handled

  const bool retain_, create_, nested_;  // nested_: inside a task of a worker
  GraphTask* const outer_;               // whose node runs this one; null: none
  GraphTask* const keeper_;
  const Place* const place_;  // of the node that runs this one; null: none
  const int home_;            // the device whose lane the thread that began the walk serves itself
  const ThreadLocalState state_{};
  uint8_t share_ = 0;
  bool several_devices_ = false;
  bool users_code_ = false;      // Node::runs_users_code() of any node
  bool leaves_at_once_ = false;  // Note [Hooks of leaves]
  std::unordered_map<Node*, Info> info_;
  std::unordered_map<ReduceBucket*, Group> groups_;
  std::unordered_map<ReduceBucket*, bool> owned_;
  // Node::kInTurn, and those of them that are complete before their turn. Devices' timing must not
  // decide which of two branches meets the other processes first: each has its own.
  std::vector<Node*> turns_;
  std::vector<bool> waiting_;
  size_t turn_ = 0;
  struct Function {
    FunctionNode* node;
    bool meets;  // as its flags say: those change while others ask
  };
  std::vector<Function> functions_;  // that have still to run
  struct Kept {
    NodePtr sum;
    uint32_t slot;
    std::vector<uint64_t> path;  // of who brings it
    Tensor gradient;
  };
  std::vector<Kept> kept_;
  std::vector<Tensor>* captured_ = nullptr;
  uint64_t base_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  Lane lanes_[kMaxDevices];
  std::vector<uint64_t> posted_;  // lanes that a worker's own walk waits for
  int active_ = 0;
  std::vector<std::function<void(bool)>> at_end_;
  std::exception_ptr error_;
  uint64_t error_rank_ = ~uint64_t{0};
  const bool observed_;  // graph_observed() where it began
  const bool alone_;     // its thread serves all lanes: a capture is made, or an observer wants it
  std::unique_ptr<detail::ObservedWalk> tells_;
};

}  // namespace autograd
}  // namespace ramet
