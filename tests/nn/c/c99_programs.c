#include "tests/nn/c/c99_programs.h"

#include <math.h>
#include <stddef.h>

#include "nn/c/c.h"

struct run {
  const struct c99_task* task;
  ramet_module* module;
  ramet_optimizer* optimizer;
  ramet_tensor *input, *target;
};

static int start(struct run* run, const struct c99_task* task, const char* weights) {
  const struct c99_data *x = &task->input, *y = &task->target;
  run->task = task;
  run->module = ramet_module_new(task->module, weights);
  run->optimizer = ramet_optimizer_new(run->module, task->optimizer, task->options);
  run->input = ramet_tensor_from_memory(x->data, x->dtype, x->dim, x->sizes, NULL);
  run->target = ramet_tensor_from_copy(y->data, y->dtype, y->dim, y->sizes, NULL);
  return run->module && run->optimizer && run->input && run->target ? RAMET_OK : RAMET_INVALID;
}

static void end(struct run* run) {
  ramet_tensor_free(run->target);
  ramet_tensor_free(run->input);
  ramet_optimizer_free(run->optimizer);
  ramet_module_free(run->module);
}

/* A failure goes through the calls that follow; the last one's text says that a handle is NULL. */
static ramet_tensor* loss_of(const struct run* run) {
  ramet_tensor *y = ramet_module_forward(run->module, run->input), *loss = NULL;
  switch (run->task->loss) {
    case C99_MSE: loss = ramet_mse_loss(y, run->target, RAMET_MEAN); break;
    case C99_L1: loss = ramet_l1_loss(y, run->target, RAMET_SUM); break;
    case C99_HUBER: loss = ramet_huber_loss(y, run->target, RAMET_MEAN, 0.25); break;
    case C99_CROSS_ENTROPY:
      loss = ramet_cross_entropy_loss(y, run->target, NULL, RAMET_MEAN, 0.1);
      break;
    case C99_BCE: loss = ramet_bce_loss(y, run->target, RAMET_MEAN); break;
    case C99_BCE_WITH_LOGITS: loss = ramet_bce_with_logits_loss(y, run->target, RAMET_MEAN); break;
  }
  ramet_tensor_free(y);
  return loss;
}

static int backward(const struct run* run, double* value) {
  ramet_tensor* loss;
  int status;
  if ((status = ramet_optimizer_zero_grad(run->optimizer, 1)) != RAMET_OK) return status;
  loss = loss_of(run);
  status = ramet_tensor_item(loss, value);
  if (status == RAMET_OK) status = ramet_tensor_backward(loss, NULL);
  ramet_tensor_free(loss);
  return status;
}

static int steps(const struct run* run, int count, double* losses) {
  int i, status = RAMET_OK;
  for (i = 0; i < count && status == RAMET_OK; ++i) {
    status = backward(run, &losses[i]);
    if (status == RAMET_OK) status = ramet_optimizer_step(run->optimizer);
  }
  return status;
}

int c99_train(const struct c99_task* task, double* losses) {
  struct run run = {NULL, NULL, NULL, NULL, NULL};
  int status = ramet_manual_seed(7);
  if (status == RAMET_OK) status = start(&run, task, NULL);
  if (status == RAMET_OK) status = steps(&run, task->steps, losses);
  if (status == RAMET_OK && task->weights) status = ramet_module_save(run.module, task->weights);
  end(&run);
  return status;
}

int c99_train_in_two_halves(const struct c99_task* task, const char* module_file,
                            const char* optimizer_file, double* losses) {
  struct run first = {NULL, NULL, NULL, NULL, NULL}, second = first;
  const int half = task->steps / 2;
  int status = ramet_manual_seed(7);
  if (status == RAMET_OK) status = start(&first, task, NULL);
  if (status == RAMET_OK) status = steps(&first, half, losses);
  if (status == RAMET_OK) status = ramet_module_save(first.module, module_file);
  if (status == RAMET_OK) status = ramet_optimizer_save(first.optimizer, optimizer_file);
  end(&first);
  if (status != RAMET_OK) return status;
  status = start(&second, task, module_file);
  if (status == RAMET_OK) status = ramet_optimizer_load(second.optimizer, optimizer_file);
  if (status == RAMET_OK) status = steps(&second, task->steps - half, losses + half);
  end(&second);
  return status;
}

static int evaluate(void* context, double* loss) { return backward(context, loss); }

int c99_lbfgs(const struct c99_task* task, double losses[2]) {
  struct run run = {NULL, NULL, NULL, NULL, NULL};
  int status = ramet_manual_seed(7);
  if (status == RAMET_OK) status = start(&run, task, NULL);
  if (status == RAMET_OK)
    status = ramet_optimizer_step_closure(run.optimizer, evaluate, &run, &losses[0]);
  if (status == RAMET_OK) status = backward(&run, &losses[1]);
  end(&run);
  return status;
}

static int add_all(const ramet_tensor* tensor, double* sum) {
  int64_t numel, i;
  void* data;
  int status = ramet_tensor_numel(tensor, &numel);
  if (status == RAMET_OK) status = ramet_tensor_data(tensor, RAMET_FLOAT32, &data);
  if (status != RAMET_OK) return status;
  for (i = 0; i < numel; ++i) *sum += fabs(((const float*)data)[i]);
  return RAMET_OK;
}

int c99_walk(const struct c99_task* task, int64_t* elements, double* data, double* grad) {
  struct run run = {NULL, NULL, NULL, NULL, NULL};
  int64_t count, i;
  double loss;
  int status = ramet_manual_seed(7);
  *data = *grad = 0;
  if (status == RAMET_OK) status = start(&run, task, NULL);
  if (status == RAMET_OK) status = backward(&run, &loss);
  if (status == RAMET_OK) status = ramet_module_parameter_count(run.module, &count);
  if (status == RAMET_OK) status = ramet_module_parameter_numel(run.module, elements);
  for (i = 0; status == RAMET_OK && i < count; ++i) {
    ramet_tensor* parameter =
        ramet_module_parameter(run.module, ramet_module_parameter_name(run.module, i));
    ramet_tensor* gradient = ramet_tensor_grad(parameter);
    status = add_all(parameter, data);
    if (status == RAMET_OK) status = add_all(gradient, grad);
    ramet_tensor_free(gradient);
    ramet_tensor_free(parameter);
  }
  end(&run);
  return status;
}
