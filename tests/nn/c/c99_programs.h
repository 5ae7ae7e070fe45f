/* What a program in C does with nn/c/c.h, for c_interface_test.cc: compiled as C99, pedantically.
 */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum c99_loss { C99_MSE, C99_L1, C99_HUBER, C99_CROSS_ENTROPY, C99_BCE, C99_BCE_WITH_LOGITS };

struct c99_data {
  int dtype;
  int64_t dim, sizes[4];
  void* data;
};
struct c99_task {
  const char *module, *optimizer, *options;
  struct c99_data input, target;
  enum c99_loss loss;
  int steps;
  const char* weights; /* where they are saved at the end, or NULL */
};

/* Trains from seed 7 and writes the loss of each step. 0, or the first status that was none. */
int c99_train(const struct c99_task* task, double* losses);
/* The same task, its second half by a module and an optimizer that were saved after the first one
 * and read by others. */
int c99_train_in_two_halves(const struct c99_task* task, const char* module_file,
                            const char* optimizer_file, double* losses);
/* Minimises the task's loss by LBFGS: one step's first loss, and the loss after it. */
int c99_lbfgs(const struct c99_task* task, double losses[2]);
/* Walks over the parameters: how many elements there are, and the sum of |data| and |grad| read
 * through pointers. */
int c99_walk(const struct c99_task* task, int64_t* elements, double* data, double* grad);

#ifdef __cplusplus
}
#endif
