#include "runtime/memory/debug_memory.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/base/context.h"
#include "runtime/capture/capture.h"
#include "runtime/devices/devices.h"
#include "runtime/tensor/tensor_base.h"

using ramet::detail::tls;

namespace ramet {
namespace {

[[gnu::cold]] bool ask() {
#ifdef NDEBUG
  bool on = false;
#else
  bool on = true;
#endif
  const char* text = std::getenv("RAMET_DEBUG_MEMORY");
  if (text && *text) {
    const std::string value = text;
    RAMET_CHECK(value == "0" || value == "1", "RAMET_DEBUG_MEMORY", "got \"", value,
                "\", expected 0 or 1");
    on = value == "1";
  }
  detail::debug_memory_state.store(on ? 1 : 0, std::memory_order_relaxed);
  return on;
}

}  // namespace

namespace detail {

constinit std::atomic<int> debug_memory_state{-1};

void poison_freed(void* p, size_t bytes) { std::memset(p, 0xff, bytes); }

void check_raw_access_slowly(const TensorBase& t) {
  capture::refuse("data_ptr", "nobody sees what the program does with the memory");
  if (!debug_memory() || (tls.replica < 0 && !devices::on_worker())) return;
  const Device here(kCPU, static_cast<DeviceIndex>(tls.cpu_device));
  if (!t.is_cpu() || t.device() == here) return;
  fail("data_ptr", "raw read of another device's memory: got ", describe(t),
       " in code that runs on ", here.str(),
       tls.replica < 0 ? std::string() : " (replica " + std::to_string(tls.replica) + ")",
       ", expected a tensor of that device; to() makes a copy");
}

}  // namespace detail

bool debug_memory() {
  const int known = detail::debug_memory_state.load(std::memory_order_relaxed);
  return known < 0 ? ask() : known != 0;
}

}  // namespace ramet
