// Hooks on the gradients of a replica set.
#include "parallel/replicas/replica_set.h"

namespace ramet {
namespace nn {
namespace parallel {

unsigned ReplicaSet::register_pre_reduce_hook(PreReduceHook hook) {
  RAMET_CHECK(hook, "register_pre_reduce_hook", "got an empty function");
  return hooks_->add(std::move(hook));
}

unsigned ReplicaSet::register_post_reduce_hook(PostReduceHook hook) {
  RAMET_CHECK(hook, "register_post_reduce_hook", "got an empty function");
  return hooks_->add(std::move(hook));
}

void ReplicaSet::remove_reduce_hook(unsigned hook) {
  RAMET_CHECK(hooks_->remove(hook), "remove_reduce_hook", "got ", hook,
              ", expected a number that a registration returned");
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
