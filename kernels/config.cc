#include "kernels/config.h"

#include "kernels/kernel.h"

namespace ramet {

std::string config() {
  namespace k = kernels;
  uint8_t chosen = k::chosen_variant.load();
  if (chosen == k::kVariants) chosen = k::choose_variant();
  std::string can;
  for (int v = 0; v < k::kVariants; ++v)
    if (k::variant_supported(static_cast<k::Variant>(v)))
      can += std::string(can.empty() ? "" : ", ") + k::variant_name(static_cast<k::Variant>(v));
  return runtime_config() + "cpu kernels: " + k::variant_name(static_cast<k::Variant>(chosen)) +
         " (can run " + can + ")\n";
}

}  // namespace ramet
