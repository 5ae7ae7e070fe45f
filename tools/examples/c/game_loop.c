/* A game that learns while it is played: a training step in every frame.
 *
 * A ball flies through a hall and bounces off floor and ceiling. The guard of the wall on the right
 * should stand where it will arrive. The network has to learn the reflections. The program
 * remembers where balls arrived, and each frame trains on 32 of these memories. Prints how often
 * the guard was right at first and in the end, and what a frame's training step costs. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "nn/c/c.h"

enum { kFrames = 6000, kMemories = 4096, kBatch = 32, kInputs = 3 };

static void check(int ok) {
  if (ok) return;
  fprintf(stderr, "game_loop: %s\n", ramet_last_error());
  exit(1);
}

static double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

/* The same numbers everywhere. */
static double uniform(void) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return (double)(state >> 8) / (1 << 24);
}

struct ball {
  double x, y, dx, dy;
};
static struct ball serve(void) {
  struct ball b;
  b.x = 0, b.y = uniform(), b.dx = 0.02 + 0.02 * uniform(), b.dy = 0.06 * (uniform() - 0.5);
  return b;
}
static void fly(struct ball* b) {
  b->x += b->dx, b->y += b->dy;
  if (b->y < 0) b->y = -b->y, b->dy = -b->dy;
  if (b->y > 1) b->y = 2 - b->y, b->dy = -b->dy;
}
/* What the network sees of it: height, slope, and how far it has to go. */
static void look(const struct ball* b, float* at) {
  at[0] = (float)(2 * b->y - 1), at[1] = (float)(b->dy / b->dx), at[2] = (float)(1 - b->x);
}

int main(void) {
  static float seen[kMemories][kInputs], arrived[kMemories], batch[kBatch][kInputs], goals[kBatch],
      one[kInputs];
  const int64_t many[2] = {kBatch, kInputs}, single[2] = {1, kInputs}, results[2] = {kBatch, 1};
  ramet_module* net;
  ramet_optimizer* adam;
  ramet_tensor *inputs, *targets, *input;
  struct ball ball = serve();
  int frame, memories = 0, serves = 0, caught[2] = {0, 0}, of[2] = {0, 0};
  double total = 0, longest = 0, guard = 0.5;

  check(ramet_check_version(RAMET_C_VERSION) == RAMET_OK);
  ramet_manual_seed(3);
  net = ramet_module_new(
      "{\"layers\": [{\"type\": \"Linear\", \"in_features\": 3, \"out_features\": 48}, {\"type\": "
      "\"ReLU\"},"
      " {\"type\": \"Linear\", \"in_features\": 48, \"out_features\": 48}, {\"type\": \"ReLU\"},"
      " {\"type\": \"Linear\", \"in_features\": 48, \"out_features\": 1}]}",
      NULL);
  adam = ramet_optimizer_new(net, "Adam", "{\"lr\": 0.003}");
  /* Over the game's own memory, once; the loop writes there. */
  inputs = ramet_tensor_from_memory(batch, RAMET_FLOAT32, 2, many, NULL);
  targets = ramet_tensor_from_memory(goals, RAMET_FLOAT32, 2, results, NULL);
  input = ramet_tensor_from_memory(one, RAMET_FLOAT32, 2, single, NULL);
  check(net && adam && inputs && targets && input);

  for (frame = 0; frame < kFrames; ++frame) {
    struct ball later = ball;
    const double start = milliseconds();
    double took, where;
    ramet_tensor *outputs, *loss;

    /* The guard moves a little towards where the ball is expected. */
    look(&ball, one);
    ramet_set_grad_enabled(0, NULL);
    outputs = ramet_module_forward(net, input);
    ramet_set_grad_enabled(1, NULL);
    check(ramet_tensor_item(outputs, &where) == RAMET_OK);
    ramet_tensor_free(outputs);
    where = (where + 1) / 2;
    guard += fmin(fmax(where - guard, -0.05), 0.05);

    /* The frame's training step, on memories. */
    if (memories > 0) {
      int i;
      for (i = 0; i < kBatch; ++i) {
        const int which =
            (int)(uniform() * (memories < kMemories ? memories : kMemories)) % kMemories;
        batch[i][0] = seen[which][0], batch[i][1] = seen[which][1], batch[i][2] = seen[which][2];
        goals[i] = arrived[which];
      }
      outputs = ramet_module_forward(net, inputs);
      loss = ramet_mse_loss(outputs, targets, RAMET_MEAN);
      check(ramet_optimizer_zero_grad(adam, 1) == RAMET_OK &&
            ramet_tensor_backward(loss, NULL) == RAMET_OK &&
            ramet_optimizer_step(adam) == RAMET_OK);
      ramet_tensor_free(loss);
      ramet_tensor_free(outputs);
    }
    took = milliseconds() - start;
    total += took;
    if (took > longest) longest = took;

    /* The game goes on. What is seen now is a memory once it is known where the ball arrives. */
    while (later.x < 1) fly(&later);
    look(&ball, seen[memories % kMemories]);
    arrived[memories++ % kMemories] = (float)(2 * later.y - 1);
    fly(&ball);
    if (ball.x >= 1) {
      const int phase = frame < kFrames / 6 ? 0 : frame >= kFrames / 6 * 5 ? 1 : -1;
      if (phase >= 0) ++of[phase], caught[phase] += fabs(guard - ball.y) < 0.1;
      ++serves;
      ball = serve();
    }
  }
  printf("game_loop: of %d balls the guard caught %d %% at first, %d %% in the end\n", serves,
         100 * caught[0] / of[0], 100 * caught[1] / of[1]);
  printf("game_loop: a frame's forward and training step took %.3f ms, the longest %.3f ms\n",
         total / kFrames, longest);

  ramet_tensor_free(input);
  ramet_tensor_free(targets);
  ramet_tensor_free(inputs);
  ramet_optimizer_free(adam);
  ramet_module_free(net);
  if (caught[1] * of[0] <= caught[0] * of[1] || 100 * caught[1] / of[1] < 80) {
    fprintf(stderr, "game_loop: it has not learned\n");
    return 1;
  }
  return 0;
}
