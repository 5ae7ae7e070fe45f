#include "nn/module/class_name.h"

#include "nn/module/any_value.h"
#include "runtime/base/demangle.h"

// Note [The compatibility prefix]. No header declares it: the compatibility headers define it as an
// inline function, which may not be declared weak.
extern "C" __attribute__((weak, visibility("default"))) const char* ramet_root_namespace();

namespace ramet::nn::detail {
namespace {
constexpr std::string_view kOwn = "ramet::";
}  // namespace

const char* root_namespace() { return ramet_root_namespace ? ramet_root_namespace() : "ramet"; }

std::string qualified(std::string_view path) {
  return std::string(root_namespace()).append("::").append(path);
}

std::string with_root_namespace(std::string text) {
  const std::string root = std::string(root_namespace()) + "::";
  if (root == kOwn) return text;
  const auto in_name = [](char c) {
    return ramet::detail::is_letter_or_digit(c) || c == '_' || c == ':';
  };
  for (size_t at = text.find(kOwn); at != std::string::npos; at = text.find(kOwn, at)) {
    if (at > 0 && in_name(text[at - 1])) {
      at += kOwn.size();  // another namespace of that name, inside one of the user's
      continue;
    }
    text.replace(at, kOwn.size(), root);
    at += root.size();
  }
  return text;
}

std::string type_name(const std::type_info& type) {
  return with_root_namespace(ramet::detail::demangled(type.name()));
}

}  // namespace ramet::nn::detail
