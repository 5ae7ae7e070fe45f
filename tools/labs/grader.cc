#include "tools/labs/grader.h"

#include <typeinfo>

#include "runtime/base/demangle.h"
#include "runtime/devices/generator.h"

namespace ramet::labs {

void Report::line(const std::string& text) {
  std::string flat;
  for (char c : text) flat += c == '\n' ? std::string("\\n") : std::string(1, c);
  std::fprintf(to_, "%s\n", flat.c_str());
  std::fflush(to_);  // the next line may never come
}

void Report::step(const std::string& what, const std::string& hint,
                  const std::function<std::string()>& body) {
  if (!passed_) return;
  line("begin\t" + what);
  std::string text;
  try {
    line("ok\t" + what + "\t" + body());
    return;
  } catch (const Wrong& w) { text = w.text; } catch (const std::exception& e) {
    text = words("your code threw ", ramet::detail::demangled(typeid(e).name()), ": ", e.what());
  } catch (...) { text = "your code threw something that is no std::exception"; }
  passed_ = false;
  line("wrong\t" + what + "\t" + text);
  line("hint\t" + hint);
}

int run(int argc, char** argv, const std::function<void(Report&)>& grade) {
  FILE* to = argc == 2 ? std::fopen(argv[1], "w") : nullptr;
  if (!to) {
    std::fprintf(stderr, "usage: %s REPORT\n", argc ? argv[0] : "check");
    return 2;
  }
  manual_seed(kDefaultSeed);
  Report report(to);
  grade(report);
  report.done();
  std::fclose(to);
  return report.passed() ? 0 : 1;
}

}  // namespace ramet::labs
