// What a compilation unit declares from printed code, and what it refuses.
#include <gtest/gtest.h>

#include "autograd/ops.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_texts.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;
using ClassKind = ClassInfo::Kind;

// Printed by PyTorch 2.15.
const char* const kNet = R"(class M(Module):
  __parameters__ = ["w", ]
  __buffers__ = ["b", ]
  __forward_hooks__ = ["hook", ]
  w : Tensor
  b : Tensor
  spare : Optional[Tensor]
  training : bool
  u : Union[int, NoneType, str]
  dd : Dict[str, List[int]]
  tu : Tuple[int, float, str]
  dev : Device
  m : __torch__.MIf
  col : __torch__.Color
  __annotations__["0"] = __torch__.sub.___torch_mangle_0.Linear
  c : Final[Tuple[int, int]] = (1, 2)
  eps : Final[float] = 1.0000000000000001e-05
  name : Final[str] = "LSTM"
  none : Final[NoneType] = None
  def forward(s: __torch__.M,
    x: Tensor,
    p: __torch__.Pt,
    sizes: List[int]=[1, 2],
    scale: float=2,
    mode: Optional[str]=None) -> Tuple[Tensor, int]:
    return (x, 1)
  def hook(self, i, o: Tensor):
    return o
class Color(Enum):
  RED = 1
  GREEN = 2
class MIf(ModuleInterface):
  def forward(self, x: Tensor) -> Tensor:
    pass
class Pt(NamedTuple):
  x : int
  y : Optional[Tensor]
class Plain:
  a : int
  next : Optional[__torch__.Plain]
  def go(self: __torch__.Plain,
    x: Tensor) -> Tensor:
    return x
def helper(x: Tensor,
    k: int=3,
    d: Device=torch.device("cpu"),
    t: Tensor=CONSTANTS.c0,
    l: List[Optional[int]]=[1, None],
    col: __torch__.Color=__torch__.Color.RED) -> Tensor:
  return x
)";
const char* const kLinear = R"(class Linear(Module):
  __parameters__ = ["weight", ]
  weight : Tensor
  running : Tensor
  training : bool
  def forward(self: __torch__.sub.___torch_mangle_0.Linear,
    input: Tensor) -> Tensor:
    return input
)";

std::shared_ptr<CompilationUnit> net() {
  return unit_of({{"__torch__", kNet}, {"__torch__.sub.___torch_mangle_0", kLinear}}, {},
                 {Tensor(ones({2}))});
}

TEST(Unit, Classes) {
  const auto unit = net();
  ClassInfo* const m = unit->class_named("__torch__.M");
  EXPECT_EQ(m, unit->class_named("__torch__.M"));
  EXPECT_EQ(m->kind, ClassKind::kModule);
  EXPECT_EQ(m->type->text(), "__torch__.M");
  EXPECT_EQ(m->type->info(), m);
  ASSERT_EQ(m->attributes.size(), 11u);
  std::string types;
  for (const auto& a : m->attributes) types += a.name + ": " + a.type->text() + "\n";
  EXPECT_EQ(types,
            "w: Tensor\nb: Tensor\nspare: Optional[Tensor]\ntraining: bool\n"
            "u: Union[int, NoneType, str]\ndd: Dict[str, List[int]]\ntu: Tuple[int, float, str]\n"
            "dev: Device\nm: __torch__.MIf\ncol: __torch__.Color\n"
            "0: __torch__.sub.___torch_mangle_0.Linear\n");
  EXPECT_TRUE(m->attributes[0].parameter);
  EXPECT_FALSE(m->attributes[0].buffer);
  EXPECT_TRUE(m->attributes[1].buffer);
  EXPECT_FALSE(m->attributes[2].buffer);
  EXPECT_EQ(m->slot("0"), 10);
  EXPECT_EQ(m->slot("c"), -1);
  EXPECT_EQ(m->constants.at("c").toTupleRef().elements()[1].toInt(), 2);
  EXPECT_EQ(m->constants.at("eps").toDouble(), 1e-5);
  EXPECT_EQ(m->constants.at("name").toStringRef(), "LSTM");
  EXPECT_TRUE(m->constants.at("none").isNone());
  EXPECT_EQ(m->hooks, std::vector<std::string>{"hook"});
  EXPECT_EQ(m->attributes[8].type->kind(), Kind::kInterface);
  EXPECT_EQ(m->attributes[9].type->kind(), Kind::kEnum);
  // A class of another module has been declared with the one that names it. Its text is older than
  // __buffers__: all its tensors but parameters are buffers.
  const ClassInfo* linear = m->attributes[10].type->info();
  EXPECT_TRUE(linear->attributes[0].parameter);
  EXPECT_TRUE(linear->attributes[1].buffer);
  EXPECT_FALSE(linear->attributes[2].buffer);
  EXPECT_EQ(unit->classes().size(), 4u);
}

