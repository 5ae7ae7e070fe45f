// ./tools/compare_torch: runs the same random draws here and in LibTorch and compares the results.
// The script of that name usually calls this program; it builds the peer.
#include <dlfcn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tools/compare/files.h"
#include "tools/compare/known.h"
#include "tools/compare/tolerance.h"

namespace {

struct File {
  const char* name;
  CompareArm own, peer;
};

std::string shown(const CompareResult& r, int64_t i) {
  char text[40];
  if (r.reals && std::isnan(r.reals[i])) return "nan";  // of either sign
  if (r.reals) std::snprintf(text, sizeof text, "%.9g", r.reals[i]);
  else std::snprintf(text, sizeof text, "%lld", static_cast<long long>(r.wholes[i]));
  return text;
}
std::string shown(const int64_t* sizes, int rank) {
  std::string text = "[";
  for (int d = 0; d < rank; ++d) text += (d ? "," : "") + std::to_string(sizes[d]);
  return text + "]";
}

/// The line of a text (bytes, cases_print.inc) in which element `i` lies.
std::string line_of(const CompareResult& r, int64_t i) {
  int64_t first = std::min(i, r.count), last = first;
  while (first > 0 && r.wholes[first - 1] != '\n') --first;
  while (last < r.count && r.wholes[last] != '\n') ++last;
  return '"' + std::string(r.wholes + first, r.wholes + last) + '"';
}

/// The distance of two elements; infinite, where one of them is no finite number.
double distance(const CompareResult& a, const CompareResult& b, int64_t i) {
  if (!a.reals)
    return std::fabs(static_cast<double>(a.wholes[i]) - static_cast<double>(b.wholes[i]));
  const double d = std::fabs(a.reals[i] - b.reals[i]);
  return std::isnan(d) ? INFINITY : d;
}

/// The difference between `a` (this library's) and `b` (LibTorch's) in words, or "".
std::string difference(const CompareResult& a, const CompareResult& b, const CompareReport& r,
                       double scale) {
  if (std::strcmp(a.label, b.label)) return std::string(a.label) + ", LibTorch " + b.label;
  const std::string what = a.label;
  if (std::strcmp(a.dtype, b.dtype)) return what + ": " + a.dtype + ", LibTorch " + b.dtype;
  if (what.rfind("text", 0) == 0) {
    const int64_t common = std::min(a.count, b.count);
    const int64_t i = std::mismatch(a.wholes, a.wholes + common, b.wholes).first - a.wholes;
    if (i < common || a.count != b.count)
      return what + ", character " + std::to_string(i) + ": " + line_of(a, i) + ", LibTorch " +
             line_of(b, i);
  }
  if (a.rank != b.rank || !std::equal(a.sizes, a.sizes + a.rank, b.sizes))
    return what + ": " + shown(a.sizes, a.rank) + ", LibTorch " + shown(b.sizes, b.rank);
  // Strides are not compared in dimensions of extent 1, nor in empty tensors: they are never used.
  bool same_strides = true;
  for (int d = 0; a.strides && a.count > 0 && d < a.rank; ++d)
    same_strides = same_strides && (a.sizes[d] == 1 || a.strides[d] == b.strides[d]);
  if (!same_strides)
    return what + ": strides " + shown(a.strides, a.rank) + ", LibTorch " +
           shown(b.strides, b.rank);
  const compare::Tolerance& t = compare::tolerance(a.dtype, r.coarsest);
  int64_t first = -1, largest = -1, differ = 0;
  for (int64_t i = 0; i < a.count; ++i) {
    if (a.reals ? compare::close(a.reals[i], b.reals[i], t, r.strict, a.stage, scale)
                : a.wholes[i] == b.wholes[i])
      continue;
    if (differ++ == 0) first = largest = i;
    else if (distance(a, b, i) > distance(a, b, largest)) largest = i;
  }
  if (differ == 0) return "";
  const auto element = [&](int64_t i) {
    return "element " + std::to_string(i) + ": " + shown(a, i) + ", LibTorch " + shown(b, i);
  };
  std::string text = what + " (" + a.dtype + "), " + element(first);
  if (differ > 1)
    text += "; " + std::to_string(differ) + " of " + std::to_string(a.count) +
            " elements differ, most of all " + element(largest);
  return text;
}

const char* const kStages[] = {"the operation", "its gradient", "its second gradient"};

/// A difference between two reports of one draw, or "".
std::string difference(const CompareReport& a, const CompareReport& b) {
  const double scale = std::max(a.scale, b.scale) * a.slack;
  bool numbers = true;  // the second derivative of what is no number is any number
  const int common = std::min(a.count, b.count);
  for (int i = 0; i < common; ++i) {
    for (int64_t k = 0; a.results[i].reals && b.results[i].stage < 2 && k < a.results[i].count; ++k)
      numbers = numbers && std::isfinite(a.results[i].reals[k]);
    if (a.results[i].stage == 2 && !numbers) break;
    const std::string d = difference(a.results[i], b.results[i], a, scale);
    if (!d.empty()) return d;
  }
  // This library may have a second gradient that LibTorch does not have.
  if (b.thrown == 2 && a.thrown != 0 && a.thrown != 1) return "";
  if (a.thrown != b.thrown) {
    if (b.thrown < 0 || (a.thrown >= 0 && a.thrown < b.thrown))
      return std::string(kStages[a.thrown]) + " throws: " + a.message;
    return std::string(kStages[b.thrown]) + " throws in LibTorch only: " + b.message;
  }
  // Second gradients that one of the two leaves out are zeros in the other, up to rounding.
  const CompareReport& longer = a.count > b.count ? a : b;
  bool zeros = true;
  for (int i = common; i < longer.count; ++i)
    for (int64_t k = 0; zeros && k < longer.results[i].count; ++k)
      zeros = longer.results[i].stage == 2 && longer.results[i].reals &&
              (!numbers || compare::close(longer.results[i].reals[k], 0,
                                          compare::tolerance(longer.results[i].dtype, a.coarsest),
                                          false, 2, scale));
  if (a.thrown < 0 && !zeros)
    return "results: " + std::to_string(a.count) + ", LibTorch " + std::to_string(b.count);
  // Last, because an arm that refuses a call, or gives another dtype, makes other draws afterwards.
  if (a.thrown < 0 && std::strcmp(a.text, b.text))
    return std::string("the arms drew differently: LibTorch ") + b.text;
  return "";
}

/// Whether the list, with spaces or bars between its entries, has this one.
bool lists(const char* list, const char* entry, char between) {
  const std::string all = between + std::string(list) + between;
  return all.find(between + std::string(entry) + between) != std::string::npos;
}
/// Whether the words have each of these parts, with bars between them.
bool has_all(const std::string& words, const std::string& parts) {
  for (size_t at = 0; at <= parts.size();) {
    const size_t end = std::min(parts.find('|', at), parts.size());
    if (words.find(parts.substr(at, end - at)) == std::string::npos) return false;
    at = end + 1;
  }
  return true;
}
/// Whether this entry of the table accounts for the difference.
bool accounts(const compare::Known& k, const char* name, const CompareReport& a,
              const CompareReport& b, const std::string& wrong) {
  if (*k.cases && !lists(k.cases, name, ' ')) return false;
  if (!has_all(wrong, k.shows)) return false;
  if (*k.here) return a.thrown >= 0 && std::strstr(a.message, k.here);
  if (*k.there) return b.thrown >= 0 && std::strstr(b.message, k.there);
  return lists(a.known, k.name, '|');
}

/// A report with the first number of its last result changed, and the last number by twice as much.
/// A comparison that misses this change finds nothing.
struct Spoiled {
  CompareReport report;
  std::vector<CompareResult> results;
  std::vector<double> reals;
  std::vector<int64_t> wholes;
  Spoiled(const CompareReport& r, bool spoil) : report(r), results(r.results, r.results + r.count) {
    if (!spoil || results.empty()) return;
    CompareResult& last = results.back();
    if (last.count > 0 && last.reals) {
      reals.assign(last.reals, last.reals + last.count);
      const double by = 2 * (report.scale + std::fabs(reals.front()) + std::fabs(reals.back()));
      reals.front() += by;
      if (last.count > 1) reals.back() += 2 * by;
      last.reals = reals.data();
    } else if (last.count > 0) {
      wholes.assign(last.wholes, last.wholes + last.count);
      ++wholes.front();
      if (last.count > 1) wholes.back() += 2;
      last.wholes = wholes.data();
    }
    report.results = results.data();
  }
};

struct Counts {
  int64_t agreed = 0, refused = 0, differed = 0;
};

/// The present draw, printed when a signal kills the program: some of LibTorch's kernels crash.
char drawing[200];
void say_and_die(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, drawing, std::strlen(drawing));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

class Comparison {
 public:
  Comparison(uint64_t seed, int most, bool spoil) : seed_(seed), most_(most), spoil_(spoil) {}

