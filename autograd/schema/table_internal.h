// The parts of the table of operators.
#pragma once
#include <vector>

#include "autograd/schema/arguments_internal.h"

namespace ramet::script {

/// The rows of autograd/ops, by folders:
void add_rows_of_layers(std::vector<Row>& rows);
void add_rows_of_pointwise(std::vector<Row>& rows);
void add_rows_of_shape(std::vector<Row>& rows);

/// Lines of tensor functions. A name that has one has no rows:
Lines lines_of_attention();
Lines lines_of_backward();
Lines lines_of_core();
Lines lines_of_grids();
Lines lines_of_layers();
Lines lines_of_make();
Lines lines_of_more();
Lines lines_of_tensors();

/// Lines in addition to rows of the same name:
Lines lines_of_dicts();
Lines lines_of_lists();
Lines lines_of_numbers();
Lines lines_of_programs();
Lines lines_of_strings();

}  // namespace ramet::script
