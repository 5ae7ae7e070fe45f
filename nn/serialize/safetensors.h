// The safetensors format: named tensors in one file that any tool can read. Readers execute
// nothing.
//
// Layout (from the format's description). First 8 bytes with the header's length N, little-endian,
// then N bytes of JSON:
//   {"__metadata__": {"key": "text", ...}, "name": {"dtype": "F32", "shape": [2, 3],
//       "data_offsets": [begin, end]}, ...}
//
// The JSON is padded with spaces. Then come the tensors' bytes, row-major and little-endian.
// Offsets count from the end of the header. The tensors cover the data area without gap or overlap.
//
// This library adds "xxh64" to the metadata, 16 hexadecimal digits. It is XXH64 of the data area
// followed by the header without that entry. The header is hashed as the shortest JSON with sorted
// keys, and always with "__metadata__". Loading a file checks its "xxh64", if it has one. A program
// that changes such a file leaves the entry out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace serialize {

/// What a safetensors file holds: named tensors and texts.
struct Safetensors {
  std::vector<std::pair<std::string, Tensor>> tensors;  // as in the file's header; names are unique
  std::map<std::string, std::string> metadata;          // without the checksum

  /// The tensor of that name; null where there is none.
  RAMET_API const Tensor* find(const std::string& name) const;
};

/// Writes bytes somewhere and returns how many it wrote; fewer are an Error.
using WriteFunction = std::function<size_t(const void* data, size_t bytes)>;

/// Writes the file whole or not at all (a crash leaves the old one). Tensors may be on any device,
/// be non-contiguous or share memory; each is written in full. They are ordered by element size,
/// then by name, so that all are aligned. The values are read twice: for the checksum, and for
/// writing. An Error on undefined tensors, on a name twice, on the name "__metadata__" and on
/// metadata under "xxh64".
RAMET_API void save_safetensors(const std::string& path, const Safetensors& content);
RAMET_API void save_safetensors(const WriteFunction& write, const Safetensors& content);

/// Reads the whole file; tensors are on `device` (cpu:0 by default). It is strict; an Error names
/// the file and the entry. Errors in the header are invalid JSON or no object, a name twice, and an
/// element type that this library lacks. A shape that disagrees with the number of bytes is one,
/// too. Errors in the data are offsets outside the file, overlaps, gaps, missing or extra bytes,
/// and a wrong checksum, where there is one.
RAMET_API Safetensors load_safetensors(const std::string& path,
                                       std::optional<Device> device = std::nullopt);
/// From memory; `name` stands for the file in error texts.
RAMET_API Safetensors load_safetensors(const char* data, size_t bytes,
                                       const std::string& name = "memory",
                                       std::optional<Device> device = std::nullopt);

/// The same, but tensors on the CPU are the file's own pages, shared with other processes that map
/// it. So loading is immediate, regardless of the file's size. A program's writes to a tensor stay
/// its own (copied page by page) and never reach the file. Tensors with misaligned elements are
/// copied (the header's length is then no multiple of 8). The checksum is compared where there is
/// one and `verify` asks for it, which reads every page. A program that overwrites or truncates the
/// file while it is mapped changes the tensors or kills the reader. Files that save_safetensors
/// replaces are safe.
RAMET_API Safetensors map_safetensors(const std::string& path, bool verify = false);

/// Loads a model in several files. `path` is the JSON ("model.safetensors.index.json"). Its
/// "weight_map" names the file of each tensor, in the same folder. Its "metadata" describes the
/// whole (returned as texts; numbers as JSON writes them). Tensors come in the order of their
/// names. First all headers are read and compared with the map. An Error where a file is missing or
/// its name is no plain name (another folder). Also where a file lacks a tensor or has one that the
/// map does not name.
RAMET_API Safetensors load_safetensors_index(const std::string& path,
                                             std::optional<Device> device = std::nullopt);
/// By map_safetensors.
RAMET_API Safetensors map_safetensors_index(const std::string& path, bool verify = false);

/// Writes `content` as such files of at most `most` bytes of tensors each (a larger tensor has a
/// file to itself). The files are "NAME-00001-of-00003.safetensors" and so on, and last
/// "NAME.safetensors.index.json" in the same folder, which is `path`. Each file is written whole or
/// not at all; a crash between two of them may leave new ones under the old index.
RAMET_API void save_safetensors_index(const std::string& path, const Safetensors& content,
                                      uint64_t most);

}  // namespace serialize
}  // namespace ramet
