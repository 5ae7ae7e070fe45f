#include <nlohmann/json.hpp>

#include "autograd/autocast.h"
#include "nn/c/autocast_internal.h"
#include "nn/c/handles_internal.h"
#include "nn/c/reader_internal.h"
#include "nn/optim/grad_scaler.h"
#include "nn/serialize/archive.h"

namespace ramet::c {
namespace {

// A thread that ends in a region leaves it.
struct Regions {
  std::vector<std::unique_ptr<AutocastGuard>> open;
  size_t floor = 0;  // those below are not for this function to leave
};
Regions& regions() {
  static thread_local Regions all;
  return all;
}

DeviceType device_type_of(int device_type, const char* op) {
  RAMET_CHECK(device_type == RAMET_CPU || device_type == RAMET_CUDA, op,
              "device_type: expected RAMET_CPU or RAMET_CUDA, got ", device_type);
  return device_type == RAMET_CPU ? kCPU : kCUDA;
}

struct ScalerObject final : Object {
  static constexpr Kind kKind = Kind::kScaler;
  using Handle = ramet_grad_scaler;
  explicit ScalerObject(const optim::GradScalerOptions& options) : scaler(options) {}
  // A scaler knows optimizers by their addresses until update(). So they live until then.
  std::shared_ptr<OptimizerObject> kept(const ramet_optimizer* handle, const char* op,
                                        bool for_step) {
    auto optimizer = optimizer_of(handle, op, for_step);
    used.push_back(optimizer);
    return optimizer;
  }
  optim::GradScaler scaler;
  std::vector<std::shared_ptr<OptimizerObject>> used;
};
std::shared_ptr<ScalerObject> scaler_of(const ramet_grad_scaler* handle, const char* op) {
  return object_of<ScalerObject>(handle, op, "scaler");
}

}  // namespace

AutocastFloor::AutocastFloor() : before_(regions().floor) {
  regions().floor = regions().open.size();
}
AutocastFloor::~AutocastFloor() {
  Regions& all = regions();
  while (all.open.size() > all.floor) all.open.pop_back();
  all.floor = before_;
}
size_t AutocastFloor::left_open() const { return regions().open.size() - regions().floor; }

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

int ramet_autocast_enter(int device_type, int dtype, int enabled) {
  return status_of(__func__, [&](const char* op) {
    const DeviceType type = device_type_of(device_type, op);
    std::optional<ScalarType> lower;
    if (dtype != RAMET_DEFAULT_DTYPE) {
      RAMET_CHECK(dtype == RAMET_BFLOAT16 || dtype == RAMET_FLOAT16, op,
                  "dtype: expected RAMET_BFLOAT16, RAMET_FLOAT16 or RAMET_DEFAULT_DTYPE, got ",
                  dtype);
      lower = type_of(dtype, op);
    }
    regions().open.push_back(std::make_unique<AutocastGuard>(type, lower, enabled != 0));
  });
}
int ramet_autocast_leave(void) {
  return status_of(__func__, [&](const char* op) {
    Regions& all = regions();
    RAMET_CHECK(all.open.size() > all.floor, op, "this ",
                all.floor ? "function of the program's" : "thread",
                " has entered no region that is still open: expected ramet_autocast_enter before");
    all.open.pop_back();
  });
}
int ramet_autocast_get(int device_type, int* enabled, int* dtype) {
  return status_of(__func__, [&](const char* op) {
    const DeviceType type = device_type_of(device_type, op);
    if (enabled) *enabled = autocast::is_autocast_enabled(type);
    if (dtype) *dtype = number_of(autocast::get_autocast_dtype(type));
  });
}

ramet_grad_scaler* ramet_grad_scaler_new(const char* options) {
  return result_of(__func__, [&](const char* op) {
    const auto json = parse_json(op, options ? options : "{}");
    Reader r(op, *json, "", "GradScaler");
    optim::GradScalerOptions o;
    r.read({{"init_scale", &o.init_scale()},
            {"growth_factor", &o.growth_factor()},
            {"backoff_factor", &o.backoff_factor()},
            {"growth_interval", &o.growth_interval()},
            {"enabled", &o.enabled()}});
    r.finish();
    return handle_of(std::make_shared<ScalerObject>(o));
  });
}
int ramet_grad_scaler_free(ramet_grad_scaler* scaler) {
  return status_of(__func__, [&](const char* op) { free_handle(Kind::kScaler, scaler, op); });
}
ramet_tensor* ramet_grad_scaler_scale(ramet_grad_scaler* scaler, const ramet_tensor* outputs) {
  return result_of(__func__, [&](const char* op) {
    return handle_of(scaler_of(scaler, op)->scaler.scale(tensor_of(outputs, op, "outputs")));
  });
}
int ramet_grad_scaler_unscale(ramet_grad_scaler* scaler, ramet_optimizer* optimizer) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    object->scaler.unscale_(*object->kept(optimizer, op, false)->optimizer);
  });
}
int ramet_grad_scaler_step(ramet_grad_scaler* scaler, ramet_optimizer* optimizer) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    object->scaler.step(*object->kept(optimizer, op, true)->optimizer);
  });
}
int ramet_grad_scaler_update(ramet_grad_scaler* scaler) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    object->scaler.update();
    object->used.clear();
  });
}
int ramet_grad_scaler_set_scale(ramet_grad_scaler* scaler, double scale) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    object->scaler.update(scale);
    object->used.clear();
  });
}
int ramet_grad_scaler_get_scale(const ramet_grad_scaler* scaler, double* scale) {
  return status_of(__func__, [&](const char* op) {
    double& to = there(scale, op, "scale");
    to = scaler_of(scaler, op)->scaler.get_scale();
  });
}
int ramet_grad_scaler_save(const ramet_grad_scaler* scaler, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    serialize::OutputArchive archive;
    archive << object->scaler;
    archive.save_to(text(path, op, "path"));
  });
}
int ramet_grad_scaler_load(ramet_grad_scaler* scaler, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const auto object = scaler_of(scaler, op);
    serialize::InputArchive archive;
    archive.load_from(text(path, op, "path"));
    archive >> object->scaler;
    object->used.clear();
  });
}

}  // extern "C"
