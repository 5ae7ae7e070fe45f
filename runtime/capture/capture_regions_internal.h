// How data-parallel forward passes report to a capture: Note [Capture] in
// runtime/capture/capture.h. For threads that make one.
#pragma once
#include <cstdint>

#include "runtime/devices/generator.h"

namespace ramet {
namespace capture {

/// A region of random numbers begins at `first` of `from` (Note [Random numbers] in generator.h).
void region_opened(const Generator& from, GeneratorState first);
/// One of its shards, or a region inside it, has given out `key`.
void region_reserved(const PhiloxKey& key);
/// Its shards have drawn numbers in `taken` operations.
void region_closed(uint64_t taken);

}  // namespace capture
}  // namespace ramet
