// Writes tests/tools/print_golden.h: fingerprints of what LibTorch prints for the first draws of
// print_draw.h. No part of any build; compiled by hand against LibTorch (-ltorch_cpu -lc10) where
// the draws or LibTorch's habits change, from the root of the repository:
//
//   print_golden > tests/tools/print_golden.h
#include <torch/torch.h>
#include <torch/version.h>

#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "tools/compare/print_draw.h"

int main() {
  constexpr int kDraws = 2400;
  const at::ScalarType types[] = {at::kBool, at::kByte, at::kChar,     at::kShort, at::kInt,
                                  at::kLong, at::kHalf, at::kBFloat16, at::kFloat, at::kDouble};
  std::printf(
      "// Fingerprints of LibTorch %s's texts, one for each draw of tools/compare/print_draw.h;\n"
      "// written by tools/compare/print_golden.cc.\n"
      "#pragma once\n#include <cstdint>\n\nnamespace ramet {\n\n"
      "// clang-format off\ninline constexpr uint32_t kPrintGolden[] = {\n",
      TORCH_VERSION);
  for (int n = 0; n < kDraws; ++n) {
    compare::Source source(compare::kPrintSeed, "print", static_cast<uint64_t>(n));
    compare::PrintDraw d = compare::draw_print(source);
    at::Tensor x = at::from_blob(d.memory.data(), d.sizes, d.strides, types[d.type]);
    if (d.requires_grad) x.requires_grad_();
    std::ostringstream text;
    at::print(text, x, d.line_size);
    std::printf("%s0x%08" PRIx32 ",%s", n % 8 ? " " : "    ", compare::fingerprint(text.str()),
                n % 8 == 7 ? "\n" : "");
  }
  std::printf("};\n// clang-format on\n\n}  // namespace ramet\n");
}
