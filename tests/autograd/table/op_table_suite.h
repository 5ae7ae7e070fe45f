// Makes tests of one file's rows: OpTable.<Check>/<row>. Each file of a group has functions that
// add rows, and ends with RAMET_OP_TABLE(their names). The checks are linked with it:
// op_table_suite.cc for the CPU, gpu/op_gpu_suite.cc for GPUs, as two programs.
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

inline std::vector<Row> rows_of(std::initializer_list<void (*)(Table&)> adders) {
  Table t;
  for (const auto add : adders) add(t);
  return t.rows();
}

}  // namespace op_table
}  // namespace ramet

#define RAMET_OP_TABLE(...) \
  INSTANTIATE_TEST_SUITE_P(Rows, OpTable, ::testing::ValuesIn(rows_of({__VA_ARGS__})), name_of)
