#include "parallel/replicas/replica_state.h"

#include <set>

namespace ramet {
namespace nn {
namespace parallel {
namespace detail {
namespace {

struct Listed {
  std::mutex mutex;
  std::set<ReplicaStateBase*> states;
};
// Never destroyed: modules of static objects may be destroyed later.
Listed& listed() {
  static Listed* l = new Listed;
  return *l;
}

}  // namespace

ReplicaStateBase::ReplicaStateBase() {
  Listed& l = listed();
  const std::lock_guard<std::mutex> lock(l.mutex);
  l.states.insert(this);
}

ReplicaStateBase::~ReplicaStateBase() {
  Listed& l = listed();
  const std::lock_guard<std::mutex> lock(l.mutex);
  l.states.erase(this);
}

std::vector<ReplicaStateBase*> states_within(const void* begin, size_t bytes) {
  auto* first = static_cast<ReplicaStateBase*>(const_cast<void*>(begin));
  auto* last =
      reinterpret_cast<ReplicaStateBase*>(static_cast<char*>(const_cast<void*>(begin)) + bytes);
  Listed& l = listed();
  const std::lock_guard<std::mutex> lock(l.mutex);
  return {l.states.lower_bound(first), l.states.lower_bound(last)};
}

}  // namespace detail
}  // namespace parallel
}  // namespace nn
}  // namespace ramet
