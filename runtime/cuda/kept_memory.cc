#include "runtime/cuda/kept_memory.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/device_state.h"

namespace ramet {
namespace cuda {
namespace {

using Questions = std::vector<std::function<bool()>>;
struct Kept {
  std::mutex mutex;
  std::map<int, Questions> until;  // by GPU
};
Kept& kept() {  // never destroyed: see device_state.cc
  static auto* k = new Kept;
  return *k;
}

}  // namespace

void keep_memory_until(int card, std::function<bool()> ended) {
  const std::lock_guard lock(kept().mutex);
  kept().until[card].push_back(std::move(ended));
}

// An answer may call CUDA, so no question is asked under the lock.
bool keeps_memory(int card) {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (const DeviceState* state = existing_state(k);
        state && state->card == card && state->keeps_cached_memory())
      return true;
  Questions asked;
  {
    const std::lock_guard lock(kept().mutex);
    if (const auto found = kept().until.find(card); found != kept().until.end())
      asked = found->second;
  }
  return std::any_of(asked.begin(), asked.end(), [](const auto& ended) { return !ended(); });
}

bool any_card_keeps_memory() {
  for (int k = 0; k < kMaxDevicesPerType; ++k)
    if (const DeviceState* state = existing_state(k); state && keeps_memory(state->card))
      return true;
  return false;
}

void forget_kept_memory() {
  std::map<int, Questions> gone;
  const std::lock_guard lock(kept().mutex);
  gone.swap(kept().until);
}

}  // namespace cuda
}  // namespace ramet
