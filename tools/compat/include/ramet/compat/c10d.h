// LibTorch's process groups over Ramet's (parallel/distributed/group/process_group.h): its lists of
// tensors, options and handles. Errors, their times and the values that they leave in the tensors
// are Ramet's: Note [Collectives]. The call throws errors of the arguments, wait() throws the
// others.
//
// Programs with processes link //:distributed; torch/torch.h does not include this.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ramet/compat/c10d_store.h"
#include "ramet/compat/c10d_types.h"

namespace c10d {

/// Shared state: copies of the pointer, and a ProcessGroup with this backend, are one group.
/// Operations may be overridden. Each takes a list of one tensor for one device, as in LibTorch.
class Backend : public torch::CustomClassHolder {
 public:
  struct Options : torch::CustomClassHolder {
    explicit Options(std::string name, std::chrono::milliseconds time = kBackendDefaultTimeout)
        : timeout(time), backend(std::move(name)) {}
    std::chrono::milliseconds timeout;
    std::string backend;
    std::string group_name, group_desc;
    std::vector<uint64_t> global_ranks_in_group;
  };
  using Tensors = std::vector<at::Tensor>;
  using WorkPtr = c10::intrusive_ptr<Work>;

  Backend(int rank, int size) : rank_(rank), size_(size) {}
  virtual int getRank() const { return rank_; }
  virtual int getSize() const { return size_; }
  virtual const std::string getBackendName() const { return "undefined"; }
  int64_t getID() const { return static_cast<int64_t>(reinterpret_cast<std::intptr_t>(this)); }
  virtual void setTimeout(std::chrono::milliseconds timeout) {
    group("setTimeout").set_timeout(timeout);
  }
  /// Ends the group on every rank.
  virtual void abort() { group("abort").abort("abort() was called"); }
  /// This handle's; others of the same group go on.
  virtual void shutdown() { group_.reset(); }
  const std::string& getGroupName() const { return name_; }
  void setGroupName(const std::string& name) { name_ = name; }
  const std::string& getGroupDesc() const { return description_; }
  void setGroupDesc(const std::string& text) { description_ = text; }
  /// Ramet's own, for what takes one (distributed::replicate, ...). Null where there is none.
  const std::shared_ptr<::ramet::distributed::ProcessGroup>& ramet_group() const { return group_; }

