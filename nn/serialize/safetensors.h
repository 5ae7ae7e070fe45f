// The safetensors format: named tensors in one file that any tool can read and no reader executes.
//
// Layout (from the format's description): 8 bytes with the header's length N, little-endian; N
// bytes of JSON
//   {"__metadata__": {"key": "text", ...}, "name": {"dtype": "F32", "shape": [2, 3],
//       "data_offsets": [begin, end]}, ...}
// padded with spaces; then the tensors' bytes, row-major and little-endian. Offsets count from the
// end of the header. The tensors cover the data area without gap or overlap.
//
// This library adds to the metadata "xxh64", 16 hexadecimal digits: XXH64 of the data area followed
// by the header without that entry as the shortest JSON with sorted keys (and "__metadata__" in any
// case). A file that has it is checked when it is loaded. A program that changes such a file leaves
// the entry out.
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

/// Writes the file whole or not at all (a crash leaves the old one). Tensors may live on any
/// device, be non-contiguous or share memory; each is written in full. Ordered by element size,
/// then by name, so that all are aligned. The values are read twice: for the checksum, and to be
/// written. An Error on undefined tensors, on a name twice, on the name "__metadata__" and on
/// metadata under "xxh64".
RAMET_API void save_safetensors(const std::string& path, const Safetensors& content);
RAMET_API void save_safetensors(const WriteFunction& write, const Safetensors& content);

/// Reads the whole file; tensors are on `device` (cpu:0 by default). Strict: an Error that names
/// the file and the entry on a header that is no valid JSON object, a name twice, an element type
/// that this library does not have, a shape that disagrees with the number of bytes, offsets
/// outside the file, overlaps, gaps, missing or extra bytes, and content that does not match the
/// checksum, where there is one.
RAMET_API Safetensors load_safetensors(const std::string& path,
                                       std::optional<Device> device = std::nullopt);
/// From memory; `name` stands for the file in error texts.
RAMET_API Safetensors load_safetensors(const char* data, size_t bytes,
                                       const std::string& name = "memory",
                                       std::optional<Device> device = std::nullopt);

/// The same, whose tensors on the CPU are the file's own pages: at once, whatever its size, and
/// shared with other processes that do so. What a program writes into a tensor is its own (copied
/// page by page) and never reaches the file. A tensor whose bytes do not lie where its elements may
/// (a header whose length is no multiple of 8) is copied. The checksum is compared where there is
/// one and `verify` asks for it, which reads every page. Whoever writes into the file meanwhile, or
/// cuts it, changes or kills the reader: files that save_safetensors replaces are safe.
RAMET_API Safetensors map_safetensors(const std::string& path, bool verify = false);

/// A model in several files: `path` is the JSON ("model.safetensors.index.json") whose "weight_map"
/// says which file beside it each tensor is in, and whose "metadata" says something of the whole
/// (here as texts; numbers as JSON writes them). Tensors come in the order of their names. All
/// headers are read and compared with the map first: an Error on a file that is missing, that is
/// no plain name (another folder), that lacks a tensor or has one the map does not name.
RAMET_API Safetensors load_safetensors_index(const std::string& path,
                                             std::optional<Device> device = std::nullopt);
/// By map_safetensors.
RAMET_API Safetensors map_safetensors_index(const std::string& path, bool verify = false);

/// Writes `content` as such files of at most `most` bytes of tensors each (one tensor more than
/// that has a file to itself): "NAME-00001-of-00003.safetensors" and, last,
/// "NAME.safetensors.index.json", beside each other, where `path` is the latter. Each is written
/// whole or not at all; a crash between two of them may leave new ones under the old index.
RAMET_API void save_safetensors_index(const std::string& path, const Safetensors& content,
                                      uint64_t most);

}  // namespace serialize
}  // namespace ramet
