// Hooks on the gradients of a replica set.
#include <algorithm>

#include "parallel/replica_state.h"

namespace ramet {
namespace nn {
namespace parallel {
namespace {

template <class Hook> using Hooks = std::shared_ptr<const std::vector<std::pair<unsigned, Hook>>>;

template <class Hook> void add(Hooks<Hook>& hooks, unsigned id, Hook hook) {
  auto longer = hooks ? std::make_shared<std::vector<std::pair<unsigned, Hook>>>(*hooks)
                      : std::make_shared<std::vector<std::pair<unsigned, Hook>>>();
  longer->emplace_back(id, std::move(hook));
  hooks = std::move(longer);
}

template <class Hook> bool remove(Hooks<Hook>& hooks, unsigned id) {
  if (!hooks) return false;
  auto left = std::make_shared<std::vector<std::pair<unsigned, Hook>>>(*hooks);
  left->erase(
      std::remove_if(left->begin(), left->end(), [&](const auto& h) { return h.first == id; }),
      left->end());
  if (left->size() == hooks->size()) return false;
  if (left->empty()) hooks = nullptr;
  else hooks = std::move(left);
  return true;
}

}  // namespace

unsigned ReplicaSet::register_pre_reduce_hook(PreReduceHook hook) {
  RAMET_CHECK(hook, "register_pre_reduce_hook", "got an empty function");
  add(pre_hooks_, last_hook_ + 1, std::move(hook));
  return ++last_hook_;
}

unsigned ReplicaSet::register_post_reduce_hook(PostReduceHook hook) {
  RAMET_CHECK(hook, "register_post_reduce_hook", "got an empty function");
  add(post_hooks_, last_hook_ + 1, std::move(hook));
  return ++last_hook_;
}

void ReplicaSet::remove_reduce_hook(unsigned hook) {
  RAMET_CHECK(remove(pre_hooks_, hook) || remove(post_hooks_, hook), "remove_reduce_hook", "got ",
              hook, ", expected a number that a registration returned");
}

// After follow(), which drops the hooks of the last step.
void ReplicaSet::hang_hooks(size_t index) {
  State::Entry& e = state_->entries[index];
  if (!e.node) return;
  e.node->set_post_hooks(post_hooks_);
  if (!pre_hooks_ || !e.bound) return;
  auto& hooks = e.node->more();
  for (uint32_t r = 0; r < static_cast<uint32_t>(size()); ++r)
    for (size_t k = 0; k < pre_hooks_->size(); ++k)
      hooks.hooks.push_back(
          {r, hooks.next_id++, [all = pre_hooks_, k, r, node = e.node](const Tensor& g) {
             return (*all)[k].second(static_cast<int>(r), node->full_name(), g);
           }});
}

}  // namespace parallel
}  // namespace nn
}  // namespace ramet
