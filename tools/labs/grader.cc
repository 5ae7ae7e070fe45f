#include "tools/labs/grader.h"

#include <unistd.h>

#include <cstring>
#include <typeinfo>

#include "runtime/base/demangle.h"
#include "runtime/devices/generator.h"

namespace ramet::labs {
namespace {

// The key, then the tickets, one a line. Plain memory: no constructor has run when it is filled.
char given[4096];

extern "C" void take_tickets(int argc, char** argv, char**) {
  if (argc != 3 || std::strcmp(argv[2], "--tickets") != 0) return;
  size_t size = 0;
  for (ssize_t n; size + 1 < sizeof given &&
                  (n = ::read(STDIN_FILENO, given + size, sizeof given - 1 - size)) > 0;)
    size += size_t(n);
}
// Functions that run before every static constructor. lab.py refuses an answer with one of them.
[[gnu::section(".preinit_array"), gnu::used]] void (*first)(int, char**, char**) = take_tickets;

std::string word(size_t number) {
  const char* at = given;
  for (; number > 0 && at; --number)
    if ((at = std::strchr(at, '\n'))) ++at;
  return at ? std::string(at, std::strcspn(at, "\n")) : std::string();
}

}  // namespace

Report::Report(FILE* to, const char* key) : to_(to), has_key_(key == word(0)) {}

std::string Report::ticket() { return has_key_ ? word(used_++) : std::string(); }

void Report::line(const std::string& text) {
  std::string flat;
  for (char c : text) flat += c == '\n' ? std::string("\\n") : std::string(1, c);
  std::fprintf(to_, "%s\n", flat.c_str());
  std::fflush(to_);  // the next line may never come
}

void Report::step(const std::string& what, const std::string& hint,
                  const std::function<std::string()>& body) {
  if (!passed_) return;
  line("begin\t" + what + "\t" + hint);
  std::string text;
  try {
    const std::string seen = body();
    line("ok\t" + what + "\t" + seen + "\t" + ticket());
    return;
  } catch (const Wrong& w) { text = w.text; } catch (const std::exception& e) {
    text = words("your code threw ", ramet::detail::demangled(typeid(e).name()), ": ", e.what());
  } catch (...) { text = "your code threw something that is no std::exception"; }
  passed_ = false;
  line("wrong\t" + what + "\t" + text);
}

void Report::done() { line("done\t" + (passed_ ? ticket() : std::string())); }

int run(int argc, char** argv, const char* key, const std::function<void(Report&)>& grade) {
  FILE* to = argc == 2 || argc == 3 ? std::fopen(argv[1], "w") : nullptr;
  if (!to) {
    std::fprintf(stderr, "usage: %s REPORT [--tickets]\n", argc ? argv[0] : "check");
    return 2;
  }
  manual_seed(kDefaultSeed);
  Report report(to, key);
  grade(report);
  report.done();
  std::fclose(to);
  return report.passed() ? 0 : 1;
}

}  // namespace ramet::labs
