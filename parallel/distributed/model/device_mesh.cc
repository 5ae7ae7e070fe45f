#include "parallel/distributed/model/device_mesh.h"

#include <algorithm>

#include "runtime/base/checked_size.h"

namespace ramet::distributed {
namespace {

template <class T> std::string listed(const std::vector<T>& list) {
  std::string out;
  for (const T& item : list) out += (out.empty() ? "" : ", ") + ramet::detail::join(item);
  return "[" + out + "]";
}

}  // namespace

DeviceMesh::DeviceMesh(std::shared_ptr<ProcessGroup> group, std::string name) {
  RAMET_CHECK(group, "DeviceMesh", "group: got a null pointer");
  RAMET_CHECK(!name.empty(), "DeviceMesh", "name: got an empty one");
  const int64_t size = group->size(), index = group->rank();
  dims_.push_back({std::move(name), size, index, std::move(group)});
}

int64_t DeviceMesh::size() const {
  int64_t n = 1;
  for (const Dim& d : dims_) n *= d.size;
  return n;
}
int64_t DeviceMesh::size(int64_t dim) const { return at(dim).size; }
std::vector<int64_t> DeviceMesh::sizes() const {
  std::vector<int64_t> out;
  for (const Dim& d : dims_) out.push_back(d.size);
  return out;
}
std::vector<std::string> DeviceMesh::names() const {
  std::vector<std::string> out;
  for (const Dim& d : dims_) out.push_back(d.name);
  return out;
}
std::vector<int64_t> DeviceMesh::coordinate() const {
  std::vector<int64_t> out;
  for (const Dim& d : dims_) out.push_back(d.index);
  return out;
}

const DeviceMesh::Dim& DeviceMesh::find(const std::string& name) const {
  const auto found = std::ranges::find(dims_, name, &Dim::name);
  RAMET_CHECK(found != dims_.end(), "DeviceMesh", "dimension: got \"", name, "\", expected one of ",
              listed(names()));
  return *found;
}
const DeviceMesh::Dim& DeviceMesh::at(int64_t dim) const {
  return dims_[static_cast<size_t>(wrap_dim("DeviceMesh", dim, ndim()))];
}

const std::shared_ptr<ProcessGroup>& DeviceMesh::group() const {
  RAMET_CHECK(ndim() == 1, "DeviceMesh", "group() of ", str(),
              ": expected a mesh of one dimension, or a dimension's name");
  return dims_[0].group;
}
const std::shared_ptr<ProcessGroup>& DeviceMesh::group(int64_t dim) const { return at(dim).group; }

DeviceMesh DeviceMesh::operator[](const std::vector<std::string>& names) const {
  RAMET_CHECK(!names.empty(), "DeviceMesh", "got no names, expected some of ",
              listed(this->names()));
  DeviceMesh out;
  const Dim* last = nullptr;
  for (const std::string& name : names) {
    const Dim& d = find(name);
    RAMET_CHECK(last < &d, "DeviceMesh", "got the dimensions ", listed(names),
                ", expected each once, in the order of ", listed(this->names()));
    last = &d;
    out.dims_.push_back(d);
  }
  return out;
}

std::string DeviceMesh::str() const {
  std::string out;
  for (const Dim& d : dims_)
    out += (out.empty() ? "" : ", ") + d.name + "=" + std::to_string(d.size);
  return "(" + out + ")";
}

DeviceMesh init_device_mesh(const std::shared_ptr<ProcessGroup>& group,
                            const std::vector<int64_t>& sizes,
                            const std::vector<std::string>& names) {
  constexpr const char* op = "init_device_mesh";
  RAMET_CHECK(group, op, "group: got a null pointer");
  RAMET_CHECK(!sizes.empty() && sizes.size() == names.size(), op, "got ", sizes.size(),
              " extents and ", names.size(), " names, expected one name for each extent");
  int64_t ranks = 1;
  for (int64_t n : sizes) {
    RAMET_CHECK(n > 0, op, "extents: got ", listed(sizes), ", expected each to be at least 1");
    ranks = checked_mul(op, "product of the extents", ranks, n);
  }
  RAMET_CHECK(ranks == group->size(), op, "extents: got ", listed(sizes), ", ", ranks,
              " ranks, expected a product of ", group->size(), ", the ranks of '", group->name(),
              "'");
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  RAMET_CHECK(!sorted.front().empty(), op, "names: got ", listed(names), ", expected none empty");
  RAMET_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), op, "names: got ", listed(names),
              ", expected each once");
  DeviceMesh mesh;
  int64_t inner = ranks;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t n = sizes[d];
    inner /= n;  // ranks between neighbours of this dimension
    std::shared_ptr<ProcessGroup> mine;
    if (n == ranks) {
      mine = group;
    } else {
      for (int64_t first = 0; first < ranks; ++first) {
        if (first / inner % n) continue;
        std::vector<int> line;
        for (int64_t k = 0; k < n; ++k) line.push_back(static_cast<int>(first + k * inner));
        GroupOptions o;
        o.name = names[d] + " of rank " + std::to_string(first);
        o.timeout = group->timeout();
        if (auto made = group->subgroup(line, o)) mine = std::move(made);
      }
    }
    mesh.dims_.push_back({names[d], n, group->rank() / inner % n, std::move(mine)});
  }
  return mesh;
}

}  // namespace ramet::distributed
