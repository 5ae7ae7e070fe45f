#include "tests/draw_sizes.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>

#include "autograd/ops.h"
#include "runtime/memory/allocator.h"
#include "tests/share.h"

namespace ramet {
namespace fuzz {

namespace {

constexpr int64_t kLimit = int64_t{256} << 20;
constexpr double kSecondsOfADraw = 2;

// What runs now, for the watch and for a handler of signals, which may not allocate.
char g_current[4096];

void say_current(int signal) {
  const auto put = [](const char* text) { (void)!write(2, text, std::strlen(text)); };
  put("\nthe program was ended inside of: ");
  put(g_current);
  put("\n");
  std::signal(signal, SIG_DFL);
  raise(signal);
}

double processor_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Ends the program where a draw takes too long; in processor time, which other programs do not take
// away.
class Watch {
 public:
  Watch() : thread_([this] { run(); }) {}
  ~Watch() {
    over_ = true;
    thread_.join();
  }
  void begin() { began_ = processor_seconds(); }
  void end() { began_ = -1; }

 private:
  void run() {
    const double allowed = kSecondsOfADraw * testing::one_repeat_in();
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const double began = began_;
      if (began < 0 || processor_seconds() - began < allowed) continue;
      std::fprintf(stderr, "\nmore than %g s of processor time: %s\n", allowed, g_current);
      std::_Exit(1);
    }
  }
  std::atomic<double> began_{-1};
  std::atomic<bool> over_{false};
  std::thread thread_;
};

std::string text_of(const Right& right) {
  if (!right) return "an Error";
  std::string out = std::to_string(right->size()) + " of";
  for (size_t i = 0; i < std::min<size_t>(right->size(), 4); ++i) {
    out += " [";
    for (const Wide n : (*right)[i])
      out += " " + (n > INT64_MAX || n < INT64_MIN ? "(beyond int64)"
                                                   : std::to_string(static_cast<int64_t>(n)));
    out += " ]";
  }
  return out;
}

}  // namespace

int64_t SizeDraw::number(const char* name) {
  // First the simple ones: rapidcheck makes what fails simpler.
  static const std::vector<int64_t> all = {
      0,
      1,
      2,
      3,
      4,
      -1,
      1,
      2,
      3,
      0,
      -2,
      INT32_MAX,
      int64_t{1} << 31,
      int64_t{1} << 32,
      int64_t{1} << 61,
      (int64_t{1} << 61) + 1,
      int64_t{1} << 62,
      INT64_MAX / 3,
      INT64_MAX - 4,
      INT64_MAX - 1,
      INT64_MAX,
      INT64_MIN,
      INT64_MIN + 1,
      -(int64_t{1} << 62),
      -(int64_t{1} << 32),
      -(int64_t{1} << 31),
  };
  return note(name, tape_.one_of(all));
}
int64_t SizeDraw::mostly(const char* name, int64_t low, int64_t high) {
  return tape_.one_in(4) ? number(name) : note(name, tape_.between(low, high));
}
int64_t SizeDraw::dim(const char* name, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  return tape_.one_in(8) ? number(name) : note(name, tape_.between(-n, n - 1));
}
std::vector<int64_t> SizeDraw::numbers(const char* name, int64_t least, int64_t most) {
  std::vector<int64_t> out;
  told_ += detail::join(told_.empty() ? "" : ", ", name, " = {");
  for (int64_t n = tape_.between(least, most); n > 0; --n) out.push_back(number(""));
  told_ += "}";
  return out;
}
std::vector<int64_t> SizeDraw::dims(const char* name, int64_t rank) {
  std::vector<int64_t> out;
  told_ += detail::join(told_.empty() ? "" : ", ", name, " = {");
  for (int64_t n = tape_.below(rank + 2); n > 0; --n) out.push_back(dim("", rank));
  told_ += "}";
  return out;
}
bool SizeDraw::flag(const char* name) { return note(name, tape_.below(2) != 0); }

Tensor SizeDraw::tensor(int64_t least_rank, int64_t most_rank, int64_t smallest) {
  std::vector<int64_t> sizes;
  for (int64_t n = tape_.between(least_rank, most_rank); n > 0; --n)
    sizes.push_back(tape_.one_in(8) ? smallest : tape_.between(std::max<int64_t>(smallest, 1), 4));
  Tensor x = ones(sizes);
  if (x.dim() > 1 && tape_.one_in(3)) x = x.transpose(0, -1);
  note("x", x.sizes());
  return x;
}
Tensor SizeDraw::view_source(int64_t least_rank, int64_t most_rank) {
  Tensor x = tensor(least_rank, most_rank);
  if (x.dim() == 0 || !tape_.one_in(3)) return x;
  std::vector<int64_t> sizes = x.sizes().vec();
  const auto at = static_cast<size_t>(tape_.below(x.dim()));
  static const std::vector<int64_t> many = {int64_t{1} << 31, int64_t{1} << 55, int64_t{1} << 56};
  sizes[at] = tape_.one_of(many);
  x = x.narrow(static_cast<int64_t>(at), 0, std::min<int64_t>(x.size(static_cast<int64_t>(at)), 1));
  if (x.size(static_cast<int64_t>(at)) != 1) return x;
  x = x.expand(sizes);
  note("expanded to", x.sizes());
  return x;
}

void SizeDraw::check(const Right& right, double cost,
                     const std::function<std::vector<Tensor>()>& call) {
  std::snprintf(g_current + std::strlen(g_current), sizeof g_current - std::strlen(g_current), "%s",
                told_.c_str());
  bool fits = true, easily = true;  // into an int64; into memory
  double bytes = 0;
  if (right) {
    bytes = static_cast<double>(right->size()) * 512;
    for (const WideShape& shape : *right) {
      fits = fits && possible(shape);
      double n = 8 * cost;
      for (const Wide extent : shape) n *= static_cast<double>(extent);
      bytes += n;
    }
    easily = bytes < kLimit / 16;
  }
  std::string error;
  std::vector<Tensor> got;
  try {
    got = call();
  } catch (const Error& e) {
    error = e.what();
    if (error.empty() || error[0] != '[') RC_FAIL("an Error without a name: " + error);
    if (right && fits && easily && !may_refuse_)
      RC_FAIL("got " + error + "\nexpected " + text_of(right));
    return;
  } catch (const std::exception& e) {
    RC_FAIL(std::string("got an exception that is no Error: ") + e.what());
  }
  std::string shapes;
  bool same = right && got.size() == right->size();
  for (size_t i = 0; i < got.size(); ++i) {
    same = same && wide(got[i].sizes()) == (*right)[i];
    if (i < 4) shapes += detail::join(" ", got[i].sizes());
    // What counts elements agrees with the shape.
    Wide numel = 1;
    for (const int64_t n : got[i].sizes()) numel *= n;
    same = same && numel == got[i].numel();
  }
  compared_ = true;
  if (!same || !fits)
    RC_FAIL(detail::join("got ", got.size(), " of", shapes, "\nexpected ",
                         fits ? text_of(right) : "an Error: " + text_of(right)));
}

void check_sizes(const std::vector<SizeRow>& rows, int default_rounds) {
  const Device host(kCPU, 0);
  set_memory_limit(host, memory_stats(host).current + kLimit);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  for (int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGABRT}) std::signal(signal, say_current);
#endif
  std::vector<int> compared(rows.size());
  {
    Watch watch;
    check_tapes(default_rounds, 60, [&](Tape& tape) {
      const auto at = static_cast<size_t>(tape.below(static_cast<int64_t>(rows.size())));
      const SizeRow& row = rows[at];
      std::snprintf(g_current, sizeof g_current, "%s: ", row.name);
      SizeDraw draw(tape);
      watch.begin();
      try {
        row.run(draw);
      } catch (...) {
        watch.end();
        RC_LOG() << row.name << ": " << draw.told() << "\n";
        throw;
      }
      watch.end();
      compared[at] += draw.compared();
    });
  }
  // The least likely to succeed does so in one of 16 draws.
  const bool enough = rounds(default_rounds) >= 200 * static_cast<int>(rows.size());
  for (size_t i = 0; enough && i < rows.size(); ++i)
    EXPECT_GT(compared[i], 0) << rows[i].name << " was refused each time";
  for (int signal : {SIGSEGV, SIGFPE, SIGBUS, SIGABRT}) std::signal(signal, SIG_DFL);
  set_memory_limit(host, 0);
}

WideShape wide(IntArrayRef sizes) { return WideShape(sizes.begin(), sizes.end()); }
std::optional<size_t> place_of(int64_t dim, int64_t rank) {
  const int64_t n = std::max<int64_t>(rank, 1);
  if (dim < -n || dim >= n) return std::nullopt;
  return static_cast<size_t>(dim < 0 ? dim + n : dim);
}
bool possible(const WideShape& shape) {
  Wide n = 1;
  for (const Wide extent : shape) {
    if (extent < 0 || extent > INT64_MAX) return false;
    n *= extent == 0 ? 1 : extent;
    if (n > INT64_MAX) return false;
  }
  return true;
}
Wide below(Wide a, Wide b) { return a / b - (a % b < 0); }
Wide above(Wide a, Wide b) { return -below(-a, b); }

}  // namespace fuzz
}  // namespace ramet
