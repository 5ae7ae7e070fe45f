// Which tensors of a module the ranks share.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/distributed/model/ignored.h"

namespace ramet::distributed {

namespace detail {

/// What DdpOptions::ignored and fully_shard take out.
class Exceptions {
 public:
  /// An Error for a name that nothing in the module has.
  Exceptions(const nn::Module& module, const Ignored& ignored);
  bool module(const nn::Module& m) const {
    const auto at = modules_.find(&m);
    return at != modules_.end() && !at->second.expired();
  }
  bool tensor(const Tensor& t) const { return t.defined() && tensors_.count(t.impl()) != 0; }

 private:
  // Descendants too. Another module may come to the address of one that has gone.
  std::map<const nn::Module*, std::weak_ptr<const nn::Module>> modules_;
  std::map<const TensorImpl*, Tensor> tensors_;  // all that those have, and single ones
};

/// Of the first parameter. An Error for a module of which none requires grad.
Device home_of(const char* op, const nn::Module& module);

struct NamedLeaf {
  std::vector<std::string> names;  // a tied one has several
  Tensor tensor;
};
/// For a backward that runs inside a node of another one, and could not be seen coming.
[[noreturn]] void fail_too_late(const char* op, const std::string& parameter);

/// Parameters, and buffers that require grad, each once: depth first, a module's own before its
/// children's, in the order of registration. Those that another reducer has are left out.
std::vector<NamedLeaf> leaves_of(const nn::Module& module, const Exceptions& exceptions);
/// Quicker than leaves_of(), and true where that has any; seldom also where it has none.
bool may_have_leaves(const nn::Module& module, const Exceptions& exceptions);

}  // namespace detail
}  // namespace ramet::distributed
