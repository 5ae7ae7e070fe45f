// What a ReplicaSet knows of its source and its shells. Private to parallel/.
#pragma once
#include <atomic>
#include <map>

#include "nn/module/buffer_policy.h"
#include "parallel/move/movement.h"
#include "parallel/replicas/replica_member.h"
#include "parallel/replicas/replica_set.h"

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
  /// A parameter, or a buffer that requires grad; each once, however many names it has.
  struct Entry {
    std::string name;  // the first one
    Tensor source;
    int64_t offset = 0, bytes = 0;               // in the flat stores
    std::vector<int64_t> strides;                // of the copies
    ramet::parallel::ReduceAdd* node = nullptr;  // one reference
    bool bound = false;                          // do the handles point to it?
    Seen seen;
    size_t bucket = 0;
    std::vector<Handle> handles;  // all replicas', ties included
    std::vector<Tensor> copies;   // by position in `away`
  };
  /// A buffer without gradient.
  struct Buffer {
    std::string name;
    Tensor source;
    BufferPolicy policy;
    bool shares = false;  // replica 0's is the source's memory
    Seen seen;
    std::vector<Tensor> handles;            // [replica]
    std::vector<std::vector<Tensor>> ties;  // [replica]: under further names, in the same memory
    std::vector<uint32_t> versions;  // of the handles when they were last equal to the source
    /// Do new values come to fresh pages? Not where the module itself writes the buffer in a
    /// training forward (batch norms), which graphs before it would notice in any case.
    bool paged() const {
      return policy != BufferPolicy::merge_stats && policy != BufferPolicy::sync &&
             policy != BufferPolicy::per_replica;
    }
    /// Replica i's memory becomes that of `from`.
    void follow(size_t i, const Tensor& from) const {
      if (!handles[i].is_same(from)) handles[i].set_data(from);
      for (const Tensor& t : ties[i]) t.set_data(handles[i]);
    }
  };
  /// A module object as it was at the build.
  struct Snapshot {
    std::string name;
    Module* module;
    std::weak_ptr<const Module> alive;  // empty for a module that no shared_ptr holds
    bool owned = false;                 // does a shared_ptr hold it?
    std::vector<char> bytes;
    // parameters, then buffers; requires_grad of buffers
    std::vector<std::pair<TensorImpl*, bool>> tensors;
    std::vector<std::vector<int64_t>> sizes;
    std::vector<ScalarType> dtypes;
    // weak: another module at the address of one that is gone is another module
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
  std::vector<std::vector<size_t>> members;  // entries of each bucket, in memory order
  std::vector<Device> away;                  // devices other than the source's, each once
  std::vector<Tensor> flat;                  // of each of them
  std::vector<Tensor> gradients;             // slots of each replica; made at the first binding
  int64_t flat_bytes = 0;
  bool has_sync = false;
  std::vector<Copy> dirty;      // of the last begin_refresh()
  std::vector<size_t> strided;  // entries to copy that are not dense
  uint32_t generation = 0;

  State() = default;
  State(const State&) = delete;
  /// The declared states of a module, by address.
  static std::vector<detail::ReplicaStateBase*> states_of(const Module& m);
  /// Finds the declared states of a replica that was just added to `snap`.
  static void find_states(Snapshot& snap);
  /// Replicas that were made again keep their declared state and their buffers of policy
  /// per_replica.
  void keep_states(const State& before);
  /// What the module's declared states become after a step; nothing is written yet.
  std::vector<std::function<void()>> merged_states() const;
  ~State();
};

/// Keeps others out while it lives; an Error where somebody is in already.
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

/// The sealed rule, before anything is allocated: a sealed module has only sealed descendants, and
/// all of them have rebind().
void check_sealed(const Module& source);
/// Full names with their modules, the root first with the name "".
std::vector<std::pair<std::string, Module*>> named_tree(const Module& root);
/// "fc1.weight"; the root's own members have no prefix.
std::string full_name(const std::string& module, const std::string& member);

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
