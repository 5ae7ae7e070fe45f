#include "tools/see/source_lines.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <execinfo.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "runtime/base/demangle.h"

// ./tools/install adds it to the library; in other builds it has no address.
extern "C" __attribute__((weak, visibility("default"))) const char ramet_installed;

namespace ramet {
namespace see {

std::vector<uintptr_t> return_addresses() {
  std::array<void*, 96> frames;
  const int n = backtrace(frames.data(), static_cast<int>(frames.size()));
  std::vector<uintptr_t> out;
  for (int i = 1; i < n; ++i)  // 0: this function
    out.push_back(reinterpret_cast<uintptr_t>(frames[static_cast<size_t>(i)]) - 1);
  return out;
}

namespace detail {
namespace {

constexpr std::string_view kFolders[] = {"runtime/",  "kernels/",   "autograd/",    "nn/",
                                         "parallel/", "tools/see/", "tools/compat/"};

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

// The path before "tools/see/source_lines.cc" in this file's name: the library's tree, as the
// compiler got it.
std::string_view tree() {
  constexpr std::string_view mine = __FILE__, below = "tools/see/source_lines.cc";
  return mine.substr(0, mine.size() - below.size());
}

}  // namespace

bool is_library_file(const std::string& file) {
  const std::string_view f = file;
  if (begins(f, "/usr/include/") || begins(f, "/usr/lib/")) return true;
  // "include/ramet/0.1/autograd/..." of an installation, whatever is before.
  if (f.find("/include/ramet/") != std::string_view::npos) return true;
  if (&ramet_installed) return false;
  std::string_view below = f;
  if (begins(below, tree())) below.remove_prefix(tree().size());
  else return false;
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [below](std::string_view folder) { return begins(below, folder); });
}

bool is_library_function(const std::string& function) {
  std::string_view f = function;
  if (begins(f, "_Z")) {  // too much for the demangler: _ZZN5ramet2nn..., _ZNKSt8function...
    f = f.substr(std::min(f.find_first_not_of("ZNKL", 2), f.size()));
    for (const std::string_view space : {"5ramet", "St", "Ss", "9__gnu_cxx"})
      if (begins(f, space)) return true;
    return false;
  }
  // "void std::f<...>(...)", "ramet::Tensor ramet::f(...)": the name is what stands before the
  // first '(' or '<', after the last blank.
  f = f.substr(0, f.find_first_of("(<"));
  if (const size_t blank = f.rfind(' '); blank != std::string_view::npos)
    f.remove_prefix(blank + 1);
  for (const std::string_view space : {"ramet::", "std::", "__gnu_cxx::", "torch::", "c10::"})
    if (begins(f, space)) return true;
  return f.empty() || f == "_start" || begins(f, "__libc") || begins(f, "_Unwind") ||
         begins(f, "ramet_");
}

}  // namespace detail

struct SourceLines::Dwarf {
  Dwfl* dwfl = nullptr;
  char* path = nullptr;  // of separate debugging information: as elfutils says
  Dwfl_Callbacks calls{};

  Dwarf() {
    calls.find_elf = dwfl_linux_proc_find_elf;
    calls.find_debuginfo = dwfl_standard_find_debuginfo;
    calls.debuginfo_path = &path;
    dwfl = dwfl_begin(&calls);
    if (!dwfl) return;
    dwfl_report_begin(dwfl);
    dwfl_linux_proc_report(dwfl, getpid());
    dwfl_report_end(dwfl, nullptr, nullptr);
  }
  ~Dwarf() {
    if (dwfl) dwfl_end(dwfl);
  }
};

SourceLines::SourceLines() : dwarf_(new Dwarf) {}
SourceLines::~SourceLines() { delete dwarf_; }

namespace {

std::string full_name(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (dwarf_attr_integrate(die, name, &attribute))
      if (const char* text = dwarf_formstring(&attribute)) return ramet::detail::demangled(text);
  const char* plain = dwarf_diename(die);
  return plain ? plain : "";
}

std::string absolute(const char* file, Dwarf_Die* unit) {
  if (!file) return {};
  // A name below the folder of the compilation becomes relative, as the compiler got it.
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
  std::string name = file;
  if (folder && name.rfind(std::string(folder) + "/", 0) == 0)
    name.erase(0, std::string(folder).size() + 1);
  return name.rfind("./", 0) == 0 ? name.substr(2) : name;
}

bool is_system_library(Dwfl_Module* module) {
  const char* path = nullptr;
  dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &path, nullptr);
  const std::string_view p = path ? path : "";
  return p.rfind("/lib", 0) == 0 || p.rfind("/usr/lib", 0) == 0 || p.find("vdso") != p.npos;
}

}  // namespace

const std::vector<SourceLines::Frame>& SourceLines::frames_at(uintptr_t address) {
  const auto [at, fresh] = known_.try_emplace(address);
  std::vector<Frame>& frames = at->second;
  if (!fresh || !dwarf_->dwfl) return frames;
  Dwfl_Module* const module = dwfl_addrmodule(dwarf_->dwfl, address);
  if (!module) return frames;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, address, &bias);
  Dwfl_Line* const line = dwfl_module_getsrc(module, address);
  std::string file;
  int number = 0;
  if (line) {
    const char* name = dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr);
    file = absolute(name, unit);
  }
  Dwarf_Die* scopes = nullptr;
  int count = unit ? dwarf_getscopes(unit, address - bias, &scopes) : 0;
  if (count > 0) {
    Dwarf_Die innermost = scopes[0];
    std::free(scopes);
    scopes = nullptr;
    count = dwarf_getscopes_die(&innermost, &scopes);
  }
  for (int i = 0; i < count; ++i) {  // innermost first
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
    frames.push_back({full_name(&scopes[i]), file, number});
    if (tag == DW_TAG_subprogram) break;
    // Where it was called is the line of the function around it.
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    Dwarf_Files* files = nullptr;
    file.clear(), number = 0;
    if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &value) == 0 &&
        dwarf_getsrcfiles(unit, &files, nullptr) == 0)
      file = absolute(dwarf_filesrc(files, value, nullptr, nullptr), unit);
    if (dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &value) == 0)
      number = static_cast<int>(value);
  }
  std::free(scopes);
  if (frames.empty())
    if (const char* symbol = dwfl_module_addrname(module, address)) {
      if (file.empty() && is_system_library(module)) file = "/usr/lib/";
      frames.push_back({ramet::detail::demangled(symbol), file, number});
    }
  return frames;
}

SourceRow SourceLines::program_line(const std::vector<uintptr_t>& addresses) {
  for (const uintptr_t address : addresses)
    for (const Frame& f : frames_at(address)) {
      const bool library = f.file.empty() ? detail::is_library_function(f.function)
                                          : detail::is_library_file(f.file);
      if (!library) return {f.file, f.function, f.line};
    }
  return {};
}

}  // namespace see
}  // namespace ramet
