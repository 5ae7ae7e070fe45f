// NumPy's .npz files: named arrays in a zip archive.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "autograd/tensor.h"
#include "nn/module/ordered_dict.h"

namespace ramet {
namespace formats {

/// What numpy.savez() and savez_compressed() wrote, by name ("arr_0" where no name was given), in
/// the file's order. Errors name file, entry and offset: as load_npy()'s, and on an archive that is
/// damaged (each entry's checksum is compared), on entries that are no arrays, on sizes that cannot
/// be. Nothing is returned where one array is wrong.
RAMET_API OrderedDict<std::string, Tensor> load_npz(const std::string& path,
                                                    std::optional<Device> device = std::nullopt);
/// From memory; `name` stands for the file in errors.
RAMET_API OrderedDict<std::string, Tensor> load_npz(const char* data, size_t bytes,
                                                    const std::string& name = "memory",
                                                    std::optional<Device> device = std::nullopt);

/// As numpy.savez(), or with `compressed` savez_compressed(): whole or not at all, the same file
/// for the same tensors. Errors as save_npy()'s, and on an empty name.
RAMET_API void save_npz(const std::string& path, const OrderedDict<std::string, Tensor>& arrays,
                        bool compressed = false);

}  // namespace formats
}  // namespace ramet
