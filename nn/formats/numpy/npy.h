// NumPy's .npy files: one array each.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "autograd/tensor.h"

namespace ramet {
namespace formats {

/// Loads the array of a file that numpy.save() wrote (header versions 1 to 3), row-major on
/// `device` (cpu:0 by default). It reads C and Fortran order, either byte order and any rank; the
/// array may be empty. Types: bool, uint8, uint16, uint32, int8 to int64, float16, float32,
/// float64. An Error names the file, what is wrong and where. It reports another type by its name
/// (Python objects are never loaded), an invalid header, or sizes that the file's bytes do not fill
/// exactly.
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
