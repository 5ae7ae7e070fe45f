// Which code a kernel chooses for a dtype.
#define RAMET_VARIANT here
#include "kernels/compute_type.h"

#include <gtest/gtest.h>

#include <type_traits>

#include "kernels/compute_bytes.h"
#include "kernels/util.h"

namespace ramet::kernels::here {
namespace {

constexpr ScalarType kAll[] = {kBool,   kUInt8,  kInt8, kInt16,    kInt32, kInt64,
                               kUInt16, kUInt32, kHalf, kBFloat16, kFloat, kDouble};
static_assert(sizeof kAll / sizeof *kAll == kScalarTypes);

const auto tag_of = [](auto t) { return ComputeTag<decltype(t)>::value; };

TEST(ComputeType, OfEachDtype) {
  for (ScalarType t : kAll) {
    SCOPED_TRACE(name_of(t));
    const ScalarType expected = t == kDouble                                  ? kDouble
                                : t == kFloat || t == kHalf || t == kBFloat16 ? kFloat
                                                                              : kLong;
    EXPECT_EQ(by_compute_type(t, tag_of), expected);
    EXPECT_EQ(compute_type_of(t), expected);
    EXPECT_EQ(compute_type(t), expected) << "what fronts take it to be";
    EXPECT_EQ(bytes_of(t), static_cast<int64_t>(item_size(t)));
    if (!is_floating(t)) continue;
    EXPECT_EQ(is_converted(t), expected != t);
    EXPECT_EQ(compute_bytes(t), bytes_of(expected));
  }
}

TEST(ComputeType, OfThoseThatNothingConverts) {
  for (ScalarType t : kAll) {
    SCOPED_TRACE(name_of(t));
    ScalarType got = ScalarType::Undefined;
    const auto choose = [&] {
      by_dtype<float, int64_t>(t, [&](auto x) { got = tag_of(x); });
      return got;
    };
    if (t == kFloat || t == kInt64) EXPECT_EQ(choose(), t);
    else EXPECT_DEATH(choose(), "");
  }
}

TEST(ComputeType, FloatingCodeIsNotTakenForIntegers) {
  for (ScalarType t : kAll) {
    SCOPED_TRACE(name_of(t));
    if (is_floating(t)) EXPECT_EQ(by_floating_type(t, tag_of), compute_type(t));
    else EXPECT_DEATH(by_floating_type(t, tag_of), "");
  }
  EXPECT_DEATH(by_compute_type(ScalarType::Undefined, tag_of), "");
}

}  // namespace
}  // namespace ramet::kernels::here
