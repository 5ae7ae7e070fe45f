#include "parallel/c/c_processes.h"

#include <cmath>
#include <cstring>

#include "autograd/grad_mode.h"
#include "nn/c/handles_internal.h"
#include "parallel/distributed/ddp/replicate.h"
#include "parallel/distributed/group/process_group.h"
#include "parallel/distributed/meet/own_address.h"
#include "parallel/distributed/meet/tcp_store.h"

namespace ramet::c {
namespace {

using namespace ramet::distributed;

struct GroupObject final : Object {
  static constexpr Kind kKind = Kind::kGroup;
  using Handle = ramet_group;
  explicit GroupObject(std::shared_ptr<ProcessGroup> g) : group(std::move(g)) {}
  std::shared_ptr<ProcessGroup> group;
};

ProcessGroup& group_of(std::shared_ptr<GroupObject>& held, const ramet_group* handle,
                       const char* op) {
  held = object_of<GroupObject>(handle, op, "group");
  return *held->group;
}

ReduceOp reduce_op(int op, const char* function) {
  switch (op) {
    case RAMET_REDUCE_SUM: return ReduceOp::sum;
    case RAMET_REDUCE_AVERAGE: return ReduceOp::average;
    case RAMET_REDUCE_PRODUCT: return ReduceOp::product;
    case RAMET_REDUCE_MIN: return ReduceOp::min;
    case RAMET_REDUCE_MAX: return ReduceOp::max;
    default: fail(function, "op: expected RAMET_REDUCE_SUM to RAMET_REDUCE_MAX, got ", op);
  }
}

Milliseconds seconds(double timeout, const char* op) {
  RAMET_CHECK(timeout > 0 && std::isfinite(timeout), op, "timeout: expected seconds, got ",
              timeout);
  return Milliseconds(static_cast<int64_t>(std::ceil(std::min(timeout, 1e6) * 1000)));
}

}  // namespace
}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

int ramet_group_address(const char* host, char* address, int64_t capacity) {
  return status_of(__func__, [&](const char* op) {
    there(address, op, "address");
    const std::string name = host ? host : own_address();
    RAMET_CHECK(!name.empty(), op, "host: expected a name, got \"\"");
    const TcpStoreServer probe("", 0, {});
    const bool number = name.find(':') != std::string::npos && name.front() != '[';
    const std::string made =
        "tcp://" + (number ? "[" + name + "]" : name) + ":" + std::to_string(probe.port());
    RAMET_CHECK(capacity > static_cast<int64_t>(made.size()), op, "capacity: expected ",
                made.size() + 1, " or more, got ", capacity);
    std::memcpy(address, made.c_str(), made.size() + 1);
  });
}
ramet_group* ramet_group_new(const char* address, int rank, int world_size, double timeout) {
  return result_of(__func__, [&](const char* op) {
    const std::string url = text(address, op, "address");
    RendezvousOptions how;
    GroupOptions options;
    how.timeout = options.timeout = seconds(timeout, op);
    if (rank != -1 || world_size != -1) {
      RAMET_CHECK(world_size >= 1, op, "world_size: expected 1 or more, got ", world_size);
      RAMET_CHECK(rank >= 0 && rank < world_size, op, "rank: expected 0 to ", world_size - 1,
                  ", got ", rank);
      how.rank = rank;
      how.world_size = world_size;
    }
    return handle_of(std::make_shared<GroupObject>(init_process_group(url, options, how)));
  });
}
int ramet_group_free(ramet_group* group) {
  return status_of(__func__, [&](const char* op) { free_handle(Kind::kGroup, group, op); });
}
int ramet_group_rank(const ramet_group* group, int* rank) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    there(rank, op, "rank") = group_of(held, group, op).rank();
  });
}
int ramet_group_size(const ramet_group* group, int* size) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    there(size, op, "size") = group_of(held, group, op).size();
  });
}
int ramet_group_barrier(ramet_group* group) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    group_of(held, group, op).barrier().wait();
  });
}
int ramet_group_all_reduce(ramet_group* group, ramet_tensor* tensor, int reduction) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    ProcessGroup& g = group_of(held, group, op);
    const NoGradGuard no_grad;
    g.all_reduce(tensor_of(tensor, op).detach(), reduce_op(reduction, op)).wait();
  });
}
int ramet_group_broadcast(ramet_group* group, ramet_tensor* tensor, int root) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    ProcessGroup& g = group_of(held, group, op);
    const NoGradGuard no_grad;
    g.broadcast(tensor_of(tensor, op).detach(), root).wait();
  });
}
int ramet_group_abort(ramet_group* group, const char* reason) {
  return status_of(__func__, [&](const char* op) {
    std::shared_ptr<GroupObject> held;
    group_of(held, group, op).abort(text(reason, op, "reason"));
  });
}

int ramet_module_replicate(ramet_module* module, ramet_group* group) {
  return status_of(__func__, [&](const char* op) {
    const auto object = object_of<ModuleObject>(module, op, "module");
    std::shared_ptr<GroupObject> held;
    group_of(held, group, op);
    replicate(object->module.ptr(), held->group);
  });
}
int ramet_module_set_gradient_sync(ramet_module* module, int on) {
  return status_of(__func__, [&](const char* op) {
    replicate_handle(*object_of<ModuleObject>(module, op, "module")->module.ptr())
        .set_requires_gradient_sync(on != 0);
  });
}

}  // extern "C"
