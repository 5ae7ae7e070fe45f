#include "parallel/replicas/lost_members_internal.h"

#include <memory>

namespace ramet::nn::parallel {
namespace {

using Implementations = std::vector<const TensorImpl*>;

int64_t references(const Implementations& tensors) {
  int64_t n = 0;
  for (const TensorImpl* t : tensors) n += t->refs.load();
  return n;
}

// Returns how many references the modules hold to each list's tensors. It copies the modules as C++
// objects, whatever their members are, and counts the additional references.
std::vector<int64_t> held(const std::vector<const Module*>& modules,
                          const std::vector<Implementations>& lists) {
  std::vector<int64_t> out;
  for (const Implementations& tensors : lists) out.push_back(-references(tensors));
  std::vector<std::unique_ptr<Module>> copies;
  for (const Module* m : modules) copies.push_back(m->plain_copy());
  for (size_t k = 0; k < lists.size(); ++k) out[k] += references(lists[k]);
  return out;
}

bool loses(const Module& ours, const Module& theirs, const Kept& p) {
  return held({&theirs}, {p.theirs})[0] < held({&ours}, {p.ours})[0];
}

}  // namespace

void check_members(const std::vector<std::string>& names, const std::vector<const Module*>& ours,
                   const std::vector<const Module*>& theirs, const std::vector<Kept>& parameters) {
  std::vector<Implementations> in_ours, in_theirs;
  for (const Kept& p : parameters) in_ours.push_back(p.ours), in_theirs.push_back(p.theirs);
  const std::vector<int64_t> a = held(ours, in_ours), b = held(theirs, in_theirs);
  for (size_t k = 0; k < parameters.size(); ++k) {
    if (a[k] <= b[k]) continue;
    // Another thread that uses the parameter takes and drops references too. So a module must lose
    // it in three counts before this is an error.
    for (size_t m = 0; m < ours.size(); ++m) {
      int times = 0;
      while (times < 3 && loses(*ours[m], *theirs[m], parameters[k])) ++times;
      RAMET_CHECK(times < 3, "replicate", "module ", names[m], " holds parameter '",
                  *parameters[k].name,
                  "' in a member that does not follow in its clone: register the tensor in that "
                  "module's reset()");
    }
  }
}

}  // namespace ramet::nn::parallel