  void draw(const File& file, int index, uint64_t number, Counts& counts) {
    const char* name = file.own.name(index);
    std::snprintf(drawing, sizeof drawing, "compare: killed by draw %llu of %s, seed %llu\n",
                  static_cast<unsigned long long>(number), name,
                  static_cast<unsigned long long>(seed_));
    const CompareReport& a = *file.own.run(index, seed_, number);
    Spoiled spoiled(*file.peer.run(index, seed_, number), spoil_);
    const CompareReport& b = spoiled.report;
    const std::string wrong = difference(a, b);
    for (const compare::Known& k : compare::kKnown) {
      if (wrong.empty() ? lists(a.known, k.name, '|') : accounts(k, name, a, b, wrong)) {
        Counts& c = known_[k.name];
        ++(wrong.empty() ? c.agreed : c.differed);
        ++counts.agreed;
        return;
      }
    }
    if (wrong.empty()) {
      ++(a.thrown == 0 ? counts.refused : counts.agreed);
      return;
    }
    if (++counts.differed <= most_)
      std::printf("DIFFERS %s, draw %llu of seed %llu\n  drawn: %s\n  %s\n", name,
                  static_cast<unsigned long long>(number), static_cast<unsigned long long>(seed_),
                  a.text, wrong.c_str());
    std::fflush(stdout);
  }
  /// So many draws without a difference mean that there is none. Some conditions are met often and
  /// rarely show a difference.
  static constexpr int64_t kStale = 400;
  /// Reports entries of the table of deliberate differences that no draw shows any more; returns
  /// their number.
  int stale() const {
    int count = 0;
    for (const auto& [name, counts] : known_) {
      const compare::Known* entry = nullptr;
      for (const compare::Known& k : compare::kKnown)
        if (name == k.name) entry = &k;
      if (!entry) {
        std::printf("NO SUCH ENTRY in known.h: %s\n", name.c_str());
        ++count;
      } else if (counts.differed == 0 && counts.agreed >= kStale) {
        std::printf("NO LONGER DIFFERS: %s (%s), %lld draws\n", name.c_str(), entry->reason,
                    static_cast<long long>(counts.agreed));
        ++count;
      } else {
        std::printf("deliberate: %s in %lld of %lld draws: %s\n", name.c_str(),
                    static_cast<long long>(counts.differed),
                    static_cast<long long>(counts.agreed + counts.differed), entry->reason);
      }
    }
    return count;
  }