  virtual WorkPtr broadcast(Tensors& tensors, const BroadcastOptions& o = BroadcastOptions()) {
    const at::Tensor& t = detail::only("broadcast", "tensors", tensors);
    return one(OpType::BROADCAST,
               group("broadcast").broadcast(detail::raw(t), root(o), detail::timed(o)), {t});
  }
  virtual WorkPtr allreduce(Tensors& tensors, const AllreduceOptions& o = AllreduceOptions()) {
    const at::Tensor& t = detail::only("allreduce", "tensors", tensors);
    return one(OpType::ALLREDUCE,
               group("allreduce").all_reduce(detail::raw(t), detail::reducing("allreduce", o)),
               {t});
  }
  /// Sums and averages as one operation.
  virtual WorkPtr allreduce_coalesced(
      Tensors& tensors, const AllreduceCoalescedOptions& o = AllreduceCoalescedOptions()) {
    const auto how = detail::reducing("allreduce_coalesced", o);
    auto& g = group("allreduce_coalesced");
    std::vector<Work::RametWork> works;
    const bool together = o.reduceOp == ReduceOp::SUM || o.reduceOp == ReduceOp::AVG;
    if (together) works.push_back(g.all_reduce_members(detail::raw(tensors), how));
    else
      for (const at::Tensor& t : tensors) works.push_back(g.all_reduce(detail::raw(t), how));
    return several(OpType::ALLREDUCE_COALESCED, std::move(works), tensors);
  }
  virtual WorkPtr reduce(Tensors& tensors, const ReduceOptions& o = ReduceOptions()) {
    const at::Tensor& t = detail::only("reduce", "tensors", tensors);
    return one(OpType::REDUCE,
               group("reduce").reduce(detail::raw(t), root(o), detail::reducing("reduce", o)), {t});
  }
  /// outputs[0][r]: rank r's.
  virtual WorkPtr allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                            const AllgatherOptions& o = AllgatherOptions()) {
    const Tensors& out = detail::only("allgather", "outputs", outputs);
    const at::Tensor& in = detail::only("allgather", "inputs", inputs);
    return one(OpType::ALLGATHER,
               group("allgather").all_gather(detail::raw(out), detail::raw(in), detail::timed(o)),
               out);
  }
  /// outputs[r][i]: rank r's inputs[i].
  virtual WorkPtr allgather_coalesced(std::vector<Tensors>& outputs, Tensors& inputs,
                                      const AllgatherOptions& o = AllgatherOptions()) {
    std::vector<Tensors> by_input(inputs.size());
    for (const Tensors& of_rank : outputs) {
      RAMET_CHECK(of_rank.size() == inputs.size(), "allgather_coalesced", "outputs: got a list of ",
                  of_rank.size(), ", expected one of ", inputs.size(), ", as many as inputs");
      for (size_t i = 0; i < inputs.size(); ++i) by_input[i].push_back(of_rank[i]);
    }
    return gather_all(OpType::ALLGATHER_COALESCED, by_input, inputs, o);
  }
  /// `output`: every rank's `input` one after the other. Contiguous.
  virtual WorkPtr all_gather_single(at::Tensor& output, at::Tensor& input,
                                    const AllgatherOptions& o = AllgatherOptions()) {
    const auto out = detail::parts("all_gather_single", "output", output, getSize());
    const auto in = detail::parts("all_gather_single", "input", input, 1);
    return one(OpType::_ALLGATHER_BASE,
               group("all_gather_single").all_gather(out, in[0], detail::timed(o)), {output});
  }
  virtual WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                                  const AllgatherOptions& o = AllgatherOptions()) {
    return all_gather_single(output, input, o);
  }
  virtual WorkPtr all_gather_single_coalesced(Tensors& outputs, Tensors& inputs,
                                              const AllgatherOptions& o = AllgatherOptions()) {
    RAMET_CHECK(outputs.size() == inputs.size(), "all_gather_single_coalesced", "outputs: got ",
                outputs.size(), ", expected as many as inputs, ", inputs.size());
    std::vector<Tensors> outs;
    Tensors ins;
    for (size_t i = 0; i < inputs.size(); ++i) {
      outs.push_back(detail::parts("all_gather_single_coalesced", "output", outputs[i], getSize()));
      ins.push_back(detail::parts("all_gather_single_coalesced", "input", inputs[i], 1)[0]);
    }
    return gather_all(OpType::ALLGATHER_INTO_TENSOR_COALESCED, outs, ins, o);
  }
  virtual WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                  const AllgatherOptions& o = AllgatherOptions()) {
    return all_gather_single_coalesced(outputs, inputs, o);
  }
  /// `outputs` is empty but on the root.
  virtual WorkPtr gather(std::vector<Tensors>& outputs, Tensors& inputs,
                         const GatherOptions& o = GatherOptions()) {
    const at::Tensor& in = detail::only("gather", "inputs", inputs);
    const Tensors out = for_root("gather", "outputs", outputs, o.rootRank);
    return one(OpType::GATHER,
               group("gather").gather(detail::raw(out), detail::raw(in), root(o), detail::timed(o)),
               out);
  }
  /// `inputs` is empty but on the root.
  virtual WorkPtr scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                          const ScatterOptions& o = ScatterOptions()) {
    const at::Tensor& out = detail::only("scatter", "outputs", outputs);
    const Tensors in = for_root("scatter", "inputs", inputs, o.rootRank);
    return one(
        OpType::SCATTER,
        group("scatter").scatter(detail::raw(out), detail::raw(in), root(o), detail::timed(o)),
        {out});
  }
  /// outputs[0]: the reduction of all ranks' inputs[0][getRank()].
  virtual WorkPtr reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                 const ReduceScatterOptions& o = ReduceScatterOptions()) {
    const at::Tensor& out = detail::only("reduce_scatter", "outputs", outputs);
    const Tensors& in = detail::only("reduce_scatter", "inputs", inputs);
    return one(OpType::REDUCE_SCATTER,
               group("reduce_scatter")
                   .reduce_scatter(detail::raw(out), detail::raw(in),
                                   detail::reducing("reduce_scatter", o)),
               {out});
  }
  /// `input`: a part for each rank, one after the other. Contiguous.
  virtual WorkPtr reduce_scatter_single(at::Tensor& output, at::Tensor& input,
                                        const ReduceScatterOptions& o = ReduceScatterOptions()) {
    const auto out = detail::parts("reduce_scatter_single", "output", output, 1);
    const auto in = detail::parts("reduce_scatter_single", "input", input, getSize());
    return one(OpType::_REDUCE_SCATTER_BASE,
               group("reduce_scatter_single")
                   .reduce_scatter(out[0], in, detail::reducing("reduce_scatter_single", o)),
               {output});
  }
  virtual WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                       const ReduceScatterOptions& o = ReduceScatterOptions()) {
    return reduce_scatter_single(output, input, o);
  }
  /// The sizes are of the first dimension, a part for each rank; empty: equal parts. Contiguous.
  virtual WorkPtr all_to_all_single(at::Tensor& output, at::Tensor& input,
                                    std::vector<int64_t>& outputSizes,
                                    std::vector<int64_t>& inputSizes,
                                    const AllToAllOptions& o = AllToAllOptions()) {
    const auto out = detail::parts("all_to_all_single", "output", output, getSize(), outputSizes);
    const auto in = detail::parts("all_to_all_single", "input", input, getSize(), inputSizes);
    return one(OpType::ALLTOALL_BASE,
               group("all_to_all_single").all_to_all(out, in, detail::timed(o)), {output});
  }
  virtual WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                                std::vector<int64_t>& outputSizes, std::vector<int64_t>& inputSizes,
                                const AllToAllOptions& o = AllToAllOptions()) {
    return all_to_all_single(output, input, outputSizes, inputSizes, o);
  }
  /// outputs[r]: rank r's inputs[getRank()].
  virtual WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                           const AllToAllOptions& o = AllToAllOptions()) {
    return one(
        OpType::ALLTOALL,
        group("alltoall").all_to_all(detail::raw(outputs), detail::raw(inputs), detail::timed(o)),
        outputs);
  }
  virtual WorkPtr send(Tensors& tensors, int dstRank, int tag = 0) {
    const at::Tensor& t = detail::only("send", "tensors", tensors);
    return one(OpType::SEND, group("send").send(detail::raw(t), dstRank, tag), {});
  }
  virtual WorkPtr recv(Tensors& tensors, int srcRank, int tag = 0) {
    const at::Tensor& t = detail::only("recv", "tensors", tensors);
    return c10::make_intrusive<Work>(
        OpType::RECV,
        std::vector<Work::RametWork>{group("recv").recv(detail::raw(t), srcRank, tag)}, Tensors{t},
        srcRank);
  }
  virtual WorkPtr recvAnysource(Tensors& /*tensors*/, int /*tag*/) {
    throw c10::NotImplementedError("[recvAnysource] Ramet's groups receive from a rank: use recv");
  }
  virtual WorkPtr barrier(const BarrierOptions& o = BarrierOptions()) {
    return one(OpType::BARRIER, group("barrier").barrier(detail::timed(o)), {});
  }
  /// A barrier. Its Error names the ranks that did not come, on every rank and with either flag.
  virtual void monitoredBarrier(const BarrierOptions& o = BarrierOptions(),
                                bool /*waitAllRanks*/ = false) {
    barrier(o)->wait();
  }

 protected:
  using GroupPtr = std::shared_ptr<::ramet::distributed::ProcessGroup>;
  explicit Backend(GroupPtr g) : rank_(g->rank()), size_(g->size()), group_(std::move(g)) {}
  ::ramet::distributed::ProcessGroup& group(const char* op) const {
    RAMET_CHECK(group_, op, "the process group has no backend, or was shut down");
    return *group_;
  }
  void set_group(GroupPtr g) {
    rank_ = g->rank();
    size_ = g->size();
    group_ = std::move(g);
  }

 private:
  template <class O> static int root(const O& o) { return static_cast<int>(o.rootRank); }
  static WorkPtr several(OpType type, std::vector<Work::RametWork> works, Tensors written) {
    return c10::make_intrusive<Work>(type, std::move(works), std::move(written));
  }
  static WorkPtr one(OpType type, Work::RametWork work, Tensors written) {
    return several(type, {std::move(work)}, std::move(written));
  }
  // LibTorch takes an empty list, or one with an empty list in it.
  Tensors for_root(const char* op, const char* what, const std::vector<Tensors>& lists,
                   int64_t root_rank) const {
    if (getRank() == root_rank) return detail::only(op, what, lists);
    RAMET_CHECK(lists.empty() || (lists.size() == 1 && lists[0].empty()), op, what,
                ": got tensors on rank ", getRank(), ", expected none but on rank ", root_rank);
    return {};
  }
  WorkPtr gather_all(OpType type, const std::vector<Tensors>& outs, const Tensors& ins,
                     const AllgatherOptions& o) {
    std::vector<Work::RametWork> works;
    Tensors written;
    for (size_t i = 0; i < ins.size(); ++i) {
      works.push_back(group("allgather_coalesced")
                          .all_gather(detail::raw(outs[i]), detail::raw(ins[i]), detail::timed(o)));
      written.insert(written.end(), outs[i].begin(), outs[i].end());
    }
    return several(type, std::move(works), std::move(written));
  }

  int rank_, size_;
  GroupPtr group_;
  std::string name_, description_;
};

