// Makes tests of one group of rows: OpTable/<Check>.<row>. A test file defines its rows and ends
// with RAMET_OP_TABLE(rows()).
#pragma once
#include <gtest/gtest.h>

#include <ostream>

#include "kernels/kernel.h"
#include "runtime/thread_pool.h"
#include "tests/autograd/op_checks.h"

namespace ramet {
namespace op_table {

/// What GoogleTest prints of a row.
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class OpTable : public ::testing::TestWithParam<Row> {
 protected:
  void TearDown() override {
    set_num_threads(2);
    for (kernels::Variant v :
         {kernels::Variant::kBase, kernels::Variant::kV3, kernels::Variant::kV4})
      if (kernels::variant_supported(v)) kernels::set_variant(v);
  }
};

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
TEST_P(OpTable, Gpu) { check_gpu(GetParam()); }
TEST_P(OpTable, Out) { check_out(GetParam()); }

inline std::string name_of(const ::testing::TestParamInfo<Row>& info) {
  std::string name = info.param.name;
  for (char& c : name)
    if (c == '.') c = '_';
  return name;
}

}  // namespace op_table
}  // namespace ramet

#define RAMET_OP_TABLE(rows) \
  INSTANTIATE_TEST_SUITE_P(Rows, OpTable, ::testing::ValuesIn(rows), name_of)
