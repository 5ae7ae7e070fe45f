// The choice of the CPU variant.
#include "kernels/kernel.h"

#include <cstdlib>
#include <cstring>

namespace ramet {
namespace kernels {

constinit std::atomic<uint8_t> chosen_variant{kVariants};

namespace {
constexpr const char* kNames[kVariants] = {"base", "v3", "v4"};
}  // namespace

const char* variant_name(Variant variant) { return kNames[static_cast<int>(variant)]; }

bool variant_supported(Variant variant) {
#if defined(RAMET_ALL_VARIANTS)
  // What the x86-64-v3 and -v4 levels promise and the compiler may use.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  return variant == Variant::kBase || (variant == Variant::kV3 ? v3 : v4);
#else
  return variant == Variant::kBase;
#endif
}

void set_variant(Variant variant) {
  RAMET_CHECK(variant_supported(variant), "set_variant",
              "this processor cannot run the kernel variant ", kNames[static_cast<int>(variant)]);
  chosen_variant.store(static_cast<uint8_t>(variant));
}

uint8_t choose_variant() {
  if (const char* text = std::getenv("RAMET_ISA"); text && *text) {
    int v = 0;
    while (v < kVariants && std::strcmp(text, kNames[v]) != 0) ++v;
    RAMET_CHECK(v < kVariants, "RAMET_ISA", "got \"", text, "\", expected base, v3 or v4");
    set_variant(static_cast<Variant>(v));
  } else {
    const Variant best = variant_supported(Variant::kV4)   ? Variant::kV4
                         : variant_supported(Variant::kV3) ? Variant::kV3
                                                           : Variant::kBase;
    chosen_variant.store(static_cast<uint8_t>(best));
  }
  return chosen_variant.load();
}

}  // namespace kernels
}  // namespace ramet
