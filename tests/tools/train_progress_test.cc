// The training program's progress bar: on a terminal, and silent off one. The line itself is in
// train_pictures_test.cc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "tools/training/progress.h"

namespace ramet::training {
namespace {

constexpr ProgressBar::State kState{2, 3, 117, 468, 0.25, 0.91, 4321.4, 65.2};

// What a bar writes to standard error where that is `fd`, read from `from`, until it ends with
// `end`. That may take a moment (a terminal passes its text on in pieces).
std::string drawn(int fd, int from, const std::string& end) {
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(fd, STDERR_FILENO);
  {
    ProgressBar bar;
    bar.show(kState);
  }
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::fcntl(from, F_SETFL, O_NONBLOCK);
  std::string text;
  for (int tries = 0; tries < 100; ++tries) {
    char piece[1000];
    const ssize_t n = ::read(from, piece, sizeof(piece));
    if (n > 0) text.append(piece, static_cast<size_t>(n));
    if (text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0)
      break;
    pollfd ready{from, POLLIN, 0};
    ::poll(&ready, 1, 100);
  }
  return text;
}

TEST(Progress, IsDrawnOnATerminalOnly) {
  int pipe_ends[2];
  ASSERT_EQ(::pipe(pipe_ends), 0);
  EXPECT_EQ(drawn(pipe_ends[1], pipe_ends[0], ""), "");
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
  const std::string line = "\r" + progress_line(kState, 90) + "\033[K", gone = "\r\033[K";
  EXPECT_EQ(drawn(slave, terminal, line + gone), line + gone) << "drawn, and gone at the end";
  ::close(slave);
  ::close(terminal);
}

}  // namespace
}  // namespace ramet::training
