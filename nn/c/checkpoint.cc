#include "autograd/checkpoint.h"

#include <algorithm>

#include "nn/c/autocast_internal.h"
#include "nn/c/modules_internal.h"

namespace ramet::c {
namespace {

// Handles that are freed at the end.
struct Handles {
  ~Handles() {
    for (ramet_tensor* handle : all) ramet_tensor_free(handle);
  }
  std::vector<ramet_tensor*> all;
};

// A function in C. The last one that keeps it frees its context.
struct Function {
  ~Function() {
    if (owned && deleter) deleter(context);
  }
  Tensor run(const char* op, const std::vector<Tensor>& inputs) const {
    Handles handles;
    handles.all.reserve(inputs.size() + 1);
    for (const Tensor& t : inputs) handles.all.push_back(handle_of(t));
    const std::vector<ramet_tensor*> given = handles.all;
    ramet_tensor* output = nullptr;
    const uint64_t before = failures();
    const AutocastFloor floor;
    const int status = function(context, given.data(), static_cast<int64_t>(given.size()), &output);
    const bool ours = failures() != before;  // then it failed with the last error
    const bool fresh = output && std::find(given.begin(), given.end(), output) == given.end();
    if (fresh) handles.all.push_back(output);
    RAMET_CHECK(status == RAMET_OK, op, "the function returned ", status, ", expected RAMET_OK",
                ours ? ": " : "", ours ? ramet_last_error() : "");
    RAMET_CHECK(floor.left_open() == 0, op, "the function has left ", floor.left_open(),
                " autocast regions open: expected ramet_autocast_leave for each");
    return tensor_of(output, op, "the function's output");
  }
  int (*function)(void*, ramet_tensor* const*, int64_t, ramet_tensor**);
  void* context;
  void (*deleter)(void*);
  bool owned = false;
};

}  // namespace
}  // namespace ramet::c

using namespace ramet;
using namespace ramet::c;

extern "C" {

ramet_tensor* ramet_checkpoint(int (*function)(void* context, ramet_tensor* const* inputs,
                                               int64_t count, ramet_tensor** output),
                               void* context, void (*deleter)(void* context),
                               const ramet_tensor* const* inputs, int64_t count) {
  return result_of(__func__, [&](const char* op) {
    RAMET_CHECK(function, op, "function: expected a function, got NULL");
    RAMET_CHECK(count >= 0, op, "count: expected 0 or more, got ", count);
    RAMET_CHECK(inputs || count == 0, op, "inputs: expected ", count, " tensors, got NULL");
    std::vector<Tensor> tensors;
    for (int64_t i = 0; i < count; ++i)
      tensors.push_back(tensor_of(inputs[i], op, ("inputs[" + std::to_string(i) + "]").c_str()));
    // The caller keeps the context until the result's handle is there.
    const auto call = std::make_shared<Function>(Function{function, context, deleter});
    const auto run = [call, op](const std::vector<Tensor>& given) { return call->run(op, given); };
    ramet_tensor* const made = handle_of(autograd::checkpoint(run, tensors));
    call->owned = true;
    return made;
  });
}
ramet_tensor* ramet_module_checkpoint(const ramet_module* module, const ramet_tensor* input) {
  return result_of(__func__, [&](const char* op) {
    const auto run = [object = module_of(module, op)](const Tensor& x) {
      return forward_of(*object, x);
    };
    return handle_of(autograd::checkpoint(run, tensor_of(input, op, "input")));
  });
}

}  // extern "C"
