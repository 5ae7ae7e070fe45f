// The interface between the benchmark driver and one arm of it. An arm is a list of rows. This
// library's arm is linked in. A LibTorch arm is the same source (rows_ops.inc), compiled against
// LibTorch into a shared object and opened at run time.
#pragma once

extern "C" {

struct BenchRow {
  const char* name;
  const char* unit;   // of one repetition: "ns", "us", "ms".
  double per_second;  // units in a second.
  double goal;        // in units, 0: none
  long inner;         // repetitions between two readings of the clock
  void (*setup)();    // makes the row's data; called once before the first run
  void (*run)(long times);
  int (*outputs)(double* values, int room);  // what it computed, for comparing arms; how many
  void (*release)();                         // drops the row's data
  double apart = 1e-3;  // how far two arms' outputs may differ, of the largest one
};

struct BenchArm {
  const char* name;  // "Ramet 0.1 ..." or "LibTorch 2.x ..."
  const BenchRow* rows;
  int count;
};

// Exported by every arm. `threads` for operations.
typedef BenchArm (*BenchArmOpen)(int threads);
}
