// A recording as a page: the graph lane by lane, and what happened step by step, when, and with how
// much memory. The page is one file that loads nothing from the network.
#pragma once
#include <string>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Writes the page to a temporary name first: an Error leaves the old file. Indices in the rows
/// must be valid, as they are in everything that a Recording or read() gives.
RAMET_API void explore(const RecordingData& recording, const std::string& path);
/// Two recordings next to each other, with the result of compare().
RAMET_API void explore(const RecordingData& first, const RecordingData& second,
                       const std::string& path);

/// The page of a Recording (recording.h), which it stops.
template <class R>
auto explore(R& recording, const std::string& path) -> decltype(recording.data(), void()) {
  explore(recording.data(), path);
}

/// The same as a string.
RAMET_API std::string explorer_page(const RecordingData& recording);
RAMET_API std::string explorer_page(const RecordingData& first, const RecordingData& second);

/// The part of it that a terminal can show: devices, time, the largest of everything, findings.
RAMET_API std::string summary(const RecordingData& recording);

}  // namespace see
}  // namespace ramet
