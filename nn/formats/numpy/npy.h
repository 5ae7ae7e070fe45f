// NumPy's .npy files: one array each.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {
namespace formats {

/// The array in a file that numpy.save() wrote (header versions 1 to 3), row-major on `device`
/// (cpu:0 by default): C or Fortran order, either byte order, any rank, empty too. Types: bool,
/// uint8, uint16, uint32, int8 to int64, float16, float32, float64. An Error names the file, what
/// is wrong and where: other types by their names (what holds Python objects is never loaded), a
/// header that is none, sizes that the file's bytes do not fill exactly.
RAMET_API Tensor load_npy(const std::string& path, std::optional<Device> device = std::nullopt);
/// From memory; `name` stands for the file in errors.
RAMET_API Tensor load_npy(const char* data, size_t bytes, const std::string& name = "memory",
                          std::optional<Device> device = std::nullopt);

/// As numpy.save() writes it (version 1, C order), whole or not at all. The tensor may be on any
/// device and have any strides. An Error on an undefined one and on bfloat16, which NumPy does not
/// have.
RAMET_API void save_npy(const std::string& path, const Tensor& tensor);

}  // namespace formats
}  // namespace ramet
