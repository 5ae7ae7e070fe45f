/* A C program: one step of a module that a text describes. */
#include <ramet/c.h>
#include <stdio.h>

int main(void) {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {2, 3};
  double before = 0, after = 0;
  ramet_manual_seed(1);
  ramet_module* net =
      ramet_module_new("{\"type\": \"Linear\", \"in_features\": 3, \"out_features\": 3}", NULL);
  ramet_optimizer* sgd = ramet_optimizer_new(net, "SGD", "{\"lr\": 0.01}");
  ramet_tensor* x = ramet_tensor_from_memory(numbers, RAMET_FLOAT32, 2, sizes, NULL);
  ramet_tensor* loss = ramet_mse_loss(ramet_module_forward(net, x), x, RAMET_MEAN);
  if (ramet_check_version(RAMET_C_VERSION) || ramet_tensor_item(loss, &before) ||
      ramet_tensor_backward(loss, NULL) || ramet_optimizer_step(sgd) ||
      ramet_tensor_item(ramet_mse_loss(ramet_module_forward(net, x), x, RAMET_MEAN), &after)) {
    fprintf(stderr, "%s\n", ramet_last_error());
    return 1;
  }
  printf("%g %g\n", before, after);
  return after < before ? 0 : 1;
}
