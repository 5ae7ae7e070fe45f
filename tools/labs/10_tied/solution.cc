// Lab 10: replicas of a module with tied parameters. task.md says what to do.
#include <utility>
#include <vector>

#include "ramet.h"
#include "tools/labs/10_tied/lab.h"

namespace lab {
using namespace ramet;
using ramet::labs::NamedParameters;  // its member `list` has pairs of a name and a tensor

// One replica for each device: the same names in the same order. Gradients of all replicas flow
// back to the tensors of `source`.
std::vector<NamedParameters> replicate(const NamedParameters& source,
                                       const std::vector<Device>& devices) {
  std::vector<NamedParameters> replicas;
  // HOLE 1: copies on each device, in memory of their own; what is one tensor in the source is one
  // tensor in each replica.
  //| for (const Device& device : devices) {
  //|   NamedParameters replica;
  //|   for (const auto& [name, tensor] : source.list)
  //|     replica.list.push_back({name, tensor.to(device)});
  //|   replicas.push_back(replica);
  //| }
  for (const Device& device : devices) {
    NamedParameters replica;
    for (size_t i = 0; i < source.list.size(); ++i) {
      const auto& [name, tensor] = source.list[i];
      size_t first = 0;
      while (!source.list[first].second.is_same(tensor)) ++first;
      Tensor copy;
      if (first < i) copy = replica.list[first].second;
      else copy = tensor.device() == device ? tensor.clone() : tensor.to(device);
      replica.list.push_back({name, copy});
    }
    replicas.push_back(replica);
  }
  // END 1
  return replicas;
}

}  // namespace lab
