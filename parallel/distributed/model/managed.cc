#include "parallel/distributed/model/managed.h"

#include "parallel/distributed/model/contract.h"

namespace ramet::distributed {

namespace {
constexpr const char* kApi = "fully_shard";
}

bool is_fully_sharded(const nn::Module& m) { return detail::is_applied(kApi, m); }
void set_fully_sharded(nn::Module& m, bool on) { detail::set_applied(kApi, m, on); }

}  // namespace ramet::distributed
