// Operators of the language that have an expression of their own in translations.
#include "nn/script/translation/translation_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

// Letters are the types of parameters:
//
//   i int, f float, b bool, r int or float, n number, s text, t tensor, l list, d dict,
//   o optional, v device, ? any other, * each
//
// Places are those of autograd/schema's expressions. Here there are more:
//
//   a.any(0) as it is; a.item(1) one of list 0; a.key(1), a.mapped(2) of dictionary 0.
//   a.value(0) as an IValue; a.result() the type of the result
constexpr Special kSpecial[] = {
    {"aten::add", "ii", "a.integer(0) + a.integer(1)"},
    {"aten::sub", "ii", "a.integer(0) - a.integer(1)"},
    {"aten::mul", "ii", "a.integer(0) * a.integer(1)"},
    {"aten::add", "rr", "a.real(0) + a.real(1)"},
    {"aten::sub", "rr", "a.real(0) - a.real(1)"},
    {"aten::mul", "rr", "a.real(0) * a.real(1)"},
    {"aten::div", "rr", "a.real(0) / a.real(1)"},
    {"aten::floordiv", "ii", "python::floordiv(a.integer(0), a.integer(1))"},
    {"aten::remainder", "ii", "python::remainder(a.integer(0), a.integer(1))"},
    {"aten::neg", "i", "-a.integer(0)"},
    {"aten::neg", "f", "-a.real(0)"},
    {"aten::eq", "ii", "a.integer(0) == a.integer(1)"},
    {"aten::ne", "ii", "a.integer(0) != a.integer(1)"},
    {"aten::lt", "ii", "a.integer(0) < a.integer(1)"},
    {"aten::le", "ii", "a.integer(0) <= a.integer(1)"},
    {"aten::gt", "ii", "a.integer(0) > a.integer(1)"},
    {"aten::ge", "ii", "a.integer(0) >= a.integer(1)"},
    {"aten::eq", "rr", "a.real(0) == a.real(1)"},
    {"aten::ne", "rr", "a.real(0) != a.real(1)"},
    {"aten::lt", "rr", "a.real(0) < a.real(1)"},
    {"aten::le", "rr", "a.real(0) <= a.real(1)"},
    {"aten::gt", "rr", "a.real(0) > a.real(1)"},
    {"aten::ge", "rr", "a.real(0) >= a.real(1)"},
    {"aten::eq", "bb", "a.truth(0) == a.truth(1)"},
    {"aten::ne", "bb", "a.truth(0) != a.truth(1)"},
    {"aten::eq", "ss", "a.text(0) == a.text(1)"},
    {"aten::ne", "ss", "a.text(0) != a.text(1)"},
    {"prim::min", "ii", "std::min<int64_t>(a.integer(0), a.integer(1))"},
    {"prim::max", "ii", "std::max<int64_t>(a.integer(0), a.integer(1))"},
    {"prim::min", "ff", "std::min<double>(a.real(1), a.real(0))"},
    {"prim::max", "ff", "std::max<double>(a.real(1), a.real(0))"},
    {"aten::__not__", "b", "!a.truth(0)"},
    {"aten::__and__", "bb", "a.truth(0) && a.truth(1)"},
    {"aten::__or__", "bb", "a.truth(0) || a.truth(1)"},
    {"aten::Int", "f", "python::to_integer(a.real(0))"},
    {"aten::Int", "b", "static_cast<int64_t>(a.truth(0))"},
    {"aten::Int", "n", "python::to_integer(a.number(0))"},
    {"aten::Int", "t", "python::to_integer(a.tensor(0).item())"},
    {"aten::IntImplicit", "t", "a.tensor(0).item<int64_t>()"},
    {"aten::Float", "i", "a.real(0)"},
    {"aten::Float", "b", "a.real(0)"},
    {"aten::Float", "n", "a.real(0)"},
    {"aten::Float", "t", "a.tensor(0).item<double>()"},
    {"aten::FloatImplicit", "t", "a.tensor(0).item<double>()"},
    {"aten::Bool", "i", "a.integer(0) != 0"},
    {"aten::Bool", "f", "a.real(0) != 0"},
    {"aten::Bool", "t", "a.tensor(0).item().toBool()"},
    {"aten::item", "t", "a.tensor(0).item()"},
    {"aten::ScalarImplicit", "t", "a.tensor(0).item()"},
    {"aten::size", "t", "a.tensor(0).sizes().vec()"},
    {"aten::size", "ti", "a.tensor(0).size(a.integer(1))"},
    {"aten::len", "t", "a.tensor(0).size(0)"},
    {"aten::dim", "t", "a.tensor(0).dim()"},
    {"aten::numel", "t", "a.tensor(0).numel()"},
    {"prim::dtype", "t", "python::number_of(a.tensor(0).scalar_type())"},
    {"prim::device", "t", "a.tensor(0).device()"},
    {"aten::device", "s", "Device(a.text(0))"},
    {"aten::len", "l", "static_cast<int64_t>(a.any(0).size())"},
    {"aten::__getitem__", "li", "python::item(a.any(0), a.integer(1))"},
    {"aten::__getitem__", "d*", "a.any(0).at(a.key(1))"},
    {"aten::to", "ttbb*", "a.tensor(0).to(a.tensor(1), a.truth(2), a.truth(3), a.may_format(4))"},
    {"aten::to", "t*bb*", "a.tensor(0).to(a.dtype(1), a.truth(2), a.truth(3), a.may_format(4))"},
    {"aten::to", "t**bb*",
     "a.tensor(0).to(a.device(1), a.dtype(2), a.truth(3), a.truth(4), a.may_format(5))"},
    {"aten::to", "toooobb*",
     "a.tensor(0).to(a.options(1), a.truth(5), a.truth(6), a.may_format(7))"},
    {"aten::to", "toobb",
     "a.tensor(0).to(TensorOptions().device(a.may_device(1)).dtype(a.may_dtype(2)), a.truth(3), "
     "a.truth(4))"},
    {"aten::to", "tobb",
     "a.tensor(0).to(TensorOptions().dtype(a.may_dtype(1)), a.truth(2), a.truth(3))"},
    {"aten::_assert_tensor_metadata", "toooo*",
     "python::check_metadata(a.tensor(0), a.may_integers(1), a.may_integers(2), a.may_dtype(3), "
     "a.may_device(4))"},
    {"aten::contiguous", "t*", "a.tensor(0).contiguous(a.format(1))"},
    {"aten::add", "nn", "python::number(a.number(0), a.number(1), std::plus<>())"},
    {"aten::sub", "nn", "python::number(a.number(0), a.number(1), std::minus<>())"},
    {"aten::mul", "nn", "python::number(a.number(0), a.number(1), std::multiplies<>())"},
    {"aten::floordiv", "nn", "python::number(a.number(0), a.number(1), python::Floordiv())"},
    {"aten::remainder", "nn", "python::number(a.number(0), a.number(1), python::Remainder())"},
    {"aten::neg", "n", "python::negative(a.number(0))"},
    {"aten::div", "nn", "a.real(0) / a.real(1)"},
    {"aten::eq", "nn", "python::number(a.number(0), a.number(1), std::equal_to<>()).toBool()"},
    {"aten::ne", "nn", "python::number(a.number(0), a.number(1), std::not_equal_to<>()).toBool()"},
    {"aten::lt", "nn", "python::number(a.number(0), a.number(1), std::less<>()).toBool()"},
    {"aten::le", "nn", "python::number(a.number(0), a.number(1), std::less_equal<>()).toBool()"},
    {"aten::gt", "nn", "python::number(a.number(0), a.number(1), std::greater<>()).toBool()"},
    {"aten::ge", "nn", "python::number(a.number(0), a.number(1), std::greater_equal<>()).toBool()"},
    {"aten::floordiv", "rr", "std::floor(a.real(0) / a.real(1))"},
    {"aten::remainder", "rr", "python::remainder(a.real(0), a.real(1))"},
    {"aten::pow", "rr", "std::pow(a.real(0), a.real(1))"},
    {"aten::fmod", "rr", "std::fmod(a.real(0), a.real(1))"},
    {"aten::atan2", "rr", "std::atan2(a.real(0), a.real(1))"},
    {"aten::copysign", "rr", "std::copysign(a.real(0), a.real(1))"},
    {"aten::log", "rr", "std::log(a.real(0)) / std::log(a.real(1))"},
    {"prim::min", "rr", "std::min<double>(a.real(1), a.real(0))"},
    {"prim::max", "rr", "std::max<double>(a.real(1), a.real(0))"},
    {"aten::sqrt", "r", "std::sqrt(a.real(0))"},
    {"aten::exp", "r", "std::exp(a.real(0))"},
    {"aten::expm1", "r", "std::expm1(a.real(0))"},
    {"aten::log", "r", "std::log(a.real(0))"},
    {"aten::log1p", "r", "std::log1p(a.real(0))"},
    {"aten::log10", "r", "std::log10(a.real(0))"},
    {"aten::sin", "r", "std::sin(a.real(0))"},
    {"aten::cos", "r", "std::cos(a.real(0))"},
    {"aten::tan", "r", "std::tan(a.real(0))"},
    {"aten::tanh", "r", "std::tanh(a.real(0))"},
    {"aten::atan", "r", "std::atan(a.real(0))"},
    {"aten::erf", "r", "std::erf(a.real(0))"},
    {"aten::fabs", "r", "std::fabs(a.real(0))"},
    {"aten::degrees", "r", "a.real(0) * 180.0 / M_PI"},
    {"aten::radians", "r", "a.real(0) * M_PI / 180.0"},
    {"aten::round", "r", "python::round(a.real(0))"},
    {"aten::floor", "i", "a.integer(0)"},
    {"aten::floor", "f", "python::to_integer(std::floor(a.real(0)))"},
    {"aten::ceil", "i", "a.integer(0)"},
    {"aten::ceil", "f", "python::to_integer(std::ceil(a.real(0)))"},
    {"prim::abs", "i", "std::abs(a.integer(0))"},
    {"prim::abs", "f", "std::fabs(a.real(0))"},
    {"aten::__and__", "ii", "a.integer(0) & a.integer(1)"},
    {"aten::__or__", "ii", "a.integer(0) | a.integer(1)"},
    {"aten::__xor__", "ii", "a.integer(0) ^ a.integer(1)"},
    {"aten::__xor__", "bb", "a.truth(0) != a.truth(1)"},
    {"aten::__range_length", "iii",
     "python::range_length(a.integer(0), a.integer(1), a.integer(2))"},
    {"aten::__derive_index", "iii", "a.integer(1) + a.integer(0) * a.integer(2)"},
    {"aten::isnan", "f", "std::isnan(a.real(0))"},
    {"aten::isinf", "f", "std::isinf(a.real(0))"},
    {"aten::isfinite", "f", "std::isfinite(a.real(0))"},
    {"aten::eq", "vv", "a.device(0) == a.device(1)"},
    {"aten::ne", "vv", "a.device(0) != a.device(1)"},
    {"prim::type", "v", "python::device_type(a.device(0))"},
    {"aten::device", "si", "Device(a.text(0) + \":\" + std::to_string(a.integer(1)))"},
    {"aten::append", "l*", "a.any(0).push_back(a.item(1))"},
    {"aten::_set_item", "li*", "python::set_item(a.any(0), a.integer(1), a.item(2))"},
    {"aten::_set_item", "d**", "a.any(0).insert_or_assign(a.key(1), a.mapped(2))"},
    {"aten::extend", "ll", "python::extend(a.any(0), a.any(1))"},
    {"aten::insert", "li*", "python::insert(a.any(0), a.integer(1), a.item(2))"},
    {"aten::pop", "li", "python::pop(a.any(0), a.integer(1))"},
    {"aten::Delete", "li", "python::pop(a.any(0), a.integer(1))"},
    {"aten::clear", "l", "a.any(0).clear()"},
    {"aten::reverse", "l", "python::reverse(a.any(0))"},
    {"aten::copy", "l", "python::copy(a.any(0))"},
    {"aten::list", "l", "python::copy(a.any(0))"},
    {"aten::slice", "looi",
     "python::slice(a.any(0), a.may_integer(1), a.may_integer(2), "
     "a.integer(3))"},
    {"aten::add", "ll", "python::joined(a.any(0), a.any(1))"},
    {"aten::add_", "ll", "python::extend(a.any(0), a.any(1))"},
    {"aten::mul", "li", "python::repeat(a.any(0), a.integer(1))"},
    {"aten::mul", "il", "python::repeat(a.any(1), a.integer(0))"},
    {"aten::__contains__", "l*", "python::contains(a.any(0), a.item(1))"},
    {"aten::eq", "ll", "python::equals(a.any(0), a.any(1))"},
    {"aten::ne", "ll", "!python::equals(a.any(0), a.any(1))"},
    {"aten::remove", "l*", "python::remove(a.any(0), a.item(1))"},
    {"aten::index", "l*", "python::index(a.any(0), a.item(1))"},
    {"aten::count", "l*", "python::count(a.any(0), a.item(1))"},
    {"aten::sort", "lb", "python::sort(a.any(0), a.truth(1))"},
    {"aten::sorted", "l", "python::sorted(a.any(0))"},
    {"prim::min", "l", "python::smallest(a.any(0))"},
    {"prim::max", "l", "python::largest(a.any(0))"},
    {"aten::sum", "l", "python::sum(a.any(0))"},
    {"aten::any", "l", "python::any_of(a.any(0))"},
    {"aten::all", "l", "python::all_of(a.any(0))"},
    {"prim::rangelist", "i", "a.result()(python::range(a.integer(0)))"},
    {"aten::len", "d", "static_cast<int64_t>(a.any(0).size())"},
    {"aten::__contains__", "d*", "a.any(0).contains(a.key(1))"},
    {"aten::Delete", "d*", "python::take(a.any(0), a.key(1))"},
    {"aten::clear", "d", "a.any(0).clear()"},
    {"aten::copy", "d", "a.any(0).copy()"},
    {"aten::dict", "", "a.result()()"},
    {"aten::dict", "d", "a.any(0).copy()"},
    {"aten::dict", "l", "python::dict<a.result()>(a.any(0))"},
    {"aten::get", "d*", "python::get(a.any(0), a.key(1))"},
    {"aten::get", "d**", "python::get(a.any(0), a.key(1), a.mapped(2))"},
    {"aten::pop", "d*", "python::take(a.any(0), a.key(1))"},
    {"aten::pop", "d**", "python::take(a.any(0), a.key(1), a.mapped(2))"},
    {"aten::setdefault", "d**", "a.any(0).insert(a.key(1), a.mapped(2)).first->value()"},
    {"aten::update", "dd", "python::update(a.any(0), a.any(1))"},
    {"aten::keys", "d", "python::keys<a.result()>(a.any(0))"},
    {"aten::values", "d", "python::values<a.result()>(a.any(0))"},
    {"aten::items", "d", "python::items<a.result()>(a.any(0))"},
    {"aten::add", "ss", "a.text(0) + a.text(1)"},
    {"aten::len", "s", "static_cast<int64_t>(a.text(0).size())"},
    {"aten::upper", "s", "python::upper(a.text(0))"},
    {"aten::lower", "s", "python::lower(a.text(0))"},
    {"aten::join", "sl", "python::join(a.text(0), a.any(1))"},
    {"aten::startswith", "ssii",
     "python::starts_with(a.text(0), a.text(1), a.integer(2), "
     "a.integer(3))"},
    {"aten::endswith", "ssii",
     "python::ends_with(a.text(0), a.text(1), a.integer(2), "
     "a.integer(3))"},
    {"aten::split", "soi", "a.result()(python::split(a.text(0), a.may_text(1), a.integer(2)))"},
    {"aten::str", "?", "python::text(\"{}\", a.value(0))"},
    {"aten::tensor", "l*ob",
     "python::tensor(a.any(0), a.may_dtype(1), a.may_device(2), a.truth(3))"},
    {"aten::tensor", "*oob",
     "python::tensor(a.any(0), a.may_dtype(1), a.may_device(2), a.truth(3))"},
    {"aten::as_tensor", "loo", "python::as_tensor(a.value(0), a.may_dtype(1), a.may_device(2))"},
    {"aten::as_tensor", "*oo", "python::as_tensor(a.any(0), a.may_dtype(1), a.may_device(2))"},
    {"aten::native_layer_norm", "tloof",
     "python::norm_of_layer(a.tensor(0), a.integers(1), "
     "a.may_tensor(2), a.may_tensor(3), a.real(4))"},
    {"aten::native_group_norm", "tooiiiif",
     "python::norm_of_groups(a.tensor(0), a.may_tensor(1), "
     "a.may_tensor(2), a.integer(3), a.integer(6), a.real(7))"},
    {"aten::native_batch_norm", "toooobff",
     "python::norm_of_batch(a.tensor(0), a.may_tensor(1), "
     "a.may_tensor(2), a.may_tensor(3), a.may_tensor(4), a.truth(5), a.real(6), a.real(7))"},
    {"aten::_native_batch_norm_legit", "toottbff",
     "python::norm_of_batch(a.tensor(0), "
     "a.may_tensor(1), a.may_tensor(2), a.may_tensor(3), a.may_tensor(4), a.truth(5), a.real(6), "
     "a.real(7))"},
    {"aten::_native_batch_norm_legit", "toobff",
     "python::norm_of_batch(a.tensor(0), "
     "a.may_tensor(1), a.may_tensor(2), std::nullopt, std::nullopt, a.truth(3), a.real(4), "
     "a.real(5))"},
    {"aten::_native_batch_norm_legit_no_training", "toottff",
     "python::norm_of_batch(a.tensor(0), "
     "a.may_tensor(1), a.may_tensor(2), a.tensor(3), a.tensor(4), false, a.real(5), a.real(6))"},
    {"aten::_native_batch_norm_legit_functional", "toottbff",
     "python::functional_norm_of_batch(a.tensor(0), a.may_tensor(1), a.may_tensor(2), "
     "a.tensor(3), a.tensor(4), a.truth(5), a.real(6), a.real(7))"},
    {"aten::_pack_padded_sequence", "ttb", "python::pack(a.tensor(0), a.tensor(1), a.truth(2))"},
    {"aten::_pad_packed_sequence", "ttbni",
     "python::unpack(a.tensor(0), a.tensor(1), a.truth(2), "
     "a.number(3), a.integer(4))"},
    {"aten::_native_multi_head_attention", "tttiittttobbo",
     "python::attend(a.tensor(0), a.tensor(1), a.tensor(2), a.integer(3), a.integer(4), "
     "a.tensor(5), a.tensor(6), a.tensor(7), a.tensor(8), a.may_tensor(9), a.truth(10), "
     "a.truth(11), a.may_integer(12))"},
    {"aten::_transformer_encoder_layer_fwd", "tiittttbbfttttttttoo",
     "python::encoder_layer(a.tensor(0), a.integer(1), a.integer(2), a.tensor(3), a.tensor(4), "
     "a.tensor(5), a.tensor(6), a.truth(7), a.truth(8), a.real(9), a.tensor(10), a.tensor(11), "
     "a.tensor(12), a.tensor(13), a.tensor(14), a.tensor(15), a.tensor(16), a.tensor(17), "
     "a.may_tensor(18), a.may_integer(19))"},
    {"aten::linspace", "nno****",
     "linspace(a.number(0), a.number(1), "
     "std::optional<int64_t>(a.may_integer(2)).value_or(100), a.options(3))"},
    {"aten::logspace", "nnof****",
     "logspace(a.number(0), a.number(1), "
     "std::optional<int64_t>(a.may_integer(2)).value_or(100), a.real(3), a.options(4))"},
    {"profiler::_record_function_enter_new", "s*", "python::begin_span(a.text(0))"},
    {"profiler::_record_function_exit", "i", "python::end_span(a.integer(0))"},
};

char letter(const TypePtr& type) {
  switch (type->kind()) {
    case Kind::kInt: return 'i';
    case Kind::kFloat: return 'f';
    case Kind::kBool: return 'b';
    case Kind::kString: return 's';
    case Kind::kNumber: return 'n';
    case Kind::kTensor: return 't';
    case Kind::kList: return 'l';
    case Kind::kDict: return 'd';
    case Kind::kOptional: return 'o';
    case Kind::kDevice: return 'v';
    default: return '?';
  }
}

}  // namespace

const Special* special_of(const Operator& op) {
  for (const Special& special : kSpecial) {
    if (special.name != op.name || special.types.size() != op.parameters.size()) continue;
    bool fits = true;
    for (size_t i = 0; fits && i < op.parameters.size(); ++i) {
      const char wanted = special.types[i], got = letter(op.parameters[i].type);
      fits = wanted == '*' || wanted == got || (wanted == 'r' && (got == 'i' || got == 'f'));
    }
    if (fits) return &special;
  }
  return nullptr;
}

}  // namespace ramet::script
