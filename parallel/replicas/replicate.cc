#include "parallel/replicas/replicate.h"

#include <set>

#include "autograd/grad_mode.h"
#include "parallel/replicas/replica_set_internal.h"
#include "runtime/devices/devices.h"

namespace ramet::nn::parallel::detail {
namespace {

struct NamedTensor {
  std::string name;
  Tensor tensor;
  bool buffer;
};
using NamedTensors = std::vector<NamedTensor>;

NamedTensors tensors_of(const Module& m) {
  NamedTensors out;
  for (const auto& [name, sub] : named_tree(m)) {
    for (const auto& item : sub->own_parameters())
      if (item.value().defined()) out.push_back({full_name(name, item.key()), item.value(), false});
    for (const auto& item : sub->own_buffers())
      if (item.value().defined()) out.push_back({full_name(name, item.key()), item.value(), true});
  }
  return out;
}

// Checks that a replica has the module's tensors, on its device.
void check_replica(const NamedTensors& theirs, const NamedTensors& ours, size_t replica,
                   Device device) {
  const std::string where = "replica " + std::to_string(replica) + " on device " + device.str();
  RAMET_CHECK(theirs.size() == ours.size(), "replicate_grad_edges", where, " has ", theirs.size(),
              " parameters and buffers, expected ", ours.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    const NamedTensor& t = theirs[i];
    RAMET_CHECK(t.name == ours[i].name && t.buffer == ours[i].buffer, "replicate_grad_edges", where,
                ": got '", t.name, "', expected '", ours[i].name, "'");
    RAMET_CHECK(same_sizes(t.tensor, ours[i].tensor) &&
                    t.tensor.scalar_type() == ours[i].tensor.scalar_type(),
                "replicate_grad_edges", where, ": '", t.name, "' is ", describe(t.tensor),
                ", expected ", describe(ours[i].tensor));
    RAMET_CHECK(t.tensor.device() == device, "replicate_grad_edges", where, ": '", t.name, "' is ",
                describe(t.tensor));
  }
}

// Gives the copies of tensor i its edge. Further names of a tied parameter lead to the same node
// and slots.
void add_edge(const NamedTensors& ours, const std::vector<NamedTensors>& theirs, size_t i) {
  std::vector<Tensor> copies;
  for (const NamedTensors& list : theirs) copies.push_back(list[i].tensor);
  ramet::parallel::add_reduce_edge(ours[i].tensor, copies, ours[i].name);
  for (size_t k = i + 1; k < ours.size(); ++k) {
    if (!ours[k].tensor.is_same(ours[i].tensor)) continue;
    for (size_t r = 0; r < theirs.size(); ++r)
      if (!theirs[r][k].tensor.is_same(copies[r]))
        static_cast<ramet::parallel::ReduceAdd*>(static_cast<autograd::Node*>(copies[r]->node))
            ->attach_copy(theirs[r][k].tensor, static_cast<uint32_t>(r));
  }
}

}  // namespace

void replicate_grad_edges(const Module& module, const std::vector<Module*>& replicas,
                          const std::vector<Device>& devices) {
  RAMET_CHECK(replicas.size() == devices.size(), "replicate_grad_edges",
              "Must have as many devices as replicas: got ", devices.size(), " devices and ",
              replicas.size(), " replicas");
  if (replicas.empty()) return;
  const NamedTensors ours = tensors_of(module);
  std::vector<NamedTensors> theirs;
  for (size_t r = 0; r < replicas.size(); ++r) {
    theirs.push_back(tensors_of(*replicas[r]));
    check_replica(theirs[r], ours, r, resolve(devices[r]));
  }
  if (!GradMode::is_enabled()) return;
  std::set<const TensorImpl*> seen;
  for (size_t i = 0; i < ours.size(); ++i)
    if (autograd::wants_grad(ours[i].tensor) && seen.insert(ours[i].tensor.impl()).second)
      add_edge(ours, theirs, i);
}

}  // namespace ramet::nn::parallel::detail
