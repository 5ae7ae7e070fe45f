// Texts about values do not depend on the program's locale.
#include "tests/runtime/foreign_locale.h"

#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "tools/see/operation_name.h"
#include "tools/see/value_text.h"

namespace ramet::see {
namespace {

TEST(ForeignLocale, ValuesAreWrittenAsEver) {
  const ForeignLocale locale;
  EXPECT_EQ(value_text(tensor({1.5f, -0.25f})), "float32[2] {1.5, -0.25}");
  EXPECT_EQ(value_text(full({1234}, 0.25)), "float32[1234] from 0.25 to 0.25, mean 0.25");
  EXPECT_EQ(operation_name("InstanceNormBackward0"), "instance_norm");
}

}  // namespace
}  // namespace ramet::see
