#include "parallel/distributed/group/tensor_bytes_internal.h"

#include <cstring>

namespace ramet::distributed::detail {

std::string bytes_of(const Tensor& t) {
  const Tensor host = t.detach().to(Device(kCPU, 0)).contiguous();
  return {static_cast<const char*>(host.ptr()), host.nbytes()};
}

Tensor tensor_of(const std::string& bytes, const Tensor& like, const std::string& what) {
  Tensor t(TensorBase::empty(like.sizes(), like.scalar_type(), Device(kCPU, 0)));
  RAMET_CHECK(bytes.size() == t.nbytes(), "ddp", what, " of another rank: got ", bytes.size(),
              " bytes, expected ", t.nbytes());
  if (!bytes.empty()) std::memcpy(t.ptr(), bytes.data(), bytes.size());
  return t;
}

}  // namespace ramet::distributed::detail
