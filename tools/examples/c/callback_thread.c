/* A callback with a thread of its own, as audio, cameras and solvers have them: it cannot wait for
 * a training step.
 *
 * The callback runs a network on each block of a signal; main trains another one of the same kind,
 * on what the callback heard, and every few steps hands its weights over, under the one lock that
 * both take. The network learns to undo what an amplifier did to the signal. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/c/c.h"

enum { kBlock = 64, kBlocks = 400, kHanded = 10 };

static const char* const kNet =
    "{\"layers\": [{\"type\": \"Linear\", \"in_features\": 1, \"out_features\": 16}, {\"type\": "
    "\"Tanh\"},"
    " {\"type\": \"Linear\", \"in_features\": 16, \"out_features\": 1}]}";

struct shared {
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t heard;
  ramet_module* playing;
  float distorted[kBlock], clean[kBlock]; /* the last block */
  int blocks;                             /* how many there were */
  int trained;                            /* how many of them main has seen */
  double first_error, last_error;
  char failure[256];
};

/* One block: what the device gives, and what the network makes of it. */
static void callback(struct shared* s, int number) {
  const int64_t sizes[2] = {kBlock, 1};
  float distorted[kBlock], clean[kBlock], played[kBlock];
  double error = 0;
  int i, status;
  ramet_tensor *input, *output;
  for (i = 0; i < kBlock; ++i) {
    clean[i] = (float)(0.8 * sin(0.05 * (number * kBlock + i)) + 0.15 * sin(0.31 * i));
    distorted[i] = (float)tanh(1.8 * clean[i]);
  }
  input = ramet_tensor_from_memory(distorted, RAMET_FLOAT32, 2, sizes, NULL);
  pthread_mutex_lock(&s->lock);
  output = ramet_module_forward(s->playing, input);
  status = ramet_tensor_copy_out(output, played, RAMET_FLOAT32, 2, sizes, NULL);
  if (status != RAMET_OK && !s->failure[0])
    strncpy(s->failure, ramet_last_error(), sizeof(s->failure) - 1);
  for (i = 0; i < kBlock; ++i) error += (played[i] - clean[i]) * (played[i] - clean[i]) / kBlock;
  if (number == 0) s->first_error = error;
  s->last_error = error;
  memcpy(s->distorted, distorted, sizeof(distorted));
  memcpy(s->clean, clean, sizeof(clean));
  s->blocks = number + 1;
  pthread_cond_signal(&s->heard);
  /* A device would come again after its time; this one waits for main, so that the program says the
   * same every time. */
  while (status == RAMET_OK && s->trained < s->blocks) pthread_cond_wait(&s->heard, &s->lock);
  pthread_mutex_unlock(&s->lock);
  ramet_tensor_free(output);
  ramet_tensor_free(input);
}

static void* device(void* context) {
  int number;
  /* Nothing that this thread computes is recorded. */
  ramet_set_grad_enabled(0, NULL);
  for (number = 0; number < kBlocks; ++number) callback(context, number);
  return NULL;
}

static void check(int ok) {
  if (ok) return;
  fprintf(stderr, "callback_thread: %s\n", ramet_last_error());
  exit(1);
}

int main(void) {
  static struct shared s = {
      PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, {0}, {0}, 0, 0, 0, 0, ""};
  const int64_t sizes[2] = {kBlock, 1};
  float distorted[kBlock], clean[kBlock];
  ramet_module* training;
  ramet_optimizer* adam;
  ramet_tensor *inputs, *goals;
  pthread_t thread;
  int step = 0, pass, failed = 0;

  ramet_manual_seed(2);
  check((training = ramet_module_new(kNet, NULL)) != NULL);
  check((s.playing = ramet_module_clone(training)) != NULL);
  check((adam = ramet_optimizer_new(training, "Adam", "{\"lr\": 0.01}")) != NULL);
  inputs = ramet_tensor_from_memory(distorted, RAMET_FLOAT32, 2, sizes, NULL);
  goals = ramet_tensor_from_memory(clean, RAMET_FLOAT32, 2, sizes, NULL);
  check(inputs && goals && pthread_create(&thread, NULL, device, &s) == 0);

  for (step = 1; step <= kBlocks && !failed; ++step) {
    pthread_mutex_lock(&s.lock);
    while (s.blocks < step && !s.failure[0]) pthread_cond_wait(&s.heard, &s.lock);
    memcpy(distorted, s.distorted, sizeof(distorted));
    memcpy(clean, s.clean, sizeof(clean));
    failed = s.failure[0] != 0;
    pthread_mutex_unlock(&s.lock);
    for (pass = 0; pass < 4 && !failed; ++pass) { /* during this the callback plays on */
      ramet_tensor *outputs = ramet_module_forward(training, inputs),
                   *loss = ramet_mse_loss(outputs, goals, RAMET_MEAN);
      check(ramet_optimizer_zero_grad(adam, 1) == RAMET_OK &&
            ramet_tensor_backward(loss, NULL) == RAMET_OK &&
            ramet_optimizer_step(adam) == RAMET_OK);
      ramet_tensor_free(loss);
      ramet_tensor_free(outputs);
    }
    pthread_mutex_lock(&s.lock);
    if (step % kHanded == 0) check(ramet_module_assign(s.playing, training) == RAMET_OK);
    s.trained = step;
    pthread_cond_signal(&s.heard);
    pthread_mutex_unlock(&s.lock);
  }
  pthread_join(thread, NULL);
  printf(
      "callback_thread: mean square of what is wrong: %.6f in the first block, %.6f in the last\n",
      s.first_error, s.last_error);
  ramet_tensor_free(goals);
  ramet_tensor_free(inputs);
  ramet_optimizer_free(adam);
  ramet_module_free(s.playing);
  ramet_module_free(training);
  if (failed || s.last_error > s.first_error / 100) {
    fprintf(stderr, "callback_thread: it has not learned %s\n", s.failure);
    return 1;
  }
  return 0;
}
