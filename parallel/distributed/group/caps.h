// What the backends of process groups can do: ProcessGroup::caps(), backend_caps().
#pragma once
#include <string>
#include <vector>

#include "parallel/distributed/group/process_group.h"

namespace ramet {
namespace distributed {

/// What one backend can do. Operations check their arguments by the same table: they throw an Error
/// before they wait for any rank.
class RAMET_API BackendCaps {
 public:
  /// "inproc", "gloo" or "nccl".
  const char* backend() const { return backend_; }
  /// Empty, or the reason why this process cannot use the backend: NCCL is missing or too old.
  std::string why_not() const;
  /// May tensors be on such a device? "inproc" and "gloo" copy tensors of GPUs through host memory.
  /// "nccl" takes tensors of GPUs only, and every rank of an operation needs a GPU of its own.
  bool takes(DeviceType device) const;
  /// The operations that this backend carries, by the names that errors use. "send" stands for recv
  /// too. For NCCL, barrier and exchange are not in the list: the engine for host tensors carries
  /// them.
  std::vector<std::string> operations() const;
  /// The reductions of this operation. Empty if it does not reduce, or if this backend does not
  /// carry it.
  std::vector<ReduceOp> reductions(const std::string& operation) const;
  /// Whether the operation takes tensors of this dtype and, if it reduces, this reduction. An Error
  /// where no backend has such an operation.
  bool supports(const std::string& operation, ScalarType dtype,
                ReduceOp reduction = ReduceOp::sum) const;
  /// Do sums of this order have the same bits in every run and on every backend? All backends take
  /// every order. A tree needs a leaf for each rank.
  bool same_bits(ReduceOrder::Kind order) const;

 private:
  friend struct CapsTable;
  constexpr BackendCaps(const char* backend, bool of_cards)
      : backend_(backend), of_cards_(of_cards) {}
  const char* backend_;
  bool of_cards_;  // its messages go from GPU to GPU
};

/// The capabilities of the backend with this name; an Error where there is none.
RAMET_API const BackendCaps& backend_caps(const std::string& backend);

}  // namespace distributed
}  // namespace ramet
