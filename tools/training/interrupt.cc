#include "tools/training/interrupt.h"

#include <csignal>

namespace ramet::training {

namespace {
volatile std::sig_atomic_t g_signal = 0;
extern "C" void ramet_train_on_signal(int signal) {
  g_signal = signal;
  std::signal(signal, SIG_DFL);  // a second one ends the program at once
}
}  // namespace

InterruptGuard::InterruptGuard() {
  g_signal = 0;
  interrupt_ = std::signal(SIGINT, ramet_train_on_signal);
  terminate_ = std::signal(SIGTERM, ramet_train_on_signal);
}
InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, interrupt_);
  std::signal(SIGTERM, terminate_);
}

int interrupted() { return g_signal; }

}  // namespace ramet::training
