#include "tools/see/recording_data.h"

namespace ramet {
namespace see {

// Compares member for member. Not in the header, which C++17 programs include, too.
bool Statistics::operator==(const Statistics&) const = default;
bool SourceRow::operator==(const SourceRow&) const = default;
bool DeviceRow::operator==(const DeviceRow&) const = default;
bool ModuleRow::operator==(const ModuleRow&) const = default;
bool TensorRow::operator==(const TensorRow&) const = default;
bool OperationRow::Saved::operator==(const Saved&) const = default;
bool OperationRow::operator==(const OperationRow&) const = default;
bool NodeRow::Edge::operator==(const Edge&) const = default;
bool NodeRow::operator==(const NodeRow&) const = default;
bool KernelRow::operator==(const KernelRow&) const = default;
bool MovementRow::operator==(const MovementRow&) const = default;
bool BucketRow::operator==(const BucketRow&) const = default;
bool EventRow::operator==(const EventRow&) const = default;
bool ParameterRow::operator==(const ParameterRow&) const = default;
bool BlockRow::operator==(const BlockRow&) const = default;
bool MemoryRow::operator==(const MemoryRow&) const = default;
bool FindingRow::operator==(const FindingRow&) const = default;
bool RecordingData::operator==(const RecordingData&) const = default;

}  // namespace see
}  // namespace ramet
