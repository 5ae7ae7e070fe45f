// The training program's progress bar: on a terminal, and silent off one. The line itself is in
// train_pictures_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/error_text.h"
#include "tools/training/progress.h"

namespace ramet::training {
namespace {

constexpr ProgressBar::State kState{2, 3, 117, 468, 0.25, 0.91, 4321.4, 65.2};

// What a bar writes to standard error where that is `fd`, read from `from`.
std::string drawn(int fd, int from) {
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(fd, STDERR_FILENO);
  {
    ProgressBar bar;
    bar.show(kState);
  }
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::fcntl(from, F_SETFL, O_NONBLOCK);
  char text[1000];
  const ssize_t n = ::read(from, text, sizeof(text));
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : "";
}

TEST(Progress, IsDrawnOnATerminalOnly) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_EQ(drawn(pipe_ends[1], pipe_ends[0]), "");
  ::close(pipe_ends[0]);
  ::close(pipe_ends[1]);

  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "no pseudo-terminals here";
  ASSERT_EQ(::grantpt(terminal), 0);
  ASSERT_EQ(::unlockpt(terminal), 0);
  const int slave = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(slave, 0);
  const winsize size{25, 90, 0, 0};
  ASSERT_EQ(::ioctl(slave, TIOCSWINSZ, &size), 0);
  const std::string text = drawn(slave, terminal);
  expect_part(text, "\r" + progress_line(kState, 90) + "\033[K");
  EXPECT_EQ(text.substr(text.size() - 4), "\r\033[K") << "and it is gone at the end";
  ::close(slave);
  ::close(terminal);
}

}  // namespace
}  // namespace ramet::training
