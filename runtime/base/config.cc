#include "runtime/base/config.h"

#include <sstream>

#include "runtime/base/device.h"
#include "runtime/base/thread_pool.h"
#include "runtime/memory/debug_memory.h"
#include "runtime/memory/pool.h"

namespace ramet {
namespace {

const char* compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

const char* processor() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

}  // namespace

const char* version() { return RAMET_VERSION; }

std::string runtime_config() {
  auto out = detail::classic<std::ostringstream>();
  out << "ramet: " << version() << "\n"
      << "compiler: " << compiler() << "\n"
      << "processor: " << processor() << "\n"
#ifdef NDEBUG
      << "checks of the C library's assert: off\n"
#else
      << "checks of the C library's assert: on\n"
#endif
      << "memory pools: "
      << (pool::kPassThrough         ? "off (sanitizer)"
          : pool::failures_enabled() ? "off (planned failures)"
                                     : "on")
      << "\n"
      << "memory checks: " << (debug_memory() ? "on" : "off") << "\n"
      << "threads: " << get_num_threads() << "\n"
      << "parallel grain: " << parallel_grain() << " bytes\n"
      << "cpu devices: " << cpu_device_count() << "\n";
  return out.str();
}

}  // namespace ramet
