// ReplicaSet: persistent replicas of one module on several devices, kept equal to their source.
//
// Note [Replicas]
// A replica module is a copy of the module object, which clone() makes once. Its tensors are then
// re-pointed. Member fields, vectors of handles and the registry all follow, because they share the
// implementation.
//   - On the source's own device a replica's parameters are the source's memory. Every other device
//     has one copy, whatever the number of replicas there. All copies count their versions in the
//     source's counter. So all devices detect a change of the source between forward and backward
//     in the same way.
//   - A parameter that requires grad is a non-leaf in its replicas. Its edge is the source's
//     ReduceAdd node (parallel/nodes/reduce_add.h). With grad mode off there are no edges. Buffers
//     that require grad are treated as parameters.
//   - The other buffers follow their BufferPolicy (nn/module/buffer_policy.h). Replica 0 shares the
//     source's buffer if both are on one device, unless the policy is merge_stats or per_replica.
//   - Before each forward refresh() follows the source: training mode, hooks, frozen or thawed
//     parameters, and moved memory. It copies the values of buckets in which a (storage serial,
//     version) changed. It clones, draws and allocates nothing.
//   - If the registries changed, or the bytes of a module object outside the Module base, the
//     replica modules are made again. Changes of what a member points to are not detected. Neither
//     are those of members of a module with its own clone() and no own_bytes() (Cloneable has
//     both). Call rebuild() after such a change. Values that a replica's forward writes to plain
//     members are discarded: the next forward begins with the source's. Note [Plain members of
//     replicas] has the exceptions.
//   - Under tree(V) there are V replicas, V / N on each of N devices. Each has its own buffers,
//     statistics and gradient slots, so a virtual shard computes the same bits wherever it runs.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nn/module/module.h"
#include "parallel/move/options.h"
#include "parallel/nodes/grad_bucket.h"
#include "parallel/nodes/reduce_add.h"

namespace ramet {
namespace parallel::detail {
class FanOut;
}
namespace nn {

class ShardsElsewhere;

namespace parallel {

using ramet::parallel::GradBucket;
using ramet::parallel::ReduceOrder;

using ramet::parallel::PostReduceHook;
using ramet::parallel::PreReduceHook;

struct ReplicaOptions {
  // of gradients over replicas: Note [Order of sums] in parallel/move/options.h
  ReduceOrder order;
  /// The size up to which parameters are copied, and gradients are added, together.
  int64_t bucket_bytes = int64_t{1} << 20;
  bool detach = false;  // replicas without edges: leaves that require no grad
};

/// Thread safety: one call at a time; replicas run concurrently inside apply().
class RAMET_API ReplicaSet {
 public:
  /// Errors: no device; more than 16 replicas; tree(V) with a number of devices that does not
  /// divide V. Also a module without clone(), or with a clone that differs, and a sealed module
  /// with a descendant that is not sealed.
  ReplicaSet(std::shared_ptr<Module> source, std::vector<Device> devices,
             const ReplicaOptions& options = {});
  ~ReplicaSet();
  ReplicaSet(const ReplicaSet&) = delete;
  ReplicaSet& operator=(const ReplicaSet&) = delete;

  /// The module that the replicas follow.
  const std::shared_ptr<Module>& source() const { return source_; }
  /// The options that it was made with.
  const ReplicaOptions& options() const { return options_; }
  /// Sets whether the set keeps the module alive. If not, use the set only while other code does.
  void hold_source(bool on);
  /// The devices that it was made for, with definite indices.
  const std::vector<Device>& devices() const { return devices_; }
  /// The device of each replica.
  const std::vector<Device>& device_of() const { return device_of_; }
  /// The number of replicas.
  int size() const { return static_cast<int>(device_of_.size()); }
  /// The module object of a replica.
  const std::shared_ptr<Module>& shell(int replica) const;
  /// M is the source's class.
  template <class M> M& replica(int i) const { return dynamic_cast<M&>(*shell(i)); }
  /// The source's parameter or buffer of which `tensor`, a replica's, is a copy; undefined for any
  /// other tensor.
  Tensor source_of(const Tensor& tensor) const;

  /// Makes the replica modules again if the source's structure or members changed. Earlier results
  /// of shell() may then be stale.
  void prepare();
  /// Makes the replicas equal to the source. Call it before each forward; apply() does so.
  void refresh();
  /// Refreshes, and runs run(i) concurrently for replicas 0 .. count - 1 (by default all). Then the
  /// source takes over buffers and statistics. An Error while another apply() runs. If a replica
  /// fails, the source takes over nothing, and the replica's error is thrown: Note [Errors of a
  /// replica].
  void apply(const std::function<void(int)>& run, int count = -1);
  /// Reports that the source's values were changed through a raw pointer. With memory checks on
  /// (runtime/memory/debug_memory.h), refresh() warns of parameters that were changed without such
  /// a call.
  void mark_dirty() { all_dirty_ = true; }
  /// Makes the replica modules again before the next forward.
  void rebuild() { stale_ = true; }
  // Hooks on gradients, from the next backward until they are removed, in the order of
  // registration. They may register and remove hooks. In a backward a parameter's pre-reduce hooks
  // run first, once for each replica that used it. Then the gradients are added. Then its
  // post-reduce hooks run, once; then the hooks of the parameter itself. They run on the thread
  // that runs the backward there. Hooks that a forward sets on a replica's tensors last one step,
  // and see what the pre-reduce hooks returned. If a DataParallel calls the module itself, nothing
  // is reduced.
  /// Called with each replica's gradient before the sum, and with the sum. Returns a handle:
  unsigned register_pre_reduce_hook(PreReduceHook hook);
  unsigned register_post_reduce_hook(PostReduceHook hook);
  /// An Error if there is no such hook.
  void remove_reduce_hook(unsigned hook);
  /// Where the module is: the device of its first parameter or buffer, else the first of devices().
  Device home() const { return home_; }
  /// The gradients that are added together, in order.
  const std::vector<std::unique_ptr<GradBucket>>& buckets() const;

  /// Replicas of the same module in other processes: from the next forward on, layers that
  /// synchronise communicate with them too. Null: none.
  void set_elsewhere(std::shared_ptr<ShardsElsewhere> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }
  /// Replaces Module::merge_replicas: called once after each forward, with every module and its
  /// replicas.
  using Merger =
      std::function<void(const std::vector<std::pair<Module*, std::vector<Module*>>>& modules)>;
  /// Sets such a function from now on.
  void set_merger(Merger merger) { merger_ = std::move(merger); }

 private:
  struct State;
  struct Build;
  void build();
  bool structure_changed();
  void guard_capture();
  void begin_refresh();
  void refresh_buffers();
  void refresh_entry(size_t index);
  void follow_memory(size_t index);
  void make_node(size_t index);
  std::vector<Tensor> new_slots(size_t index);
  void find_changes(bool all);
  void add_changes(const std::vector<size_t>& members);
  void report_unmarked(const std::vector<size_t>& members) const;
  void copy_to(Device device, const ramet::parallel::detail::FanOut* fan = nullptr) const;
  void check_equal_buffers(int count) const;
  void update_source(int count);
  void merge_replicas(int count);

  std::shared_ptr<Module> source_;
  std::vector<Device> devices_, device_of_;
  ReplicaOptions options_;
  Device home_ = Device(kCPU, 0);
  bool all_dirty_ = true, stale_ = false;
  std::atomic<bool> running_{false};
  const std::shared_ptr<ramet::parallel::ReduceHooks> hooks_;
  std::shared_ptr<ShardsElsewhere> elsewhere_;
  Merger merger_;
  std::unique_ptr<State> state_;
};

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
