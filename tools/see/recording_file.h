// Files of recordings: JSON, compressed by gzip. tools/docs/recording.md says what stands in them.
#pragma once
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Writes the file, whole or not at all.
RAMET_API void write(const RecordingData& data, const std::string& path);
/// What write() wrote. An Error, "[see] PATH: what: got X, expected Y", for what is no recording,
/// of a newer version, cut short or damaged, and where an index leads nowhere: what comes back may
/// be used without a look at them. Members that are not known are passed over.
RAMET_API RecordingData read(const std::string& path);

/// The text in the file; one line.
RAMET_API std::string to_json(const RecordingData& data);
/// The reverse. `name` stands for PATH in errors.
RAMET_API RecordingData from_json(const std::string& text, const std::string& name);

/// The recordings of several ranks as one. Rank r's rows come after those of the ranks before it,
/// its devices get `rank` r, and its times count from the earliest beginning of all, by the clocks
/// of the ranks' machines: those of one machine are right, others as well as their clocks are set.
/// An Error where one is itself of several ranks.
RAMET_API RecordingData merge(const std::vector<RecordingData>& ranks);

namespace detail {
/// By gzip.
std::string compressed(const std::string& text);
}  // namespace detail

}  // namespace see
}  // namespace ramet
