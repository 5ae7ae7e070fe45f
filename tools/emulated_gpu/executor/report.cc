#include "tools/emulated_gpu/executor/report.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "tools/emulated_gpu/executor/settings.h"

namespace ramet::emulated {
namespace {

struct Symbol {
  std::string function = "?", line = "?";
};

/// The file's path as a shell word.
std::string quoted(const char* path) {
  std::string word = "'";
  for (; *path; ++path) word += *path == '\'' ? std::string("'\\''") : std::string(1, *path);
  return word + "'";
}

std::string first_word(const char* line, const char* ends) {
  return std::string(line, std::strcspn(line, ends));
}

/// "void ramet::(anonymous namespace)::softmax<float>(float const*, int)" is softmax<float>.
std::string short_name(const std::string& demangled) {
  std::string name;
  int depth = 0;  // of <> and of the ( of an anonymous namespace
  for (size_t i = 0; i < demangled.size(); ++i) {
    const char c = demangled[i];
    if (c == '<') ++depth;
    if (c == '>') --depth;
    if (depth == 0 && demangled.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
      continue;
    }
    if (depth == 0 && c == '(') break;  // the parameters
    if (depth == 0 && (c == ' ' || c == ':')) name.clear();
    else name += c;
  }
  return name;
}

Symbol look_up(const void* code) {
  Symbol symbol;
  Dl_info module{};
  void* map = nullptr;
  if (!dladdr1(code, &module, &map, RTLD_DL_LINKMAP) || !module.dli_fname) return symbol;
  // The offset from the file's load address, which is 0 in a program that is not
  // position-independent.
  const size_t offset = reinterpret_cast<size_t>(code) - static_cast<link_map*>(map)->l_addr;
  char address[32], line[512];
  std::snprintf(address, sizeof address, "0x%zx", offset);
  const std::string command =
      "addr2line -f -C -s -e " + quoted(module.dli_fname) + " " + address + " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return symbol;
  if (std::fgets(line, sizeof line, pipe)) symbol.function = first_word(line, "\n");
  if (std::fgets(line, sizeof line, pipe)) symbol.line = first_word(line, " \n");
  pclose(pipe);
  symbol.function = short_name(symbol.function);
  // A generated x.cu.cc has one line, which includes x.cu. Some versions of binutils confuse the
  // two files.
  const size_t generated = symbol.line.find(".cu.cc:");
  if (generated != std::string::npos) symbol.line.erase(generated + 3, 3);
  return symbol;
}

const Symbol& symbol_of(const void* code) {
  static std::mutex mutex;
  static std::map<const void*, Symbol> known;
  std::lock_guard<std::mutex> lock(mutex);
  const auto found = known.find(code);
  return found != known.end() ? found->second : known.emplace(code, look_up(code)).first->second;
}

}  // namespace

std::string place(const char* file, int line) {
  if (!file) file = "?";
  const char* slash = std::strrchr(file, '/');
  std::string text = slash ? slash + 1 : file;
  return line ? text + ":" + std::to_string(line) : text;
}

std::string text_of(uint3 index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

std::string source_line_of(const void* code) { return symbol_of(code).line; }

std::string function_name_of(const void* code) { return code ? symbol_of(code).function : "?"; }

void publish(const std::string& report) {
  if (settings().print_reports) std::fprintf(stderr, "%s\n", report.c_str());
  if (settings().abort_on_fault) std::abort();
}

}  // namespace ramet::emulated
