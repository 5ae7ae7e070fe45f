// Makes a ReplicaSet's replicas, step by step. Private to parallel/.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parallel/replicas/replica_set_internal.h"

namespace ramet::nn::parallel {

/// Modules by full name, the root first.
using Tree = std::vector<std::pair<std::string, Module*>>;

/// The module's name in errors: "the module", or its name in quotes.
inline std::string shown_module(const std::string& name) {
  return name.empty() ? "the module" : "'" + name + "'";
}

/// The set changes only after all steps have succeeded.
struct ReplicaSet::Build {
  ReplicaSet& set;
  const Tree& ours;  // the source's modules
  std::unique_ptr<State> made = std::make_unique<State>();
  State& s = *made;
  std::map<const TensorImpl*, size_t> entry_of, buffer_of;
  const Tensor* first = nullptr;
  std::string first_name;
  Device home{kCPU, 0};

  Build(ReplicaSet& of, const Tree& modules) : set(of), ours(modules) {}
  void find_tensors();
  void locate(const Tensor& t, const std::string& name);
  void add_entry(const std::string& name, const Tensor& t);
  void add_buffer(const std::string& name, const Tensor& t, BufferPolicy policy);
  void flatten_source() const;
  void place_entries();
  void plan_buckets();
  void make_copies();
  void note_modules();
  void add_replica(uint32_t replica);
  void check_clone(const Tree& theirs) const;
  void adopt(const Tensor& source, const Tensor& handle, uint32_t replica);
  void check_no_member_lost(const Tree& theirs, uint32_t replica) const;
  size_t away_index(Device device) const {
    return static_cast<size_t>(std::find(s.away.begin(), s.away.end(), device) - s.away.begin());
  }
};

}  // namespace ramet::nn::parallel
