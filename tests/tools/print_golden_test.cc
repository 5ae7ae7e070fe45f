// Random tensors print as LibTorch prints them: its texts' fingerprints are checked in. The draws
// are those of tools/compare, which compares more of them where LibTorch is installed.
#include "tests/tools/print_golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <sstream>

#include "ramet.h"
#include "tools/compare/print_draw.h"

namespace ramet {
namespace {

// As compare::PrintType numbers them.
constexpr ScalarType kTypes[] = {kBool, kByte, kChar,     kShort, kInt,
                                 kLong, kHalf, kBFloat16, kFloat, kDouble};
static_assert(std::size(kTypes) == compare::kPrintTypes);

TEST(PrintGolden, RandomTensorsAreLibTorchs) {
  int differ = 0;
  for (size_t n = 0; n < std::size(kPrintGolden) && differ < 3; ++n) {
    compare::Source source(compare::kPrintSeed, "print", n);
    const compare::PrintDraw d = compare::draw_print(source);
    const ScalarType type = kTypes[d.type];
    const TensorBase memory = TensorBase::empty(
        {static_cast<int64_t>(d.memory.size() / item_size(type))}, type, Device(kCPU, 0));
    std::memcpy(memory.ptr(), d.memory.data(), d.memory.size());
    std::ostringstream out;
    print(out, TensorBase(memory.view_impl(d.sizes, d.strides, 0)), d.line_size);
    if (compare::fingerprint(out.str()) == kPrintGolden[n]) continue;
    ++differ;
    ADD_FAILURE() << "draw " << n << ", a line of " << d.line_size << ":\n"
                  << out.str() << "\nLibTorch's: ./tools/compare_torch --seed "
                  << compare::kPrintSeed << " --only print --draws 1 --first " << n;
  }
}

TEST(PrintGolden, WhatATensorPrintsOfItself) {
  const Tensor x = ones({2, 3}).requires_grad_();
  testing::internal::CaptureStderr();
  x.print();
  zeros({}, kLong).print();
  Tensor().print();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "[CPUFloatType [2, 3]]\n[CPULongType []]\n[UndefinedTensor]\n");
  std::ostringstream text;
  text << x.options() << ' ' << x.toString() << ' ' << Tensor().toString() << ' '
       << toString(x.scalar_type());
  EXPECT_EQ(text.str(),
            "TensorOptions(dtype=float, device=cpu, layout=Strided, requires_grad=false (default), "
            "pinned_memory=false (default), memory_format=(nullopt)) CPUFloatType UndefinedType "
            "Float");
}

}  // namespace
}  // namespace ramet
