// What a ReplicaSet records of its source and its replica modules. Private to parallel/.
#pragma once
#include <atomic>
#include <map>

#include "nn/module/buffer_policy.h"
#include "parallel/move/movement_internal.h"
#include "parallel/replicas/replica_set.h"
#include "parallel/replicas/replica_state.h"

namespace ramet {
namespace nn {
namespace parallel {

struct ReplicaSet::State {
  struct Seen {  // a tensor's memory and values when they were last copied
    const StorageImpl* storage = nullptr;
    const void* data = nullptr;
    uint64_t serial = 0;
    uint32_t version = 0;
    static Seen of(const Tensor& t) {
      return {t.storage_impl(), t->data, t.storage_impl()->serial(), t.version()};
    }
    bool same_memory(const Seen& o) const { return serial == o.serial && data == o.data; }
    bool same(const Seen& o) const { return same_memory(o) && version == o.version; }
  };
  struct Handle {
    Tensor tensor;
    uint32_t replica;
  };
  /// A parameter, or a buffer that requires grad; one entry, however many names it has.
  struct Entry {
    std::string name;  // the first one
    Tensor source;
    int64_t offset = 0, bytes = 0;               // in the flat stores
    std::vector<int64_t> strides;                // of the copies
    ramet::parallel::ReduceAdd* node = nullptr;  // holds one reference
    bool bound = false;                          // do the handles point to it?
    Seen seen;
    size_t bucket = 0;
    std::vector<Handle> handles;  // of all replicas, ties included
    std::vector<Tensor> copies;   // by position in `away`
    void unbind();
  };
  /// A buffer without gradient.
  struct Buffer {
    std::string name;
    Tensor source;
    BufferPolicy policy;
    bool shares = false;  // replica 0's is the source's memory
    Seen seen;
    std::vector<Tensor> handles;            // [replica]
    std::vector<std::vector<Tensor>> ties;  // [replica]: under further names, in the same memory.
    std::vector<uint32_t> versions;  // of the handles when they were last equal to the source
    /// Do new values go to fresh pages? Not if the module itself writes the buffer in a training
    /// forward (batch norms): earlier graphs would detect that in any case.
    bool paged() const {
      return policy != BufferPolicy::merge_stats && policy != BufferPolicy::sync &&
             policy != BufferPolicy::per_replica;
    }
    /// Has one of the first `count` replicas written it since it was last equal to the source?
    bool written(int count) const;
    /// Its value after a step of so many replicas, on `home`; undefined where the source's stays.
    Tensor merged(int count, Device home) const;
    /// Makes `from` the memory of replica i.
    void follow(size_t i, const Tensor& from) const {
      if (!handles[i].is_same(from)) handles[i].set_data(from);
      for (const Tensor& t : ties[i]) t.set_data(handles[i]);
    }
  };
  /// A module object at the time of the build.
  struct Snapshot {
    std::string name;
    Module* module;
    std::weak_ptr<const Module> alive;  // empty if no shared_ptr holds the module
    bool owned = false;                 // does a shared_ptr hold it?
    std::vector<char> bytes;
    // parameters, then buffers; requires_grad of buffers
    std::vector<std::pair<TensorImpl*, bool>> tensors;
    std::vector<std::vector<int64_t>> sizes;
    std::vector<ScalarType> dtypes;
    // weak: detects another module at the address of one that is gone
    std::vector<std::weak_ptr<Module>> children;
    std::vector<Module*> replicas;
    std::vector<std::vector<char>> replica_bytes;
    // declared replica state: the module's own, and that of each replica
    std::vector<detail::ReplicaStateBase*> states;
    std::vector<std::vector<detail::ReplicaStateBase*>> of_replicas;  // [state][replica]
  };
  struct Copy {
    int64_t offset;
    const char* from;
    int64_t bytes;
  };

  std::vector<Entry> entries;
  std::vector<Buffer> buffers;
  std::vector<Snapshot> modules;
  std::vector<std::shared_ptr<Module>> shells;
  std::vector<std::unique_ptr<GradBucket>> buckets;
  std::vector<std::vector<size_t>> members;  // Entries of each bucket, in memory order.
  std::vector<Device> away;                  // Devices other than the source's, each once.
  std::vector<Tensor> flat;                  // The memory on each of them.
  std::vector<Tensor> gradients;             // slots of each replica; made at the first binding
  int64_t flat_bytes = 0;
  bool has_sync = false;
  std::vector<Copy> dirty;      // found by the last begin_refresh()
  std::vector<size_t> strided;  // entries to copy that are not dense
  uint32_t generation = 0;

  State() = default;
  State(const State&) = delete;
  /// The declared states of a module, by address.
  static std::vector<detail::ReplicaStateBase*> states_of(const Module& m);
  /// Finds the declared states of a replica that was just added to `snap`.
  static void find_states(Snapshot& snap);
  /// Lets replicas that were made again keep their declared state and their buffers of policy
  /// per_replica.
  void keep_states(const State& before);
  /// Computes the module's declared states after a step, and returns functions that write them.
  std::vector<std::function<void()>> merged_states() const;
  ~State();
};

/// Excludes other calls while it exists; an Error if another call is running already.
class OneAtATime {
 public:
  OneAtATime(std::atomic<bool>& running, const char* op, const char* refusal) : running_(running) {
    RAMET_CHECK(!running_.exchange(true), op, refusal);
  }
  ~OneAtATime() { running_ = false; }
  OneAtATime(const OneAtATime&) = delete;

 private:
  std::atomic<bool>& running_;
};

/// Checks the rule for sealed modules, before anything is allocated. A sealed module must have only
/// sealed descendants, and all of them must have rebind().
void check_sealed(const Module& source);
/// Full names with their modules; the root is first, with the name "".
std::vector<std::pair<std::string, Module*>> named_tree(const Module& root);
/// "fc1.weight"; the root's own members have no prefix.
std::string full_name(const std::string& module, const std::string& member);

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
