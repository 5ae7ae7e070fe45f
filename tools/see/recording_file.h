// Files of recordings: JSON, compressed by gzip. tools/docs/recording.md says what stands in them.
#pragma once
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

/// Writes the file, whole or not at all.
RAMET_API void write(const RecordingData& data, const std::string& path);
/// Reads a file that write() wrote. An Error, "[see] PATH: what: got X, expected Y", where the file
/// is no recording, has a newer version, or is cut short or damaged. Also where an index leads
/// nowhere: a caller may use the result's indices without checks. Unknown members are skipped.
RAMET_API RecordingData read(const std::string& path);

/// The text in the file; one line.
RAMET_API std::string to_json(const RecordingData& data);
/// The reverse. `name` stands for PATH in errors.
RAMET_API RecordingData from_json(const std::string& text, const std::string& name);

/// Joins the recordings of several ranks. Rank r's rows come after those of the ranks before it,
/// and its devices get `rank` r. Times count from the earliest beginning of all, by the clocks of
/// the ranks' machines. Times of one machine are right; those of several are as exact as their
/// clocks. An Error where one recording already has several ranks.
RAMET_API RecordingData merge(const std::vector<RecordingData>& ranks);

namespace detail {
/// By gzip.
std::string compressed(const std::string& text);
}  // namespace detail

}  // namespace see
}  // namespace ramet
