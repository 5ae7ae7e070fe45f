// Two recordings of the same step, before and after a change or on other devices: the same bits, or
// the first operation that differs.
#pragma once
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

struct ComparedRow {
  std::string kind;            // "operation", "gradient", "parameter"
  std::string name;            // "features.0: convolution", "fc.weight"
  Id first = -1, second = -1;  // operations or parameters; -1: only the other one has it
  // "bits" the same by their digests; "statistics" the same as far as these say; "differs";
  // "missing"; "unknown" no statistics were taken
  std::string same;
  std::string text;  // what differs, in words
};

/// Operations of one module with one name are matched in the order in which they ran, replica by
/// replica. Where the numbers of replicas differ, all of a call's replicas are taken together: what
/// pieces of a batch tell about it is their count, zeros, NaNs, minimum and maximum. Then the
/// parameters and gradients by name.
struct Comparison {
  std::vector<ComparedRow> rows;  // in the order of the first recording's step
  int first_difference = -1;      // into rows
  std::string text;               // one sentence
};

Comparison compare(const RecordingData& first, const RecordingData& second);

}  // namespace see
}  // namespace ramet
