// Which tensors of a module the ranks share.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "parallel/distributed/model/ignored.h"

namespace ramet::distributed {

namespace detail {

/// What DdpOptions::ignored and fully_shard exclude.
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
  // Includes modules inside them. The weak_ptr detects another module at the address of one that
  // has gone.
  std::map<const nn::Module*, std::weak_ptr<const nn::Module>> modules_;
  std::map<const TensorImpl*, Tensor> tensors_;  // all tensors of those modules, and single ones
};

/// The device of the first parameter. An Error if no parameter of the module requires grad.
Device home_of(const char* op, const nn::Module& module);

struct NamedLeaf {
  std::vector<std::string> names;  // a tied tensor has several
  Tensor tensor;
};
/// Throws for a backward that runs inside a node of another one, and that could not be foreseen.
[[noreturn]] void fail_too_late(const char* op, const std::string& parameter);

/// Parameters, and buffers that require grad, each once. Depth first, a module's own before its
/// children's, in the order of registration. Leaves of another reducer are left out.
std::vector<NamedLeaf> leaves_of(const nn::Module& module, const Exceptions& exceptions);
/// Faster than leaves_of(). True if that returns any leaves; in rare cases also true if it returns
/// none.
bool may_have_leaves(const nn::Module& module, const Exceptions& exceptions);

}  // namespace detail
}  // namespace ramet::distributed
