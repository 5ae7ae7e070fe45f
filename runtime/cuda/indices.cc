#include "runtime/cuda/indices.h"

#include <atomic>

namespace ramet {
namespace cuda {
namespace {
std::atomic<bool> narrow{true};
}  // namespace

void set_narrow_indices(bool enabled) { narrow.store(enabled, std::memory_order_relaxed); }
bool narrow_indices() { return narrow.load(std::memory_order_relaxed); }

}  // namespace cuda
}  // namespace ramet
