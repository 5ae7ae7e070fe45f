// Makes tests of one file's rows: OpTable.<Check>/<row>. Each file of a group defines its rows and
// ends with RAMET_OP_TABLE(rows()). The checks are linked with it: op_table_suite.cc for the CPU,
// gpu/op_gpu_suite.cc for GPUs, as two programs.
#pragma once
#include <gtest/gtest.h>

#include <ostream>

#include "tests/autograd/table/op_table.h"

namespace ramet {
namespace op_table {

/// What GoogleTest prints of a row.
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class OpTable : public ::testing::TestWithParam<Row> {};

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
