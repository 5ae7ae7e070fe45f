// What a recording collects, and how: the observer of the graph that class Recording uses.
#pragma once
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "autograd/graph/graph_observer.h"
#include "runtime/memory/memory_observer.h"
#include "runtime/observe/observer.h"
#include "tools/see/memory_over_time.h"
#include "tools/see/recording.h"

namespace ramet {
namespace see {

/// Thread-safe. Its lock is taken last: under it, it calls nothing of the library that may wait.
class Recorder final : public autograd::GraphObserver {
 public:
  explicit Recorder(const RecordingOptions& options);

  // ---- of Recording -----------------------------------------------------------------------------
  void name_tensor(const Tensor& t, const std::string& name, bool parameter);
  Id add_module(const std::string& path, const std::string& type, Id parent);
  void enter_module(Id module);
  void leave_module();
  /// Stops, and takes the gradients that parameters have now.
  void stop();
  RecordingData data();

  // ---- of the runtime's observers ---------------------------------------------------------------
  void on_kernel(const KernelCall& call);
  void on_scope(const Scope& scope, bool begins);
  void on_host_wait(const HostWait& wait);
  void on_memory(const MemoryEvent& event);

  // ---- of the graph -----------------------------------------------------------------------------
  void on_operation(autograd::Node& node, ArrayRef<autograd::Input> inputs,
                    ArrayRef<autograd::Input> results,
                    const autograd::Arguments& arguments) override;
  void on_saved(const Tensor& t) override;
  void on_cast(const Tensor& from, const Tensor& to, bool kept) override;
  void on_backward_begun(const void* walk, const std::vector<autograd::Root>& roots,
                         bool create) override;
  void on_backward_ended(const void* walk, bool failed) override;
  void on_node_ready(const void* walk, autograd::Node& node) override;
  void on_node_begun(autograd::Node& node, Tensor* in) override;
  void on_node_ended(autograd::Node& node, const Tensor* out, bool failed) override;
  void on_delivered(const void* walk, autograd::Node& from, int edge,
                    const Tensor& gradient) override;
  void on_accumulated(autograd::Node& leaf, const Tensor& gradient) override;
  void on_slot_filled(const void* bucket, autograd::Node& member) override;
  void on_reduce_begun(const void* bucket, const char* kind,
                       ArrayRef<autograd::Node*> members) override;
  void on_reduce_ended(const void* bucket, uint64_t when) override;
  void on_moved(const char* kind, ArrayRef<Tensor> from, ArrayRef<Tensor> to,
                uint64_t begun) override;

 private:
  // A kernel that no operation has claimed yet: the words among its arguments, for pointers.
  struct Unclaimed {
    Id kernel;
    std::vector<uintptr_t> words;
  };
  // A gradient that has come to a leaf and was not added yet.
  struct Delivered {
    int count = 0;
    const void* data = nullptr;
    uint32_t version = 0;
    Id statistics = -1;
  };
  struct Thread {
    uint64_t number = 0;
    std::vector<Id> running;  // nodes
    std::vector<Id> modules;
    std::vector<Id> reducing;  // buckets
    int walks = 0;
    std::vector<OperationRow::Saved> saved;  // of the node that it makes next
    std::vector<Unclaimed> kernels;
    std::vector<Id> movements;
    Id copied = -1;                         // the operation that was a copy to the host just now,
    const TensorImpl* copied_to = nullptr;  // and where it went
  };
  struct KnownNode {
    Id id;
    uint64_t counter;
  };
  struct KnownTensor {
    Id id;
    uint64_t serial;
    const void* data;
    int64_t numel;
    ScalarType dtype;
  };
  struct Range {
    uintptr_t first, end;
    bool has(uintptr_t at) const { return at >= first && at < end; }
  };

  // All of these under the lock.
  uint64_t now() const { return monotonic_ns() - began_; }
  /// Of monotonic_ns(): what began before the recording began with it.
  uint64_t time_of(uint64_t clock) const { return clock > began_ ? clock - began_ : 0; }
  bool full();
  Thread& thread();
  Id device_of(Device device);
  Id node_of(autograd::Node& node);
  Id add_node(autograd::Node& node);
  Id tensor_of(const TensorImpl* t, Id statistics = -1);
  Id add_tensor(const TensorImpl* t, Id statistics);
  Id bucket_of(const void* bucket, const char* kind);
  void add_member(Id bucket, Id node);
  Id add_statistics(const Statistics* s);
  const std::string& scope_text();
  /// The line of a script that this thread runs: of a scope "net.py:12 in
  /// __torch__.net.Net.forward".
  Id script_line();
  Id source_of(SourceRow row);
  void event(const char* kind, EventRow e);
  std::vector<Id> claim_kernels(Thread& t, ArrayRef<autograd::Input> inputs,
                                ArrayRef<autograd::Input> results);
  void leave_unclaimed(Thread& t);
  /// What this thread calls, without its times and tensors.
  static OperationRow operation_of(const Thread& t, std::string name, std::string scope, Id device);
  void add_parameters(RecordingData& d) const;
  void name_owners(RecordingData& d) const;

  // Not under it: computes.
  bool wants_statistics(const TensorImpl* t) const;

  const RecordingOptions options_;
  const uint64_t began_ = monotonic_ns();
  std::mutex mutex_;
  bool stopped_ = false;
  size_t rows_ = 0, dropped_ = 0;
  RecordingData data_;
  std::unordered_map<std::thread::id, Thread> threads_;
  std::map<int, Id> devices_;  // by ordinal
  std::unordered_map<const autograd::Node*, KnownNode> nodes_;
  std::map<std::pair<Id, uint32_t>, Id> of_node_;  // tensors, by the node and slot they come from
  std::unordered_map<const TensorImpl*, KnownTensor> others_;  // tensors without a history
  std::unordered_map<const void*, Id> buckets_;
  std::unordered_map<const Scope*, std::string> scopes_;
  std::map<std::tuple<std::string, std::string, int>, Id> sources_;
  struct Named {
    Tensor tensor;
    std::string name;
    bool parameter;
  };
  std::vector<Named> named_;
  std::unordered_map<const TensorImpl*, std::string> names_;
  std::unordered_map<Id, Id> leaf_tensors_;                    // of leaves' collectors
  std::unordered_map<Id, Id> casts_;                           // tensor -> autocast's operation
  std::map<Id, Id> gradients_;                                 // leaf -> its gradient now
  std::map<Id, std::set<Id>> contributors_;                    // leaf -> nodes
  std::map<Id, Delivered> delivered_;                          // by leaf
  std::map<Id, std::pair<Id, uint64_t>> reductions_;           // bucket -> movement, begin
  std::vector<std::pair<Id, std::vector<uintptr_t>>> stacks_;  // of operations
  MemoryOverTime memory_;
  std::map<Id, Id> used_;  // storages made meanwhile, by the first kernel that was given them
  bool replays_ = false, gpus_ = false;
};

}  // namespace see
}  // namespace ramet
