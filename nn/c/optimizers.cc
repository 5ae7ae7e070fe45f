#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "nn/c/autocast_internal.h"
#include "nn/c/handles_internal.h"
#include "nn/c/reader_internal.h"
#include "nn/optim/adadelta.h"
#include "nn/optim/adagrad.h"
#include "nn/optim/adam.h"
#include "nn/optim/adamax.h"
#include "nn/optim/asgd.h"
#include "nn/optim/fields_internal.h"
#include "nn/optim/fused.h"
#include "nn/optim/lbfgs.h"
#include "nn/optim/lion.h"
#include "nn/optim/muon.h"
#include "nn/optim/nadam.h"
#include "nn/optim/radam.h"
#include "nn/optim/rmsprop.h"
#include "nn/optim/rprop.h"
#include "nn/optim/sgd.h"
#include "nn/serialize/save.h"

namespace ramet::c {
namespace {

using namespace ramet::optim;
using Made = std::unique_ptr<Optimizer>;

template <class Name, class Options> Made make(Reader& r, std::vector<Tensor> parameters) {
  if constexpr (!std::is_default_constructible_v<Options>) r.need("lr");
  Options options = Options::fresh();
  r.read(Options::list_of(options).list);
  r.finish();
  return std::make_unique<Name>(std::move(parameters), options);
}

Made optimizer_of(const char* op, const std::string& name, Reader& r,
                  std::vector<Tensor> parameters) {
#define OPTIMIZER(Name) {#Name, make<Name, Name##Options>},
  constexpr std::pair<const char*, Made (*)(Reader&, std::vector<Tensor>)> kOptimizers[] = {
      // clang-format off
      OPTIMIZER(SGD) OPTIMIZER(Adam) OPTIMIZER(AdamW) OPTIMIZER(RMSprop) OPTIMIZER(Adagrad)
      OPTIMIZER(Adadelta) OPTIMIZER(Adamax) OPTIMIZER(NAdam) OPTIMIZER(RAdam) OPTIMIZER(ASGD)
      OPTIMIZER(Rprop) OPTIMIZER(Lion) OPTIMIZER(Muon) OPTIMIZER(LBFGS)
      // clang-format on
  };
#undef OPTIMIZER
  r.set_what(name);
  for (const auto& [known, make_it] : kOptimizers)
    if (name == known) return make_it(r, std::move(parameters));
  fail(op, "name: expected one of the optimizers that ramet/c.h lists, got \"", name, "\"");
}

// Of the optimizers that have the choice.
FusedOptimizer& with_masters(Optimizer& optimizer, const char* op) {
  auto* const fused = dynamic_cast<FusedOptimizer*>(&optimizer);
  RAMET_CHECK(fused, op, "LBFGS always keeps masters: expected another optimizer");
  return *fused;
}

}  // namespace

std::shared_ptr<OptimizerObject> optimizer_of(const ramet_optimizer* handle, const char* op,
                                              bool for_step) {
  auto object = object_of<OptimizerObject>(handle, op, "optimizer");
  RAMET_CHECK(
      !for_step || object->name != "LBFGS", op,
      "LBFGS evaluates several times in a step: expected ramet_optimizer_step_closure, got ", op);
  return object;
}

}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

