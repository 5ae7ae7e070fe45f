// How arguments and results are nested (torch.utils._pytree).
#include "nn/script/exported/forward_internal.h"
#include "nn/serialize/json_internal.h"

namespace ramet::script {
namespace {

using Kind = Type::Kind;

Json parsed(const Field& at, const std::string& text, int64_t limit) {
  try {
    return serialize::detail::parse_json("torch::jit::load", "text of a structure", text,
                                         static_cast<int>(std::min<int64_t>(4 * limit, 10000)));
  } catch (const Error& error) { at.bad(error.what()); }
}

Structure read_part(const Field& part, const Field& place, int64_t depth) {
  if (depth < 0) place.bad("got values nested too deep (a limit of load)");
  Structure made;
  const auto type = part.find("type");
  if (!type) return made;
  for (const Field& child : part["children_spec"].items())
    made.items.push_back(read_part(child, place, depth - 1));
  const std::string name = type->text();
  std::vector<std::string> keys;
  bool has_keys = false;
  const bool named = name == "collections.namedtuple";
  const auto text = part.find("context");
  if (named) {
    if (text) made.class_name = text->text();
  } else if (text) {
    const Json context = parsed(place, text->text(), depth);
    if (context.is_array()) {
      has_keys = true;
      bool text_keys = false;
      for (const Json& key : context) {
        text_keys = text_keys || key.is_string();
        made.number_keys = made.number_keys || key.is_number_integer();
        if (key.is_string() || key.is_number_integer())
          made.keys.push_back(key.is_string() ? key.get<std::string>() : key.dump());
        else has_keys = false;
      }
      // A dictionary of the language has keys of one kind.
      has_keys =
          has_keys && made.keys.size() == made.items.size() && !(text_keys && made.number_keys);
    }
  }
  if (named || name == "builtins.tuple" || name == "torch.Size" ||
      name.rfind("torch.return_types.", 0) == 0) {
    made.kind = Structure::Kind::kTuple;
  } else if (name == "builtins.list" || name.find("immutable_list") != std::string::npos) {
    made.kind = Structure::Kind::kList;
  } else if (has_keys) {  // dict, OrderedDict, and classes that are used like dictionaries
    made.kind = Structure::Kind::kDict;
  } else {
    place.bad("got values in a \"", name.substr(0, 200),
              "\", expected tuples, lists, and dictionaries with texts or ints as keys");
  }
  return made;
}

}  // namespace

Structure Structure::read(const Field& at, const std::string& text, int64_t limit) {
  const Json json = parsed(at, text, limit);
  static const std::string file = "structure of arguments or results";
  const std::vector<Field> parts = Field(json, file).items();
  if (parts.size() != 2 || parts[0].integer() != 1)
    at.bad("got another version of pytree's text, expected 1");
  return read_part(parts[1], at, limit);
}

size_t Structure::leaves() const {
  if (kind == Kind::kLeaf) return 1;
  size_t count = 0;
  for (const Structure& item : items) count += item.leaves();
  return count;
}

std::string Structure::key_text(size_t i) const { return number_keys ? keys[i] : quoted(keys[i]); }

TypePtr Structure::type(const std::vector<TypePtr>& leaves, size_t& next) const {
  if (kind == Kind::kLeaf) return leaves.at(next++);
  std::vector<TypePtr> types;
  types.reserve(items.size());
  for (const Structure& item : items) types.push_back(item.type(leaves, next));
  if (kind == Kind::kTuple) return Type::tuple(std::move(types));
  TypePtr element = types.empty() ? Type::of(Type::Kind::kTensor) : types[0];
  for (const TypePtr& one : types)
    if (!same(one, element)) element = Type::of(Type::Kind::kAny);
  if (kind == Kind::kList) return Type::list(element);
  return Type::dict(Type::of(number_keys ? Type::Kind::kInt : Type::Kind::kString), element);
}

}  // namespace ramet::script
