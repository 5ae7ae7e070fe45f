// The instruction-set variants that a test can run.
#pragma once
#include <iostream>
#include <vector>

#include "kernels/kernel.h"

namespace ramet {
namespace testing {

/// Lowest first. v3 and v4 give the same bits, and tests compare them. Where they are not both
/// here, the first call says what is not compared, and why.
inline const std::vector<kernels::Variant>& variants_here() {
  static const std::vector<kernels::Variant> here = [] {
    std::vector<kernels::Variant> v;
    for (int i = 0; i < kernels::kVariants; ++i)
      if (const auto one = static_cast<kernels::Variant>(i); kernels::variant_supported(one))
        v.push_back(one);
    if (v.size() < kernels::kVariants) {
      std::cout
          << "skipped: variants are not compared with those that this processor cannot run or "
             "this build leaves out (--//tools/bazel:variants); here:";
      for (kernels::Variant one : v) std::cout << ' ' << kernels::variant_name(one);
      std::cout << '\n';
    }
    return v;
  }();
  return here;
}

}  // namespace testing
}  // namespace ramet