ramet_optimizer* ramet_optimizer_new(ramet_module* module, const char* name, const char* options) {
  return result_of(__func__, [&](const char* op) {
    const auto source = object_of<ModuleObject>(module, op, "module");
    const auto json = parse_json(op, options ? options : "{}");
    Reader reader(op, *json, "", "options");
    auto object = std::make_shared<OptimizerObject>();
    object->name = text(name, op, "name");
    object->optimizer = optimizer_of(op, object->name, reader, source->module.ptr()->parameters());
    return handle_of(object);
  });
}
int ramet_optimizer_free(ramet_optimizer* optimizer) {
  return status_of(__func__, [&](const char* op) { free_handle(Kind::kOptimizer, optimizer, op); });
}
int ramet_optimizer_zero_grad(ramet_optimizer* optimizer, int set_to_none) {
  return status_of(__func__, [&](const char* op) {
    optimizer_of(optimizer, op)->optimizer->zero_grad(set_to_none != 0);
  });
}
int ramet_optimizer_step(ramet_optimizer* optimizer) {
  return status_of(__func__, [&](const char* op) {
    optimizer_of(optimizer, op, /*for_step=*/true)->optimizer->step();
  });
}
int ramet_optimizer_step_closure(ramet_optimizer* optimizer,
                                 int (*closure)(void* context, double* loss), void* context,
                                 double* loss) {
  int status = RAMET_OK;  // the closure's
  const int mine = status_of(__func__, [&](const char* op) {
    RAMET_CHECK(closure, op, "closure: expected a function, got NULL");
    const auto object = optimizer_of(optimizer, op);
    const Tensor first = object->optimizer->step([&] {
      double value = 0;
      const uint64_t before = failures();
      const AutocastFloor floor;
      status = closure(context, &value);
      const bool ours = failures() != before;  // then it failed with the last error
      if (status != RAMET_OK) {
        fail(op, "the closure returned ", status, ", expected RAMET_OK", ours ? ": " : "",
             ours ? ramet_last_error() : "");
      }
      RAMET_CHECK(floor.left_open() == 0, op, "the closure has left ", floor.left_open(),
                  " autocast regions open: expected ramet_autocast_leave for each");
      return scalar_tensor(value, TensorOptions().dtype(kFloat64));
    });
    if (loss) *loss = first.item<double>();
  });
  return status != RAMET_OK ? status : mine;
}
int ramet_optimizer_set_lr(ramet_optimizer* optimizer, double lr) {
  return status_of(__func__, [&](const char* op) {
    const auto object = optimizer_of(optimizer, op);
    for (const OptimizerParamGroup& group : object->optimizer->param_groups()) {
      const auto tried = group.options().clone();
      tried->set_lr(lr);
      tried->check();
    }
    for (OptimizerParamGroup& group : object->optimizer->param_groups()) group.options().set_lr(lr);
  });
}
int ramet_optimizer_get_lr(const ramet_optimizer* optimizer, double* lr) {
  return status_of(__func__, [&](const char* op) {
    double& to = there(lr, op, "lr");
    to = optimizer_of(optimizer, op)->optimizer->param_groups().at(0).options().get_lr();
  });
}
int ramet_optimizer_use_masters(ramet_optimizer* optimizer, int on) {
  return status_of(__func__, [&](const char* op) {
    with_masters(*optimizer_of(optimizer, op)->optimizer, op).use_masters(on != 0);
  });
}
int ramet_optimizer_uses_masters(const ramet_optimizer* optimizer, int* on) {
  return status_of(__func__, [&](const char* op) {
    int& to = there(on, op, "on");
    to = with_masters(*optimizer_of(optimizer, op)->optimizer, op).uses_masters();
  });
}
int ramet_optimizer_save(const ramet_optimizer* optimizer, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const auto object = optimizer_of(optimizer, op);
    serialize::OutputArchive archive;
    archive.write("class", IValue(object->name));
    archive << *object->optimizer;
    archive.save_to(text(path, op, "path"));
  });
}
int ramet_optimizer_load(ramet_optimizer* optimizer, const char* path) {
  return status_of(__func__, [&](const char* op) {
    const auto object = optimizer_of(optimizer, op);
    serialize::InputArchive archive;
    archive.load_from(text(path, op, "path"));
    IValue name;
    const bool named = archive.try_read("class", name) && name.isString();
    RAMET_CHECK(named && name.toStringRef() == object->name, op, "\"", path,
                "\" is of another optimizer: expected ", object->name, ", got ",
                named ? name.toStringRef() : "a file of none");
    archive >> *object->optimizer;
  });
}

}  // extern "C"
