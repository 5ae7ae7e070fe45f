#include "parallel/distributed/model/leaves_internal.h"

#include <fnmatch.h>

#include <map>

#include "autograd/graph/node.h"
#include "parallel/distributed/model/managed.h"

namespace ramet::distributed::detail {
namespace {

using Visit = nn::Module::ConstNamedModuleApplyFunction;

std::string joined(const std::string& module, const std::string& member) {
  return module.empty() ? member : module + "." + member;
}

/// Visits the leaves of this module, not of its children.
template <class F> void each_leaf(const nn::Module& m, const Exceptions& exceptions, const F& f) {
  for (const auto* registry : {&m.own_parameters(), &m.own_buffers()})
    for (const auto& item : *registry) {
      const Tensor& t = item.value();
      if (!t.defined() || exceptions.tensor(t)) continue;
      if (registry == &m.own_buffers() && !autograd::wants_grad(t.impl())) continue;
      if (!is_floating(t.scalar_type()) || !t.is_leaf()) continue;
      if (!autograd::grad_accumulator(t.impl())->reduce) f(item);
    }
}

}  // namespace

Exceptions::Exceptions(const nn::Module& module, const Ignored& ignored) {
  std::vector<bool> used(ignored.names.size(), false);
  const auto named = [&](const std::string& name) {
    bool any = false;
    for (size_t i = 0; i < used.size(); ++i) {
      if (fnmatch(ignored.names[i].c_str(), name.c_str(), 0) != 0) continue;
      any = used[i] = true;
    }
    return any;
  };
  const auto except = [this](const Tensor& t) {
    if (t.defined()) tensors_.emplace(t.impl(), t);
  };
  const auto all_of = [&](const nn::Module& m) {
    m.apply(nn::Module::ConstModuleApplyFunction([&](const nn::Module& below) {
      modules_[&below] = below.weak_from_this();
      for (const auto* registry : {&below.own_parameters(), &below.own_buffers()})
        for (const auto& item : *registry) except(item.value());
    }));
  };
  for (const auto& m : ignored.modules) {
    RAMET_CHECK(m, "ddp", "ignored modules: got an empty pointer");
    all_of(*m);
  }
  for (const Tensor& t : ignored.tensors) {
    RAMET_CHECK(t.defined(), "ddp", "ignored tensors: got an undefined one");
    except(t);
  }
  module.apply(Visit([&](const std::string& path, const nn::Module& m) {
    if ((!path.empty() && named(path)) || is_fully_sharded(m)) all_of(m);
    for (const auto* registry : {&m.own_parameters(), &m.own_buffers()})
      for (const auto& item : *registry)
        if (named(joined(path, item.key()))) except(item.value());
  }));
  for (size_t i = 0; i < used.size(); ++i)
    RAMET_CHECK(used[i], "ddp", "ignored names: nothing in the module is called '",
                ignored.names[i], "'");
}

void fail_too_late(const char* op, const std::string& parameter) {
  fail(op, "a backward inside a backward leads to '", parameter,
       "', when the gradient of the outer one is being reduced already: expected it in a Function "
       "whose mark_differentiated() names all that it leads to, or that does not call it, and not "
       "in a hook");
}

Device home_of(const char* op, const nn::Module& module) {
  const auto parameters = module.parameters();
  RAMET_CHECK(std::ranges::any_of(parameters, [](const Tensor& p) { return p.requires_grad(); }),
              op,
              "DistributedDataParallel is not needed when a module doesn't have any parameter that "
              "requires a gradient.");
  return parameters[0].device();
}

std::vector<NamedLeaf> leaves_of(const nn::Module& module, const Exceptions& exceptions) {
  std::vector<NamedLeaf> out;
  std::map<const TensorImpl*, size_t> seen;
  std::string below;  // the path prefix of a module that is left out
  module.apply(Visit([&](const std::string& path, const nn::Module& m) {
    if (!below.empty() && path.starts_with(below)) return;
    if (exceptions.module(m)) {
      below = path + ".";
      return;
    }
    each_leaf(m, exceptions, [&](const auto& item) {
      const auto [at, first] = seen.emplace(item.value().impl(), out.size());
      if (first) out.push_back({{}, item.value()});
      out[at->second].names.push_back(joined(path, item.key()));
    });
  }));
  return out;
}

bool may_have_leaves(const nn::Module& module, const Exceptions& exceptions) {
  bool any = false;
  module.apply(nn::Module::ConstModuleApplyFunction([&](const nn::Module& m) {
    if (!any && !exceptions.module(m)) each_leaf(m, exceptions, [&](const auto&) { any = true; });
  }));
  return any;
}

}  // namespace ramet::distributed::detail
