// NumPy's .npz files: named arrays in a zip archive.
#pragma once
#include <cstddef>
#include <optional>
#include <string>

#include "autograd/tensor.h"
#include "nn/module/ordered_dict.h"

namespace ramet {
namespace formats {

/// Loads the arrays that numpy.savez() or savez_compressed() wrote, by name ("arr_0" where no name
/// was given), in the file's order. Errors are those of load_npy(), and name file, entry and
/// offset. Also an Error: a damaged archive (each entry's checksum is compared), an entry that is
/// no array, impossible sizes. One bad array makes the whole call fail.
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
