// IDX files: the format of MNIST and its descendants, plain or gzipped.
//
// Layout (from the MNIST database's page), in this order:
// - two zero bytes;
// - one byte for the element type: 0x08 uint8, 0x09 int8, 0x0B int16, 0x0C int32, 0x0D float, 0x0E
//   double;
// - one byte for the rank;
// - one big-endian uint32 per extent;
// - the elements row by row, big-endian.
#pragma once
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace ramet {
namespace data {

/// What the header of an IDX file says.
struct IdxHeader {
  ScalarType dtype = kByte;    // of the elements
  std::vector<int64_t> sizes;  // as the file says
};

/// Reads the header only. Errors as read_idx.
RAMET_API IdxHeader read_idx_header(const std::string& path);

/// Returns the whole file as a tensor on cpu:0 with the file's sizes and element type. The first
/// bytes of the file, not its name, say whether it is gzipped. An Error names the file and what is
/// wrong. The file may be missing, unreadable or not an IDX file, or its element type unknown. It
/// may have fewer or more bytes than the header announces, or damaged compressed data.
RAMET_API Tensor read_idx(const std::string& path);

/// `folder`/`name`, or `folder`/`name`.gz where only that exists. An Error naming both where
/// neither does.
RAMET_API std::string find_idx(const std::string& folder, const std::string& name);

/// Writes a contiguous CPU tensor of one of the six element types (for tests and for preparing
/// data). Gzipped where the name ends in ".gz". The file appears whole or not at all.
RAMET_API void write_idx(const std::string& path, const Tensor& tensor);

}  // namespace data
}  // namespace ramet
