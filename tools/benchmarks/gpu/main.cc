#include "tools/benchmarks/gpu/rows.h"

int main(int argc, char** argv) { return ramet::gpu_bench::main(argc, argv); }
