// What an archive's entries need, unpacked.
#pragma once
#include "nn/formats/zip/zip_internal.h"
#include "runtime/base/error.h"

namespace ramet::script {

/// An Error where all entries together are larger than `most` bytes. 0: any size.
inline void check_sizes(const formats::detail::ZipReader& zip, int64_t most) {
  uint64_t all = 0;
  for (const auto& e : zip.entries()) {
    if (__builtin_add_overflow(all, e.bytes, &all)) all = UINT64_MAX;
    RAMET_CHECK(most == 0 || all <= static_cast<uint64_t>(most), zip.op(), "\"", zip.file(),
                "\": got entries of more than ", most, " bytes unpacked, expected at most that");
  }
}

}  // namespace ramet::script