 private:
  uint64_t seed_;
  int most_;
  bool spoil_;
  std::map<std::string, Counts> known_;
};

/// Reports entries of known.h with cases that do not exist, and returns their number. Such entries
/// explain no difference.
int astray(const std::vector<File>& files) {
  std::string names;
  for (const File& f : files)
    for (int i = 0; i < f.own.count; ++i) names += std::string(" ") + f.own.name(i);
  int count = 0;
  for (const compare::Known& k : compare::kKnown) {
    std::istringstream cases(k.cases);
    for (std::string name; cases >> name;) {
      if (lists(names.c_str(), name.c_str(), ' ')) continue;
      std::printf("NO SUCH CASE in known.h: %s, of '%s'\n", name.c_str(), k.name);
      ++count;
    }
  }
  return count;
}

std::vector<File> files(const std::string& peer_path, bool self) {
  void* peer = nullptr;
  if (!peer_path.empty()) {
    peer = dlopen(peer_path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!peer) {
      std::fprintf(stderr, "compare: cannot load %s: %s\n", peer_path.c_str(), dlerror());
      std::exit(2);
    }
  }
  std::vector<File> all;
  const auto add = [&](const char* name, CompareArm (*own)()) {
    File f{name, own(), {0, nullptr, nullptr, nullptr}};
    if (self) f.peer = f.own;
    if (peer) {
      auto open = reinterpret_cast<CompareArm (*)()>(
          dlsym(peer, (std::string("compare_torch_") + name).c_str()));
      if (open) f.peer = open();
      if (f.peer.count != f.own.count) {
        std::fprintf(stderr, "compare: %s has other cases of '%s': build it again\n",
                     peer_path.c_str(), name);
        std::exit(2);
      }
    }
    all.push_back(f);
  };
#define X(name) add(#name, compare_ramet_##name);
  RAMET_COMPARE_FILES(X)
#undef X
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Compares random draws of every operation with LibTorch."};
  std::string peer, only;
  uint64_t seed = static_cast<uint64_t>(std::time(nullptr)), first = 0;
  uint64_t draws = 100;
  int most = 3;
  bool list = false, self = false, spoil = false;
  app.add_option("--peer", peer, "LibTorch's arm: ./tools/compare_torch builds and passes it");
  app.add_option("--seed", seed, "of the draws; printed (default: the clock)");
  app.add_option("--draws", draws, "of each case")->capture_default_str();
  app.add_option("--first", first, "number of the first draw")->capture_default_str();
  app.add_option("--only", only, "cases whose whole name matches this regular expression");
  app.add_option("--most", most, "differences to print of each case")->capture_default_str();
  app.add_flag("--list", list, "print the cases and the functions they cover, and end");
  app.add_flag("--self", self,
               "compare this library with itself: shows that the cases run and that draws repeat");
  app.add_flag("--spoil", spoil, "change two numbers of each draw's other side: all must differ");
  std::regex wanted;
  try {
    app.parse(argc, argv);
    wanted = only.empty() ? ".*" : only;
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const std::exception& e) {  // of the command line, or a bad --only
    std::fprintf(stderr, "compare: %s (--help lists the options)\n", e.what());
    return 2;
  }
  const std::vector<File> all = files(peer, self);
  if (list) {
    for (const File& f : all)
      for (int i = 0; i < f.own.count; ++i) std::printf("%s: %s\n", f.own.name(i), f.own.covers(i));
    return 0;
  }
  if (peer.empty() && !self) {
    std::fprintf(stderr, "compare: nothing to compare with: --peer is missing\n");
    return 2;
  }
  for (const int signal : {SIGSEGV, SIGFPE, SIGABRT, SIGBUS}) std::signal(signal, say_and_die);
  std::printf("seed %llu, %llu draws of each case\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(draws));
  Comparison comparison(seed, most, spoil);
  Counts total;
  int cases = 0, bad = 0;
  for (const File& f : all) {
    for (int i = 0; i < f.own.count; ++i) {
      const char* name = f.own.name(i);
      if (!std::regex_match(name, wanted)) continue;
      ++cases;
      Counts counts;
      for (uint64_t n = first; n < first + draws; ++n) comparison.draw(f, i, n, counts);
      total.agreed += counts.agreed;
      total.refused += counts.refused;
      total.differed += counts.differed;
      if (counts.differed)
        std::printf("%s: %lld of %llu draws differ\n", name,
                    static_cast<long long>(counts.differed),
                    static_cast<unsigned long long>(draws));
      // Refusals agree too, but a case that only ever refuses compares nothing.
      if (counts.agreed == 0 && counts.differed == 0 && draws >= 20) {
        std::printf("%s: every draw was refused by both\n", name);
        ++bad;
      }
    }
  }
  bad += comparison.stale() + astray(all);
  if (cases == 0) {
    std::fprintf(stderr, "compare: no case matches '%s'\n", only.c_str());
    return 2;
  }
  std::printf("%d cases, %lld draws agree, %lld refused by both, %lld differ\n", cases,
              static_cast<long long>(total.agreed), static_cast<long long>(total.refused),
              static_cast<long long>(total.differed));
  return total.differed || bad ? 1 : 0;
}
