// What the backends of process groups can do: ProcessGroup::caps(), backend_caps().
#pragma once
#include <string>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace distributed {

/// What one backend can do. Operations refuse by the same table: an Error before any rank is
/// waited for.
class RAMET_API BackendCaps {
 public:
  /// "inproc", "gloo" or "nccl".
  const char* backend() const { return backend_; }
  /// Empty, or why this process cannot use it: NCCL is not there, or too old.
  std::string why_not() const;
  /// May tensors lie there? "inproc" and "gloo" take those of GPUs through the host's memory;
  /// "nccl" takes no others, and every rank of an operation needs a card of its own.
  bool takes(DeviceType device) const;
  /// Those that travel by it, as errors name them. "send" is recv, too. What is not among NCCL's
  /// (barrier, exchange) goes by the engine of the group's tensors on the host.
  std::vector<std::string> operations() const;
  /// Empty: it does not reduce, or does not travel by this backend.
  std::vector<ReduceOp> reductions(const std::string& operation) const;
  /// Whether the operation takes tensors of this dtype, and where it reduces, by this reduction.
  /// An Error where no backend has such an operation.
  bool supports(const std::string& operation, ScalarType dtype,
                ReduceOp reduction = ReduceOp::sum) const;
  /// Do sums of this order have the same bits from run to run, and as on the other backends? All
  /// take every order; a tree needs a leaf for each rank.
  bool same_bits(ReduceOrder::Kind order) const;

 private:
  friend struct CapsTable;
  constexpr BackendCaps(const char* backend, bool of_cards)
      : backend_(backend), of_cards_(of_cards) {}
  const char* backend_;
  bool of_cards_;  // its messages go from card to card
};

/// Of a backend by its name; an Error where there is none.
RAMET_API const BackendCaps& backend_caps(const std::string& backend);

}  // namespace distributed
}  // namespace ramet
