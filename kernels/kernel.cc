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

namespace {

// Can this processor run it?
bool runs(Variant variant) {
#if defined(RAMET_ALL_VARIANTS)
  // The features of the x86-64-v3 and -v4 levels, which the compiler may use.
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

// Does this program contain it? It has all variants, or the one that the build names.
constexpr bool linked([[maybe_unused]] Variant variant) {
#if defined(RAMET_ONLY_VARIANT)
  return variant == Variant::RAMET_ONLY_VARIANT;
#else
  return true;
#endif
}

}  // namespace

bool variant_supported(Variant variant) { return linked(variant) && runs(variant); }

void set_variant(Variant variant) {
  const char* name = variant_name(variant);
  RAMET_CHECK(linked(variant), "set_variant", "this program was built without the kernel variant ",
              name);
  RAMET_CHECK(runs(variant), "set_variant", "this processor cannot run the kernel variant ", name);
  chosen_variant.store(static_cast<uint8_t>(variant));
}

uint8_t choose_variant() {
  if (const char* text = std::getenv("RAMET_ISA"); text && *text) {
    int v = 0;
    while (v < kVariants && std::strcmp(text, kNames[v]) != 0) ++v;
    RAMET_CHECK(v < kVariants, "RAMET_ISA", "got \"", text, "\", expected base, v3 or v4");
    set_variant(static_cast<Variant>(v));
  } else {
    // The best one. If the program has only one variant, that one, or an Error if it cannot run.
    Variant best = Variant::kBase;
    for (Variant v : {Variant::kV3, Variant::kV4})
      if (linked(v) && (runs(v) || !linked(Variant::kBase))) best = v;
    set_variant(best);
  }
  return chosen_variant.load();
}

}  // namespace kernels
}  // namespace ramet
