#include <cstring>
#include <limits>
#include <map>

#include "parallel/replicas/lost_members_internal.h"

namespace ramet::nn::parallel {
namespace {

// How many members of the module hold the tensor: that many references more does a copy of it have,
// beside those in its registries.
int64_t holders(const Module& module, const TensorImpl* tensor) {
  const auto references = [tensor] { return int64_t{tensor->refs.load()}; };
  const int64_t before = references();
  const std::unique_ptr<Module> copy = module.plain_copy();
  if (!copy) return std::numeric_limits<int64_t>::max();
  int64_t held = references() - before;
  for (const auto* registry : {&module.own_parameters(), &module.own_buffers()})
    for (const auto& item : *registry) held -= item.value().impl() == tensor;
  return held;
}

}  // namespace

void check_members(const std::string& module, const Module& ours, const Module& theirs,
                   const Resolves& resolves) {
  const auto [a, size] = ours.own_bytes();
  const auto [b, size_b] = theirs.own_bytes();
  if (!a || size != size_b) return;
  std::map<TensorImpl*, int64_t> well;  // words whose clone is there
  std::map<TensorImpl*, const std::string*> suspects;
  for (size_t at = 0; at + sizeof(void*) <= size; at += sizeof(void*)) {
    TensorImpl *x, *y;
    std::memcpy(&x, static_cast<const char*>(a) + at, sizeof x);
    std::memcpy(&y, static_cast<const char*>(b) + at, sizeof y);
    if (!x) continue;
    if (const std::string* lost = resolves(x, y)) suspects[x] = lost;
    else ++well[x];
  }
  for (const auto& [x, lost] : suspects)
    RAMET_CHECK(holders(ours, x) <= well[x], "replicate", "module ", module, " holds parameter '",
                *lost,
                "' in a member that does not follow in its clone: register the tensor in that "
                "module's reset()");
}

}  // namespace ramet::nn::parallel
