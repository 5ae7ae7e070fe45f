// Signals that stop a run: SIGINT and SIGTERM end it after the step under way.
#pragma once

namespace ramet::training {

/// While one lives, the first such signal is noted and a second one ends the program at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  void (*interrupt_)(int);
  void (*terminate_)(int);
};

/// The signal that came since the last guard was made; 0 if none did.
int interrupted();

}  // namespace ramet::training
