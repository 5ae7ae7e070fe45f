#include "parallel/distributed/model/contract.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace ramet::distributed {

namespace {

struct Applied {
  std::mutex mutex;
  // A module that is gone leaves its entry. The weak_ptr shows that another module's pointer is not
  // meant.
  std::map<std::pair<std::string, const nn::Module*>, std::weak_ptr<const nn::Module>> to;
};
Applied& applied() {
  static auto* const a = new Applied;  // never destroyed: modules may outlive static objects
  return *a;
}

using Names = std::vector<std::string>;

struct Fqns {
  Names parameters, buffers, modules;
  explicit Fqns(const nn::Module& root) {
    root.apply(nn::Module::ConstNamedModuleApplyFunction(
        [this](const std::string& path, const nn::Module& m) {
          modules.push_back(path);
          const std::string prefix = path.empty() ? "" : path + ".";
          for (const auto& item : m.own_parameters()) parameters.push_back(prefix + item.key());
          for (const auto& item : m.own_buffers()) buffers.push_back(prefix + item.key());
        }));
  }
};

void compare(const std::string& api, const char* what, const Names& before, const Names& after) {
  if (before == after) return;
  Names a = before, b = after;
  std::ranges::sort(a);
  std::ranges::sort(b);
  RAMET_CHECK(a != b, api.c_str(), "Checking ", what,
              ": Composable distributed API implementations cannot modify the order of FQNs.");
  const auto missing = [](const Names& from, const Names& in) {
    Names out;
    std::ranges::set_difference(from, in, std::back_inserter(out));
    std::string text;
    for (const std::string& name : out) text += (text.empty() ? "'" : ", '") + name + "'";
    return text.empty() ? std::string("none") : text;
  };
  fail(api.c_str(), "Checking ", what,
       ": Composable distributed API implementations cannot modify FQNs. Only before: ",
       missing(a, b), "; only after: ", missing(b, a));
}

}  // namespace

namespace detail {

bool is_applied(const std::string& api, const nn::Module& m) {
  Applied& a = applied();
  const std::lock_guard lock(a.mutex);
  const auto at = a.to.find({api, &m});
  return at != a.to.end() && at->second.lock().get() == &m;
}

void check_not_applied(const std::string& api, const nn::Module& m) {
  RAMET_CHECK(!is_applied(api, m), api.c_str(),
              "Each distinct composable distributed API can only be applied to a module once. ",
              api, " has already been applied to the following module:\n", m);
}

void set_applied(const std::string& api, const nn::Module& m, bool on) {
  Applied& a = applied();
  const auto life = m.weak_from_this();
  RAMET_CHECK(!on || !life.expired(), api.c_str(), "module ", m.name(),
              ": expected one that a shared_ptr owns");
  const std::lock_guard lock(a.mutex);
  std::erase_if(a.to, [](const auto& entry) { return entry.second.expired(); });
  if (on) a.to[{api, &m}] = life;
  else a.to.erase({api, &m});
}

}  // namespace detail

void apply_once(const std::string& api, nn::Module& module,
                const std::function<void(nn::Module&)>& transform) {
  detail::check_not_applied(api, module);
  const Fqns before(module);
  transform(module);
  detail::set_applied(api, module, true);
  const Fqns after(module);
  compare(api, "parameters", before.parameters, after.parameters);
  compare(api, "buffers", before.buffers, after.buffers);
  compare(api, "modules", before.modules, after.modules);
}

}  // namespace ramet::distributed
