// Operators of programs: identity, exceptions, output, modes, devices.
#include <iostream>

#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/ops.h"
#include "autograd/schema/spans_internal.h"
#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"
#include "runtime/base/logging.h"

namespace ramet::script {
namespace {

std::string shown(const Call& a) {
  std::string made;
  for (size_t i = 0; i < a.size(); ++i) {
    if (i > 0) made += ' ';
    append_text(made, a[i]);
  }
  return made;
}
[[noreturn]] void raise(const std::string& message, const std::string& name) {
  throw Error("[" + (name.empty() ? std::string("Exception") : name) + "] " + message);
}
void check(const IValue& condition, const std::string& message) {
  const bool holds =
      condition.isTensor() ? condition.toTensor().is_nonzero() : condition.toScalar().toBool();
  if (!holds) raise(message, "AssertionError");
}
const IValue& present(const IValue& value) {
  RAMET_CHECK(!value.isNone(), "_unwrap_optional", "got None, expected a value");
  return value;
}

// A future has its value already: the span ends here.
const IValue& ended(int64_t span, const IValue& future) {
  end_span(span);
  return future;
}

// A class of PyTorch's; schema.cc reads it as int.
#define RAMET_SPAN "__torch__.torch.classes.profiler._RecordFunction"

const Line kProgram[] = {
    RAMET_LINE("aten::__is__(t1 self, t2 obj) -> bool", a[0].is(a[1])),
    RAMET_LINE("aten::__isnot__(t1 self, t2 obj) -> bool", !a[0].is(a[1])),
    RAMET_LINE("aten::eq.enum(AnyEnumType a, AnyEnumType b) -> bool", equal_values(a[0], a[1])),
    RAMET_LINE("aten::ne.enum(AnyEnumType a, AnyEnumType b) -> bool", !equal_values(a[0], a[1])),
    RAMET_LINE("aten::_unwrap_optional(t(a)? optional) -> t(a)", present(a[0])),
    RAMET_LINE("prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)", present(a[0])),
    RAMET_LINE("prim::unchecked_cast(t x) -> t", a[0]),
    RAMET_LINE("prim::Uninitialized() -> Any", IValue()),
    RAMET_LINE_DO("prim::RaiseException(str msg, str? cls=None) -> ()",
                  raise(a.text(0), std::string(a.may_text(1).value_or("")))),
    RAMET_LINE_DO("prim::Print(...) -> ()", std::cout << shown(a) + "\n"),
    RAMET_LINE_DO("aten::_assert_async(Tensor self) -> ()", check(a[0], "the tensor is false")),
    RAMET_LINE_DO("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()",
                  check(a[0], a.text(1))),
    RAMET_LINE_DO("aten::_assert_scalar(Scalar self, str assert_msg) -> ()",
                  check(a[0], a.text(1))),
    RAMET_LINE_DO("aten::warn(str message, int stacklevel=2) -> ()", RAMET_WARN(a.text(0))),
    RAMET_LINE("aten::wait(Future(t) self) -> t", a[0].toFuture()->value()),
    RAMET_LINE("aten::is_grad_enabled() -> bool", GradMode::is_enabled()),
    RAMET_LINE_DO("aten::set_grad_enabled(bool val) -> ()", GradMode::set_enabled(a.truth(0))),
    RAMET_LINE("aten::is_scripting() -> bool", true),
    RAMET_LINE("aten::_is_tracing() -> bool", false),
    RAMET_LINE("aten::_get_tracing_state() -> bool", false),
    RAMET_LINE("aten::has_torch_function(...) -> bool", false),
    RAMET_LINE("aten::is_autocast_enabled() -> bool", autocast::is_autocast_enabled(kCUDA)),
    RAMET_LINE("aten::is_autocast_cpu_enabled() -> bool", autocast::is_autocast_enabled(kCPU)),
    RAMET_LINE("aten::get_autocast_dtype(str device_type) -> ScalarType",
               number_of(autocast::get_autocast_dtype(Device(a.text(0)).type()))),
    RAMET_LINE("profiler::_record_function_enter_new(str name, str? args=None) -> " RAMET_SPAN,
               begin_span(a.text(0))),
    RAMET_LINE_DO("profiler::_record_function_exit._RecordFunction(" RAMET_SPAN " record) -> ()",
                  end_span(a.integer(0))),
    RAMET_LINE("profiler::_call_end_callbacks_on_jit_fut._RecordFunction(" RAMET_SPAN
               " x, Future(t) y) -> Future(t)",
               ended(a.integer(0), a[1])),
    // Before PyTorch 1.11 it was a tensor. A capture may not read its values: no span.
    RAMET_LINE("profiler::_record_function_enter(str name, str? args=None) -> Tensor", zeros({1})),
    RAMET_LINE_DO("profiler::_record_function_exit(Tensor handle) -> ()", (void)a),
    RAMET_LINE("profiler::_call_end_callbacks_on_jit_fut(Tensor x, Future(t) y) -> Future(t)",
               a[1]),
    RAMET_LINE_DO("aten::manual_seed(int seed) -> ()",
                  manual_seed(static_cast<uint64_t>(a.integer(0)))),
    RAMET_LINE("aten::device(str a) -> Device", IValue(Device(a.text(0)))),
    RAMET_LINE("aten::device.with_index(str type, int index) -> Device",
               IValue(Device(a.text(0) + ":" + std::to_string(a.integer(1))))),
    RAMET_LINE("aten::eq.device(Device a, Device b) -> bool", device_of(a[0]) == device_of(a[1])),
    RAMET_LINE("aten::ne.device(Device a, Device b) -> bool", device_of(a[0]) != device_of(a[1])),
    RAMET_LINE("prim::type(Device self) -> str",
               IValue(device_of(a[0]).type() == kCUDA ? "cuda" : "cpu")),
    RAMET_LINE("prim::index(Device self) -> int?",
               device_of(a[0]).type() == kCUDA || device_of(a[0]).index() > 0
                   ? IValue(int64_t{device_of(a[0]).index()})
                   : IValue()),
};

}  // namespace

Lines lines_of_programs() { return kProgram; }

}  // namespace ramet::script
