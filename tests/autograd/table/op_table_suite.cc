// What every row goes through on the CPU.
#include "tests/autograd/table/op_table_suite.h"

#include "kernels/kernel.h"
#include "runtime/base/thread_pool.h"
#include "tests/autograd/table/op_checks.h"
#include "tests/variants.h"

namespace ramet {
namespace op_table {
namespace {

class Settings : public ::testing::EmptyTestEventListener {
  void OnTestEnd(const ::testing::TestInfo&) override {
    set_num_threads(2);
    kernels::set_variant(testing::variants_here().back());
  }
};
const bool listening = [] {
  ::testing::UnitTest::GetInstance()->listeners().Append(new Settings);
  return true;
}();

}  // namespace

TEST_P(OpTable, Complete) { check_complete(GetParam()); }
TEST_P(OpTable, Forward) { check_forward(GetParam()); }
TEST_P(OpTable, Refusals) { check_refusals(GetParam()); }
TEST_P(OpTable, Derivatives) { check_derivatives(GetParam()); }
TEST_P(OpTable, NarrowGradients) { check_narrow_gradients(GetParam()); }
TEST_P(OpTable, Strides) { check_strides(GetParam()); }
TEST_P(OpTable, Images) { check_images(GetParam()); }
TEST_P(OpTable, SpecialValues) { check_special_values(GetParam()); }
TEST_P(OpTable, ThreadsAndVariants) { check_threads_and_variants(GetParam()); }
TEST_P(OpTable, Positions) { check_positions(GetParam()); }
TEST_P(OpTable, InPlace) { check_in_place(GetParam()); }
TEST_P(OpTable, Out) { check_out(GetParam()); }
TEST_P(OpTable, Captured) { check_captured(GetParam()); }
TEST_P(OpTable, Scalars) { check_scalars(GetParam()); }

}  // namespace op_table
}  // namespace ramet