TEST(Unit, Methods) {
  const auto unit = net();
  ClassInfo* const m = unit->class_named("__torch__.M");
  ScriptFunction* forward = m->method("forward");
  ASSERT_TRUE(forward);
  EXPECT_EQ(m->method("backward"), nullptr);
  EXPECT_EQ(forward->name, "__torch__.M.forward");
  EXPECT_EQ(forward->owner, m);
  EXPECT_EQ(forward->program, nullptr);
  ASSERT_EQ(forward->parameters.size(), 6u);
  EXPECT_EQ(forward->parameters[0].type, m->type);
  const TypePtr point = forward->parameters[2].type;
  EXPECT_EQ(point, unit->type_named("__torch__.Pt"));
  EXPECT_EQ(point->fields(), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(point->element(1)->text(), "Optional[Tensor]");
  EXPECT_FALSE(forward->parameters[1].value);
  EXPECT_EQ(forward->parameters[3].value->toIntVector(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(forward->parameters[4].value->toDouble(), 2);  // of an int
  EXPECT_TRUE(forward->parameters[5].value->isNone());
  EXPECT_EQ(forward->result->text(), "Tuple[Tensor, int]");
  // Without annotations: self, a tensor, an unknown result.
  ScriptFunction* hook = m->method("hook");
  EXPECT_EQ(hook->parameters[0].type, m->type);
  EXPECT_EQ(hook->parameters[1].type->kind(), Kind::kTensor);
  EXPECT_EQ(hook->result, nullptr);
}

TEST(Unit, Functions) {
  const auto unit = net();
  EXPECT_TRUE(unit->has_function("__torch__.helper"));
  EXPECT_FALSE(unit->has_function("__torch__.M"));
  EXPECT_FALSE(unit->has_function("__torch__.other.helper"));
  EXPECT_TRUE(unit->has_type("__torch__.M"));
  EXPECT_TRUE(unit->has_type("__torch__.Pt"));
  EXPECT_FALSE(unit->has_type("__torch__.helper"));
  EXPECT_FALSE(unit->has_type("M"));
  ScriptFunction* helper = unit->function_named("__torch__.helper");
  EXPECT_EQ(helper, unit->function_named("__torch__.helper"));
  EXPECT_EQ(helper->parameters[1].value->toInt(), 3);
  EXPECT_EQ(helper->parameters[2].value->toDevice(), Device(kCPU));
  EXPECT_EQ(helper->parameters[3].value->toTensor().numel(), 2);
  EXPECT_TRUE(helper->parameters[4].value->toListRef()[1].isNone());
  EXPECT_FALSE(helper->parameters[5].value);  // see CompilationUnit::declare()
  EXPECT_ERROR_TEXT(
      unit->function_named("__torch__.other"),
      "[torch::jit::load] got the function \"__torch__.other\", which the code of the "
      "file lacks");
  EXPECT_ERROR_TEXT(unit->class_named("__torch__.Other"),
                    "[torch::jit::load] got the class \"__torch__.Other\", which the code of the "
                    "file lacks");
  EXPECT_ERROR_TEXT(unit->class_named("__torch__.Pt"), "got the NamedTuple \"__torch__.Pt\"");
}

TEST(Unit, Enumerations) {
  const auto unit = net();
  const ClassInfo* color = unit->class_named("__torch__.Color");
  EXPECT_EQ(color->kind, ClassKind::kEnum);
  EXPECT_EQ(color->slot("name"), 0);
  EXPECT_EQ(color->attributes[1].type->kind(), Kind::kInt);
  EXPECT_EQ(color->constants.at("GREEN").toInt(), 2);
  EXPECT_ERROR_TEXT(unit_of("class A(Enum):\n  X = 1\n  Y = \"a\"\n")->class_named("__torch__.A"),
                    "enumerator Y: got the value a, expected an int, a float or a str");
  EXPECT_ERROR_TEXT(unit_of("class A(Enum):\n  X = 1\n  X = 2\n")->class_named("__torch__.A"),
                    "got the enumerator X twice");
}

TEST(Unit, Types) {
  const auto unit = net();
  for (const char* text :
       {"Tensor", "int", "float", "bool", "number", "str", "Device", "Generator", "NoneType", "Any",
        "List[Tuple[int, str]]", "Dict[str, Future[Tensor]]", "Tuple[()]", "Optional[List[Tensor]]",
        "Union[int, str]", "__torch__.Pt", "List[__torch__.M]"})
    EXPECT_EQ(unit->type_of_text(text)->text(), text);
  EXPECT_EQ(unit->type_of_text("Optional[Optional[int]]")->text(), "Optional[int]");
  EXPECT_EQ(unit->type_of_text("Union[int, None]")->text(), "Optional[int]");
  EXPECT_EQ(unit->type_of_text("Optional[Union[int, str]]")->text(), "Union[int, str, NoneType]");
  EXPECT_EQ(unit->type_of_text("Union[int, Union[str, int]]")->text(), "Union[int, str]");
  EXPECT_EQ(unit->type_of_text("Union[int]")->text(), "int");
  EXPECT_EQ(unit->type_of_text("ScalarType")->kind(), Kind::kInt);
  for (const auto& [text, error] : std::vector<std::pair<const char*, const char*>>{
           {"complex", "got the type complex, which this library does not have"},
           {"Lisst[int]", "got \"Lisst\", expected a type"},
           {"List[int, int]", "got List of 2 types, expected 1"},
           {"Dict[int]", "got Dict of 1 types, expected 2"},
           {"int[int]", "got types for int, which has none"},
           {"List[1]", "got an expression, expected a type"},
           {"List[1:2]", "got a slice, expected a type"},
           {"__torch__.Nothing",
            "got the type \"__torch__.Nothing\", which the code of the file lacks"},
           {"int int", "got \"int\", expected the end of a type"},
           {"", "expected an expression"},
           {"Optional[__torch__.torch.classes.quantized.Conv2dPackedParamsBase]",
            "got the custom class \"__torch__.torch.classes.quantized.Conv2dPackedParamsBase\""}})
    EXPECT_ERROR_TEXT(unit->type_of_text(text), error);
  std::string deep = "int", wide = "Union[int";
  for (int i = 0; i < 1000; ++i) deep = "List[" + deep + "]", wide += ", int";
  EXPECT_ERROR_TEXT(unit->type_of_text(deep), "got more than 200 ");
  EXPECT_ERROR_TEXT(unit->type_of_text(wide + "]"), "got a Union of more than 100 types");
}

TEST(Unit, Subtypes) {
  const auto unit = net();
  const auto subtype = [&](const char* a, const char* b) {
    return is_subtype(unit->type_of_text(a), unit->type_of_text(b));
  };
  EXPECT_TRUE(subtype("int", "Optional[int]"));
  EXPECT_TRUE(subtype("None", "Optional[int]"));
  EXPECT_FALSE(subtype("Optional[int]", "int"));
  EXPECT_TRUE(subtype("Optional[int]", "Union[int, str, NoneType]"));
  EXPECT_FALSE(subtype("Union[int, str]", "Union[int, float]"));
  EXPECT_TRUE(subtype("Union[int, float]", "number"));
  EXPECT_FALSE(subtype("Tensor", "number"));
  EXPECT_FALSE(subtype("List[int]", "List[number]"));
  EXPECT_TRUE(subtype("List[int]", "Any"));
  EXPECT_TRUE(subtype("Tuple[int, None]", "Tuple[number, Optional[str]]"));
  EXPECT_FALSE(subtype("Tuple[int]", "Tuple[int, int]"));
  EXPECT_TRUE(subtype("__torch__.Pt", "Tuple[int, Optional[Tensor]]"));
  EXPECT_FALSE(subtype("Tuple[int, Optional[Tensor]]", "__torch__.Pt"));
  EXPECT_TRUE(subtype("Future[int]", "Future[Optional[int]]"));
  // Classes with all methods of an interface, with as many parameters:
  EXPECT_TRUE(subtype("__torch__.sub.___torch_mangle_0.Linear", "__torch__.MIf"));
  EXPECT_FALSE(subtype("__torch__.M", "__torch__.MIf"));
  EXPECT_FALSE(subtype("__torch__.Plain", "__torch__.MIf"));
  EXPECT_FALSE(subtype("__torch__.MIf", "__torch__.M"));
  EXPECT_TRUE(same(unit->type_of_text("Union[int, str]"), unit->type_of_text("Union[str, int]")));
  EXPECT_FALSE(same(unit->type_of_text("__torch__.M"), net()->type_of_text("__torch__.M")));
}

TEST(Unit, UnifiedTypes) {
  const auto unit = net();
  const auto unified = [&](const char* a, const char* b) {
    const TypePtr type = unify(unit->type_of_text(a), unit->type_of_text(b));
    return type ? type->text() : "nothing";
  };
  EXPECT_EQ(unified("int", "int"), "int");
  EXPECT_EQ(unified("int", "None"), "Optional[int]");
  EXPECT_EQ(unified("Optional[int]", "int"), "Optional[int]");
  EXPECT_EQ(unified("int", "float"), "nothing");
  EXPECT_EQ(unified("Tuple[int, None]", "Tuple[int, str]"), "Tuple[int, Optional[str]]");
  EXPECT_EQ(unified("Tuple[int, int]", "Tuple[int, str]"), "nothing");
  EXPECT_EQ(unified("Optional[Tuple[int, None]]", "Tuple[None, int]"),
            "Optional[Tuple[Optional[int], Optional[int]]]");
  EXPECT_EQ(unified("int", "Union[int, str]"), "Union[int, str]");
  EXPECT_EQ(unified("List[int]", "List[str]"), "nothing");
  EXPECT_EQ(unified("Future[int]", "Future[None]"), "Future[Optional[int]]");
}

TEST(Unit, ValuesHaveTypes) {
  const auto unit = net();
  const auto has = [&](const IValue& value, const char* type) {
    return has_type(value, unit->type_of_text(type));
  };
  EXPECT_TRUE(has(1, "number"));
  EXPECT_FALSE(has(1, "float"));
  EXPECT_FALSE(has(true, "int"));
  EXPECT_TRUE(has(IValue(), "Optional[int]"));
  EXPECT_FALSE(has(IValue(), "int"));
  EXPECT_TRUE(has("a", "Union[int, str]"));
  EXPECT_FALSE(has(1.5, "Union[int, str]"));
  EXPECT_TRUE(has(std::vector<int64_t>{1}, "List[int]"));
  EXPECT_FALSE(has(std::vector<int64_t>{}, "List[float]"));
  IValue::GenericList list;
  list.push_back("a");
  EXPECT_TRUE(has(list, "List[str]"));
  list.push_back(IValue());
  EXPECT_FALSE(has(list, "List[str]"));
  EXPECT_TRUE(has(list, "List[Optional[str]]"));
  EXPECT_TRUE(has(list, "Any"));
  IValue::GenericDict dict;
  dict.insert("a", std::vector<int64_t>{1});
  EXPECT_TRUE(has(dict, "Dict[str, List[int]]"));
  EXPECT_FALSE(has(dict, "Dict[int, List[int]]"));
  EXPECT_TRUE(has(std::make_tuple(1, 2.0), "Tuple[int, float]"));
  EXPECT_FALSE(has(std::make_tuple(1, 2.0), "Tuple[int, float, int]"));
  const auto names =
      std::make_shared<IValue::Tuple::Names>(IValue::Tuple::Names{"__torch__.Pt", {"x", "y"}});
  const IValue point(std::make_shared<IValue::Tuple>(std::vector<IValue>{1, IValue()}, names));
  EXPECT_TRUE(has(point, "__torch__.Pt"));
  EXPECT_TRUE(has(point, "Tuple[int, None]"));
  EXPECT_FALSE(has(std::make_tuple(1, IValue()), "__torch__.Pt"));
  ClassInfo* const linear = unit->class_named("__torch__.sub.___torch_mangle_0.Linear");
  const IValue object{IValue::ObjectPtr(std::make_shared<Object>(unit, linear))};
  EXPECT_TRUE(has(object, "__torch__.MIf"));
  EXPECT_TRUE(has(object, "__torch__.sub.___torch_mangle_0.Linear"));
  EXPECT_FALSE(has(object, "__torch__.M"));
  EXPECT_FALSE(has(1, "__torch__.M"));
}

// Classes refer to one another in any way.
TEST(Unit, Cycles) {
  const auto unit = unit_of(
      "class A(Module):\n  b : __torch__.B\n  own : __torch__.A\n"
      "class B(Module):\n  a : List[__torch__.A]\n"
      "  def f(self, x: __torch__.A) -> __torch__.B:\n    return self\n");
  const ClassInfo* a = unit->class_named("__torch__.A");
  EXPECT_EQ(a->attributes[1].type->info(), a);
  EXPECT_EQ(a->attributes[0].type->info()->attributes[0].type->element()->info(), a);
  EXPECT_ERROR_TEXT(unit_of("class A(NamedTuple):\n  b : List[__torch__.B]\n"
                            "class B(NamedTuple):\n  a : Optional[__torch__.A]\n")
                        ->type_named("__torch__.A"),
                    "got the NamedTuple A with itself as a field");
  // Long chains take no stack, or end at the limit.
  std::string classes, tuples;
  for (int i = 0; i < 20000; ++i) {
    const std::string self = std::to_string(i), next = std::to_string((i + 1) % 20000);
    classes += "class A" + self + "(Module):\n  a : __torch__.A" + next + "\n";
    tuples += "class A" + self + "(NamedTuple):\n  a : __torch__.A" + next + "\n";
  }
  const auto chain = unit_of(classes);
  chain->class_named("__torch__.A5");
  EXPECT_EQ(chain->classes().size(), 20000u);
  const auto long_tuples = unit_of(tuples);
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_ERROR_TEXT(long_tuples->type_named("__torch__.A5"),
                      "got more than 200 NamedTuples inside each other (a limit of load)");
}

TEST(Unit, Refused) {
  const auto refused = [](const std::string& text) {
    return error_of([&] { unit_of(text)->class_named("__torch__.A"); });
  };
  EXPECT_EQ(refused("class A(Module):\n  x : complex\n"),
            "[torch::jit::load] model.py:100 (code/__torch__.py:2): got the type complex, which "
            "this library does not have");
  for (const auto& [text, error] : std::vector<std::pair<const char*, const char*>>{
           {"class A(Other):\n  pass\n",
            "class A: got the base class \"Other\", expected Module, "},
           {"class A:\n  x = 1\n", "attribute x: expected its type"},
           {"class A:\n  x : int\n  x : int\n", "got the attribute x twice"},
           {"class A:\n  def f(self):\n    pass\n  def f(self):\n    pass\n",
            "got the method f twice"},
           {"class A:\n  def f():\n    pass\n", "method f: got no parameters, expected self"},
           {"class A:\n  def f(self, x, x):\n    pass\n", "got two parameters x"},
           {"class A:\n  __forward_hooks__ = [\"h\", ]\n", "got the hook h, expected one of its"},
           {"class A:\n  x : Final[int] = 1.5\n", "got the value 1.5, expected a int"},
           {"class A:\n  x : Final[int] = f()\n", "got an expression, expected a constant"},
           {"class A:\n  x : Final[int] = CONSTANTS.c0\n",
            "got CONSTANTS.c0, expected one of the "},
           {"class A:\n  pass\nclass A:\n  pass\n", "got a second definition of \"A\""},
           {"class A(NamedTuple):\n  x : int\n  x : int\n", "got the field x twice"},
           {"class A:\n  r : "
            "Optional[__torch__.torch.classes.quantized.EmbeddingPackedParamsBase]\n",
            "got the custom class \"__torch__.torch.classes.quantized.EmbeddingPackedParamsBase\", "
            "which a"}})
    EXPECT_TRUE(contains(refused(text), error)) << refused(text);
  // A class that is wrong is so each time, and others are not.
  const auto unit = unit_of(
      "class A:\n  x : complex\nclass B:\n  a : __torch__.A\nclass C:\n  b : __torch__.B\n");
  EXPECT_EQ(unit->class_named("__torch__.C")->attributes.size(), 1u);
  for (int twice = 0; twice < 2; ++twice)
    EXPECT_ERROR_TEXT(unit->class_named("__torch__.A"), "got the type complex");
  EXPECT_EQ(unit->class_named("__torch__.B")->attributes.size(), 1u);
  Limits limits;
  limits.text_bytes = 5;
  EXPECT_ERROR_TEXT(unit_of("class A: pass", limits)->class_named("__torch__.A"),
                    "got a text of 13 bytes, expected at most 5 (a limit of load)");
}

}  // namespace
}  // namespace ramet::script