/// What programs hold. In LibTorch's older form it is a base of the classes below. In the newer
/// form it holds backends: here one that serves all devices.
class ProcessGroup : public Backend {
 public:
  enum BackendType : uint8_t {
    UNDEFINED = 0,
    GLOO = 1,
    NCCL = 2,
    UCC = 3,
    MPI = 4,
    XCCL = 5,
    CUSTOM = 6
  };
  static std::string backendTypeToString(const BackendType& type) {
    static constexpr const char* kNames[] = {"undefined", "gloo", "nccl",  "ucc",
                                             "mpi",       "xccl", "custom"};
    return kNames[std::min<size_t>(type, CUSTOM)];
  }
  static BackendType strToBackendType(const std::string& name) {
    for (uint8_t i = UNDEFINED; i < CUSTOM; ++i)
      if (name == backendTypeToString(static_cast<BackendType>(i)))
        return static_cast<BackendType>(i);
    return CUSTOM;
  }

  ProcessGroup(int rank, int size) : Backend(rank, size) {}
  ProcessGroup(c10::intrusive_ptr<Store> store, int rank, int size)
      : Backend(rank, size), store_(std::move(store)) {}

  BackendType getBackendType() const { return type_; }
  const std::string getBackendName() const override { return backendTypeToString(type_); }
  c10::intrusive_ptr<Store> getStore() const { return store_; }
  /// Further devices take the same group, or another one of the same ranks: operations go over the
  /// first that was set, or that setDefaultBackend() names.
  void setBackend(c10::DeviceType device, BackendType type,
                  const std::optional<c10::intrusive_ptr<Backend>>& backend) {
    c10::intrusive_ptr<Backend> b;
    if (backend) b = *backend;
    for (const auto& known : backends_)
      if (!b && known.second.first == type) b = known.second.second;
    RAMET_CHECK(b && b->ramet_group(), "setBackend", "backend: got ",
                b ? "one of the program's own" : "none",
                ", expected a ProcessGroupGloo, ProcessGroupMPI or ProcessGroupNCCL");
    backends_[device] = {type, b};
    if (backends_.size() == 1) setDefaultBackend(type);
  }
  void setDefaultBackend(BackendType type) {
    type_ = type;
    for (const auto& known : backends_)
      if (known.second.first == type) return set_group(known.second.second->ramet_group());
  }
  void setDefaultBackend(const std::string& name) { setDefaultBackend(strToBackendType(name)); }
  bool hasBackends() const { return !backends_.empty(); }
  c10::intrusive_ptr<Backend> getBackend(c10::DeviceType device) const {
    const auto found = backends_.find(device);
    RAMET_CHECK(found != backends_.end(), "getBackend", "No backend type associated with device ",
                device);
    return found->second.second;
  }
  c10::intrusive_ptr<Backend> getDefaultBackend() const {
    for (const auto& known : backends_)
      if (known.second.first == type_) return known.second.second;
    RAMET_CHECK(false, "getDefaultBackend", "Could not find the default backend type ",
                backendTypeToString(type_));
    return {};
  }

