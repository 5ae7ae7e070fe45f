// DeviceMesh: the ranks of a group as an array with named dimensions.
//
//   DeviceMesh mesh = init_device_mesh(group, {2, 2}, {"replicate", "shard"});
//   mesh["shard"].group()->all_reduce(t).wait();   // over the ranks of this rank's row
//
// Rank r of the group is element r in row-major order: neighbours in the last dimension are
// neighbours in rank. Each dimension has a group of its own. It contains the ranks that differ from
// this one only in that coordinate.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace distributed {

/// A handle; copies and sub-meshes share the groups. Every rank must make the same meshes in the
/// same order.
class RAMET_API DeviceMesh {
 public:
  /// A mesh of one dimension, over a whole group. No communication.
  explicit DeviceMesh(std::shared_ptr<ProcessGroup> group, std::string name = "shard");

  /// The number of dimensions.
  int64_t ndim() const { return static_cast<int64_t>(dims_.size()); }
  /// The total number of ranks.
  int64_t size() const;
  /// The extent of a dimension; a negative one counts from the end.
  int64_t size(int64_t dim) const;
  int64_t size(const std::string& name) const { return find(name).size; }
  /// The number of ranks along each dimension, and the dimensions' names:
  std::vector<int64_t> sizes() const;
  std::vector<std::string> names() const;
  /// This rank's index in each dimension.
  std::vector<int64_t> coordinate() const;
  int64_t coordinate(const std::string& name) const { return find(name).index; }

  /// The group of a mesh of one dimension.
  const std::shared_ptr<ProcessGroup>& group() const;
  const std::shared_ptr<ProcessGroup>& group(const std::string& name) const {
    return find(name).group;
  }
  const std::shared_ptr<ProcessGroup>& group(int64_t dim) const;

  /// The mesh of that one dimension that contains this rank.
  DeviceMesh operator[](const std::string& name) const { return (*this)[std::vector{name}]; }
  /// The same for several dimensions, in the mesh's order.
  DeviceMesh operator[](const std::vector<std::string>& names) const;

  /// "(replicate=2, shard=2)".
  std::string str() const;

 private:
  struct Dim {
    std::string name;
    int64_t size, index;
    std::shared_ptr<ProcessGroup> group;
  };
  DeviceMesh() = default;
  const Dim& find(const std::string& name) const;
  const Dim& at(int64_t dim) const;
  friend RAMET_API DeviceMesh init_device_mesh(const std::shared_ptr<ProcessGroup>& group,
                                               const std::vector<int64_t>& sizes,
                                               const std::vector<std::string>& names);
  std::vector<Dim> dims_;
};

/// Makes a mesh; all ranks of `group` call it. Errors: the product of the extents is not the
/// group's size; the numbers of names and extents differ; a name is empty or occurs twice.
RAMET_API DeviceMesh init_device_mesh(const std::shared_ptr<ProcessGroup>& group,
                                      const std::vector<int64_t>& sizes,
                                      const std::vector<std::string>& names);

}  // namespace distributed
}  // namespace ramet
