// Two recordings of the same step, before and after a change or on other devices: the same bits, or
// the first operation that differs.
#pragma once
#include <string>
#include <vector>

#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

struct ComparedRow {
  std::string kind;            // "operation", "gradient", "parameter".
  std::string name;            // "features.0: convolution", "fc.weight".
  Id first = -1, second = -1;  // operations or parameters; -1: only the other one has it
  // "bits": the same digests. "statistics": the same statistics. "differs". "missing". "unknown":
  // no statistics were taken.
  std::string same;
  std::string text;  // what differs, in words
};

/// Operations of one module with one name are matched in the order in which they ran, replica by
/// replica. Where the numbers of replicas differ, the comparison takes all replicas of a call
/// together. Then it uses only the statistics that follow from pieces of a batch: count, zeros,
/// NaNs, minimum and maximum. After the operations come the parameters and gradients, by name.
struct Comparison {
  std::vector<ComparedRow> rows;  // in the order of the first recording's step
  int first_difference = -1;      // into rows
  std::string text;               // one sentence
};

Comparison compare(const RecordingData& first, const RecordingData& second);

}  // namespace see
}  // namespace ramet
