// Writes a header that names all that operators' expressions call in Ramet: it compiles where each
// name is public.
#include <iostream>
#include <set>

#include "nn/script/translation/translation_internal.h"

int main() {
  const auto names = ramet::script::names_in_expressions();
  std::cout << "#pragma once\n#include <cstddef>\n\n#include \"ramet.h\"\n\n"
               "namespace ramet_names {\n";
  size_t number = 0;
  for (const std::string& name : names)
    std::cout << "namespace n" << number++ << " { using ramet::" << name << "; }\n";
  std::cout << "}  // namespace ramet_names\n\nnamespace ramet::translation {\n"
            << "inline constexpr size_t kNamesInExpressions = " << names.size() << ";\n}\n";
  return std::cout ? 0 : 1;
}
