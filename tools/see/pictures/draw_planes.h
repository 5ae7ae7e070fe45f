// Matrices, images and filters as pictures.
#pragma once
#include <string>

#include "tools/see/pictures/picture.h"
#include "tools/see/pictures/planes.h"

namespace ramet {
namespace see {

/// The file's bytes, for a tensor and options that kind_of and check_options have seen.
std::string draw_planes(const Tensor& x, Kind kind, const ShowOptions& options, Format format);

}  // namespace see
}  // namespace ramet