 protected:
  ProcessGroup(GroupPtr g, BackendType type, c10::intrusive_ptr<Store> store = {})
      : Backend(std::move(g)), store_(std::move(store)), type_(type) {}
  /// `address`: where the other ranks reach this one. Over a HashStore the ranks are threads.
  static GroupPtr meet(const char* op, const c10::intrusive_ptr<Store>& store, int rank, int size,
                       std::chrono::milliseconds timeout, const char* backend,
                       const std::string& address) {
    RAMET_CHECK(store && store->ramet_store(), op, "store: got ",
                store ? "one of the program's own" : "null",
                ", expected a TCPStore, FileStore, HashStore or PrefixStore");
    ::ramet::distributed::Rendezvous r;
    r.store = store->ramet_store();
    r.rank = r.local_rank = rank;
    r.world_size = size;
    r.address = address;
    r.threads = r.store->where() == "inproc://";
    ::ramet::distributed::GroupOptions o;
    o.timeout = timeout;
    o.backend = backend;
    return ::ramet::distributed::make_group(r, o);
  }

 private:
  c10::intrusive_ptr<Store> store_;
  BackendType type_ = UNDEFINED;
  std::map<c10::DeviceType, std::pair<BackendType, c10::intrusive_ptr<Backend>>> backends_;
};

}  // namespace c10d
