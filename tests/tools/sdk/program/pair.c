/* A C program of two processes that train one module: after a step it is the same in both. */
#include <ramet/c_processes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int fail(int rank) {
  fprintf(stderr, "rank %d: %s\n", rank, ramet_last_error());
  return 1;
}

static int run(const char* address, int rank) {
  float numbers[2] = {1, 2}, sums[2];
  const int64_t sizes[2] = {1, 2}, two = 2;
  double mine = 0, both = 0;
  ramet_manual_seed(1);
  ramet_group* group = ramet_group_new(address, rank, 2, 60);
  ramet_module* net =
      ramet_module_new("{\"type\": \"Linear\", \"in_features\": 2, \"out_features\": 1}", NULL);
  ramet_optimizer* sgd;
  ramet_tensor *x, *loss, *total;
  numbers[0] += (float)rank;
  x = ramet_tensor_from_memory(numbers, RAMET_FLOAT32, 2, sizes, NULL);
  if (!group || ramet_module_replicate(net, group)) return fail(rank);
  sgd = ramet_optimizer_new(net, "SGD", "{\"lr\": 0.01}");
  loss = ramet_tensor_sum(ramet_module_forward(net, x));
  if (ramet_tensor_backward(loss, NULL) || ramet_optimizer_step(sgd)) return fail(rank);
  /* This rank's first weight and the sum of both ranks'. */
  if (ramet_tensor_copy_out(ramet_module_parameter(net, "weight"), sums, RAMET_FLOAT32, 2, sizes,
                            NULL))
    return fail(rank);
  mine = sums[0];
  total = ramet_tensor_from_memory(sums, RAMET_FLOAT32, 1, &two, NULL);
  if (ramet_group_all_reduce(group, total, RAMET_REDUCE_SUM) || ramet_group_barrier(group))
    return fail(rank);
  both = sums[0];
  ramet_group_free(group);
  printf("rank %d: %g of %g\n", rank, mine, both);
  return both == 2 * mine ? 0 : 1;
}

int main(void) {
  char address[256];
  int status = 1, code;
  pid_t child;
  if (ramet_group_address("127.0.0.1", address, sizeof(address))) return fail(0);
  child = fork();
  if (child == 0) return run(address, 1);
  code = run(address, 0);
  return child < 0 || waitpid(child, &status, 0) != child || status != 0 || code;
}
