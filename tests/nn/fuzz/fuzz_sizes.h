// Rows of random sizes (tests/draw_sizes.h): modules' options, initialisers, samplers and loaders.
#pragma once
#include <vector>

#include "tests/draw_sizes.h"

namespace ramet {
namespace fuzz {

std::vector<SizeRow> size_rows_of_modules();

}  // namespace fuzz
}  // namespace ramet
