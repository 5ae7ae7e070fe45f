#include "parallel/replicas/replicate.h"

#include <map>

#include "autograd/grad_mode.h"
#include "parallel/replicas/replica_set_internal.h"
#include "runtime/devices/devices.h"

namespace ramet::nn::parallel::detail {

void replicate_grad_edges(const Module& module, const std::vector<Module*>& replicas,
                          const std::vector<Device>& devices) {
  RAMET_CHECK(replicas.size() == devices.size(), "replicate_grad_edges",
              "Must have as many devices as replicas: got ", devices.size(), " devices and ",
              replicas.size(), " replicas");
  if (replicas.empty()) return;
  struct Named {
    std::string name;
    Tensor tensor;
    bool buffer;
  };
  auto listed = [](const Module& m) {
    std::vector<Named> out;
    for (const auto& [name, sub] : named_tree(m)) {
      for (const auto& item : sub->own_parameters())
        if (item.value().defined())
          out.push_back({full_name(name, item.key()), item.value(), false});
      for (const auto& item : sub->own_buffers())
        if (item.value().defined())
          out.push_back({full_name(name, item.key()), item.value(), true});
    }
    return out;
  };
  const std::vector<Named> ours = listed(module);
  std::vector<std::vector<Named>> theirs;
  for (size_t r = 0; r < replicas.size(); ++r) {
    theirs.push_back(listed(*replicas[r]));
    const std::string where =
        "replica " + std::to_string(r) + " on device " + resolve(devices[r]).str();
    RAMET_CHECK(theirs[r].size() == ours.size(), "replicate_grad_edges", where, " has ",
                theirs[r].size(), " parameters and buffers, expected ", ours.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      const Named& t = theirs[r][i];
      RAMET_CHECK(t.name == ours[i].name && t.buffer == ours[i].buffer, "replicate_grad_edges",
                  where, ": got '", t.name, "', expected '", ours[i].name, "'");
      RAMET_CHECK(same_sizes(t.tensor, ours[i].tensor) &&
                      t.tensor.scalar_type() == ours[i].tensor.scalar_type(),
                  "replicate_grad_edges", where, ": '", t.name, "' is ", describe(t.tensor),
                  ", expected ", describe(ours[i].tensor));
      RAMET_CHECK(t.tensor.device() == resolve(devices[r]), "replicate_grad_edges", where, ": '",
                  t.name, "' is ", describe(t.tensor));
    }
  }
  if (!GradMode::is_enabled()) return;
  std::map<const TensorImpl*, size_t> seen;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!autograd::wants_grad(ours[i].tensor.impl()) ||
        !seen.emplace(ours[i].tensor.impl(), i).second)
      continue;
    std::vector<Tensor> copies;
    for (auto& list : theirs) copies.push_back(list[i].tensor);
    autograd::add_reduce_edge(ours[i].tensor, copies, ours[i].name);
    // Further names of a tied parameter lead to the same node and slots.
    for (size_t k = i + 1; k < ours.size(); ++k) {
      if (!ours[k].tensor.is_same(ours[i].tensor)) continue;
      for (size_t r = 0; r < theirs.size(); ++r)
        if (!theirs[r][k].tensor.is_same(copies[r]))
          static_cast<ramet::parallel::ReduceAdd*>(static_cast<autograd::Node*>(copies[r]->node))
              ->attach_copy(theirs[r][k].tensor, static_cast<uint32_t>(r));
    }
  }
}

}  // namespace ramet::nn::parallel::detail
