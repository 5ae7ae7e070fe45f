#include <cxxabi.h>

#include <mutex>
#include <new>

#include "autograd/grad_mode.h"
#include "nn/c/handles_internal.h"
#include "runtime/base/config.h"
#include "runtime/base/thread_pool.h"
#include "runtime/devices/generator.h"

namespace ramet::c {
namespace {

static_assert(sizeof(void*) == 8, "a handle is a slot, a generation and a kind in 64 bits");
constexpr int kKindBits = 3, kSlotBits = 29;

struct Slot {
  std::shared_ptr<Object> object;  // null: free
  uint32_t generation = 0;
  Kind kind = Kind::kTensor;
};
struct Table {
  std::mutex mutex;
  std::vector<Slot> slots;
  std::vector<uint32_t> free;
  int64_t live = 0;
};
// The table is never destroyed: handles that are left at the end of the program do no harm.
Table& table() {
  static Table* const made = new Table;
  return *made;
}

const char* name_of(unsigned kind) {
  switch (static_cast<Kind>(kind)) {
    case Kind::kTensor: return "a tensor";
    case Kind::kModule: return "a module";
    case Kind::kOptimizer: return "an optimizer";
    case Kind::kGroup: return "a group";
    case Kind::kScaler: return "a scaler";
  }
  return "something else";
}

struct Parts {
  unsigned kind;
  uint32_t slot, generation;
};
Parts parts_of(const void* handle) {
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return {static_cast<unsigned>(bits & ((1u << kKindBits) - 1)),
          static_cast<uint32_t>(bits >> kKindBits & ((1u << kSlotBits) - 1)),
          static_cast<uint32_t>(bits >> (kKindBits + kSlotBits))};
}

// Under the mutex.
Slot& slot_of(Table& t, Kind kind, const void* handle, const char* op, const char* argument) {
  const char* const expected = name_of(static_cast<unsigned>(kind));
  RAMET_CHECK(handle, op, argument, ": expected ", expected, ", got NULL");
  const Parts parts = parts_of(handle);
  const bool lives = parts.slot < t.slots.size() && t.slots[parts.slot].object &&
                     t.slots[parts.slot].generation == parts.generation &&
                     t.slots[parts.slot].kind == static_cast<Kind>(parts.kind);
  RAMET_CHECK(lives, op, argument, ": expected ", expected,
              ", got a handle that was freed, or that is none");
  RAMET_CHECK(t.slots[parts.slot].kind == kind, op, argument, ": expected ", expected, ", got ",
              name_of(parts.kind));
  return t.slots[parts.slot];
}

std::string& last_error() {
  static thread_local std::string text;
  return text;
}
// Set on a thread where an error's text could not be stored.
bool& without_text() {
  static thread_local bool is = false;
  return is;
}
thread_local uint64_t t_failures = 0;
void keep(const char* text) noexcept {
  ++t_failures;
  without_text() = false;
  try {
    last_error() = text;
  } catch (const std::bad_alloc&) { without_text() = true; }
}

}  // namespace

Object::~Object() = default;

void* add_handle(Kind kind, std::shared_ptr<Object> object) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  if (t.free.empty()) {
    RAMET_CHECK(t.slots.size() < size_t{1} << kSlotBits, "ramet", "no handle is left: got ",
                t.slots.size(), " that were not freed");
    t.slots.emplace_back();
    // Reserves memory so that freeing a handle never fails.
    if (t.free.capacity() < t.slots.size()) t.free.reserve(2 * t.slots.size());
    t.free.push_back(static_cast<uint32_t>(t.slots.size() - 1));
  }
  const uint32_t number = t.free.back();
  t.free.pop_back();
  Slot& slot = t.slots[number];
  slot.object = std::move(object);
  slot.kind = kind;
  ++t.live;
  return reinterpret_cast<void*>(uintptr_t{slot.generation} << (kKindBits + kSlotBits) |
                                 uintptr_t{number} << kKindBits | static_cast<uintptr_t>(kind));
}

std::shared_ptr<Object> find_handle(Kind kind, const void* handle, const char* op,
                                    const char* argument) {
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  return slot_of(t, kind, handle, op, argument).object;
}

void free_handle(Kind kind, const void* handle, const char* op) {
  if (!handle) return;
  std::shared_ptr<Object> object;  // destroyed outside of the lock
  Table& t = table();
  const std::lock_guard<std::mutex> lock(t.mutex);
  Slot& slot = slot_of(t, kind, handle, op, "handle");
  object.swap(slot.object);
  // A slot that has used up all its generations stays empty.
  if (++slot.generation != 0) t.free.push_back(parts_of(handle).slot);
  --t.live;
}

uint64_t failures() { return t_failures; }

int failed() {
  try {
    throw;
  } catch (abi::__forced_unwind&) { throw; } catch (const OutOfMemoryError& e) {
    keep(e.what());
    return RAMET_OUT_OF_MEMORY;
  } catch (const NotImplementedError& e) {
    keep(e.what());
    return RAMET_NOT_IMPLEMENTED;
  } catch (const Error& e) {
    keep(e.what());
    return RAMET_INVALID;
  } catch (const std::bad_alloc&) {
    keep("[ramet] out of memory");
    return RAMET_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    keep(e.what());
    return RAMET_INTERNAL;
  } catch (...) {
    keep("[ramet] an exception without a text");
    return RAMET_INTERNAL;
  }
}

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

const char* ramet_last_error(void) {
  return without_text() ? "[ramet] out of memory" : last_error().c_str();
}
int ramet_fail(const char* message) {
  keep(message ? message : "");
  return RAMET_INVALID;
}
int ramet_c_version(void) { return RAMET_C_VERSION; }
const char* ramet_version(void) { return version(); }
int ramet_check_version(int header) {
  return status_of(__func__, [&](const char* op) {
    RAMET_CHECK(header >= 1 && header <= RAMET_C_VERSION, op,
                "the program was compiled with another version of ramet/c.h: got ", header,
                ", expected 1 to ", RAMET_C_VERSION);
  });
}
int ramet_manual_seed(uint64_t seed) {
  return status_of(__func__, [&](const char*) { manual_seed(seed); });
}
int ramet_set_num_threads(int threads) {
  return status_of(__func__, [&](const char* op) {
    RAMET_CHECK(threads >= 1, op, "threads: expected 1 or more, got ", threads);
    set_num_threads(threads);
  });
}
int ramet_get_num_threads(int* threads) {
  return status_of(__func__,
                   [&](const char* op) { there(threads, op, "threads") = get_num_threads(); });
}
int ramet_set_grad_enabled(int on, int* before) {
  return status_of(__func__, [&](const char*) {
    if (before) *before = GradMode::is_enabled();
    GradMode::set_enabled(on != 0);
  });
}
int ramet_live_handles(int64_t* count) {
  return status_of(__func__, [&](const char* op) {
    int64_t& to = there(count, op, "count");
    Table& t = table();
    const std::lock_guard<std::mutex> lock(t.mutex);
    to = t.live;
  });
}

}  // extern "C"
