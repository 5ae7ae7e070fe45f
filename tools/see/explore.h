// A recording as a page: the graph lane by lane, what happened step by step, when and with how much
// memory. One file that asks the network for nothing.
#pragma once
#include <string>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Writes the page. It goes to a temporary name first: an Error leaves what was there. Indices of
/// the rows lead somewhere, as in all that a Recording or read() gives.
RAMET_API void explore(const RecordingData& recording, const std::string& path);
/// Two recordings side by side, with what compare() says about them.
RAMET_API void explore(const RecordingData& first, const RecordingData& second,
                       const std::string& path);

/// Of a Recording (recording.h), which it stops.
template <class R>
auto explore(R& recording, const std::string& path) -> decltype(recording.data(), void()) {
  explore(recording.data(), path);
}

/// The same as a string.
RAMET_API std::string explorer_page(const RecordingData& recording);
RAMET_API std::string explorer_page(const RecordingData& first, const RecordingData& second);

/// What a terminal can show of it: devices, time, the largest of everything, findings.
RAMET_API std::string summary(const RecordingData& recording);

}  // namespace see
}  // namespace ramet
