// The gradient of a float convolution's weight: Note [Convolution without im2col] in conv2d.h.
//
// An element's sum is that of parts of the images. The sum of a part is that of its images, and the
// sum of an image is one chain of its pixels; each in order. The shape decides how tasks are
// formed. Normally a task goes through the tiles of one part. If images are small, sums would be
// moved to and from memory more often than they are added to. Then a task goes through all parts of
// one tile. Both give the same bits.
#include "kernels/image/conv2d_slab.h"
#include "kernels/matrix/micro.h"
#include "runtime/base/thread_pool.h"

namespace ramet::kernels::RAMET_VARIANT {
namespace {

RAMET_INLINE const float* data_of(const ImageView& v) { return static_cast<const float*>(v.data); }

// Rows of x (the first is row y0 * sh of the padded image) and of dy, for consecutive images.
struct Images {
  const float *x, *dy;
  int64_t next_x, next_dy;
};

struct Job {
  const Conv2dArgs& a;
  const Conv2dShape& s;
  Conv2dWeightPlan p;
  int64_t cig, cog;
  bool in_place, dy_in_place;
  int64_t slab_row, pixel, dy_row, dy_pixel;
  int64_t runs, k;  // of a filter row: runs of taps that are neighbours, their channels

  explicit Job(const Conv2dArgs& args) : a(args), s(args.shape), p(conv2d_backward_weight_plan(s)) {
    cig = s.ci / s.groups, cog = s.co / s.groups;
    in_place = conv2d_in_place(s, a.x), dy_in_place = a.y.c == 1;
    slab_row = in_place ? a.x.h : p.slab_columns * s.ci, pixel = in_place ? a.x.w : s.ci;
    dy_row = dy_in_place ? a.y.h : s.ow * s.co, dy_pixel = dy_in_place ? a.y.w : s.co;
    const bool neighbours = s.groups == 1 && s.dw == 1 && pixel == s.ci;
    runs = neighbours ? 1 : s.kw, k = neighbours ? s.kw * cig : cig;
  }

  // Output rows y0 .. y0+rows of image n, if they are not read in place.
  void load(int64_t n, int64_t y0, int64_t rows, float* slab, float* dy) const {
    if (!in_place)
      load_slab(data_of(a.x) + n * a.x.n, a.x, s.h, s.w, s.ci, y0 * s.sh - s.ph,
                (rows - 1) * s.sh + (s.kh - 1) * s.dh + 1, s.pw, p.slab_columns, slab);
    if (!dy_in_place)
      load_slab(data_of(a.y) + n * a.y.n, a.y, s.oh, s.ow, s.co, y0, rows, 0, s.ow, dy);
  }
  Images images(int64_t n, int64_t y0, const float* slabs, const float* dys) const {
    return {in_place ? data_of(a.x) + n * a.x.n + y0 * s.sh * slab_row : slabs,
            dy_in_place ? data_of(a.y) + n * a.y.n + y0 * dy_row : dys, in_place ? a.x.n : p.slab,
            dy_in_place ? a.y.n : p.dy};
  }
  // The offset of the gradient of filter row r, run q: [g][r][s][c][o].
  int64_t place(int64_t g, int64_t r, int64_t q) const {
    return ((g * s.kh + r) * s.kw + q) * cig * cog;
  }
};

// The sums of some images for filter row r, run q of group g. The rows of its matrix are the run's
// channels.
struct Row {
  Tile t{};
  const float *x, *dy;
  Images from;

  Row(const Job& job, const Images& images, int64_t y0, int64_t rows, int64_t g, int64_t r,
      int64_t q)
      : from(images) {
    const Conv2dShape& s = job.s;
    // Output rows that have tap r inside the image.
    int64_t first = 0, end = rows;
    while (first < end && (y0 + first) * s.sh - s.ph + r * s.dh < 0) ++first;
    while (end > first && (y0 + end - 1) * s.sh - s.ph + r * s.dh >= s.h) --end;
    t.as = s.sw * job.pixel, t.bs = job.dy_pixel;
    t.k = s.ow, t.segs = end - first, t.aseg = s.sh * job.slab_row, t.bseg = job.dy_row;
    t.alpha = 1;
    x = from.x + (first * s.sh + r * s.dh) * job.slab_row + q * s.dw * job.pixel + g * job.cig;
    dy = from.dy + first * job.dy_row + g * job.cog;
  }
  // The sum of `count` images from the n-th on: written to c, or added to it.
  RAMET_INLINE void add(Micro fn, int64_t i, int64_t j, int64_t n, int64_t count, bool adds,
                        float* c) {
    t.c = c, t.beta = adds ? 1.0f : 0.0f;
    for (; count > 0; --count, ++n, t.beta = 1) {
      t.a = x + n * from.next_x + i, t.b = dy + n * from.next_dy + j;
      fn(t);
    }
  }
};

// One channel for each group. Vectors hold neighbouring groups, and several taps q of filter row r
// are summed at once.
void add_depthwise(const Job& job, const Images& from, int64_t y0, int64_t rows, int64_t images,
                   int64_t r, bool adds, float* sums) {
  constexpr int kTaps = 4;
  const Conv2dShape& s = job.s;
  for (int64_t n = 0; n < images; ++n, adds = true)
    for (int64_t q0 = 0; q0 < s.kw; q0 += kTaps) {
      const Row row(job, from, y0, rows, 0, r, q0);
      const int64_t taps = imin(kTaps, s.kw - q0), tap = s.dw * job.pixel;
      for (int64_t g = 0; g < s.groups; g += VL) {
        const int64_t left = s.groups - g;
        vf sum[kTaps] = {};
        for (int64_t y = 0; y < row.t.segs; ++y) {
          const float *x = row.x + n * from.next_x + y * row.t.aseg + g,
                      *dy = row.dy + n * from.next_dy + y * row.t.bseg + g;
          for (int64_t i = 0; i < s.ow; ++i, x += row.t.as, dy += row.t.bs) {
            const vf v = loadn(dy, left);
            for (int q = 0; q < kTaps; ++q)
              if (q < taps) sum[q] = fma(loadn(x + q * tap, left), v, sum[q]);
          }
        }
        for (int64_t q = 0; q < taps; ++q) {
          alignas(64) float value[VL];
          store(value, sum[q]);
          for (int64_t k = 0; k < imin(left, VL); ++k) {
            float* c = sums + job.place(g + k, r, q0 + q);
            *c = adds ? value[k] + *c : value[k];
          }
        }
      }
    }
}

// Sums of dy[pixel][c] over some rows of an image, added to sums[c]: pixels of a row first, then
// the rows.
void add_column_sums(const float* dy, int64_t row, int64_t pixel, int64_t h, int64_t w, int64_t c,
                     float* sums) {
  for (int64_t j = 0; j < c; j += VL) {
    const int64_t left = c - j;
    vf image{};
    for (int64_t y = 0; y < h; ++y) {
      vf line{};
      const float* p = dy + y * row + j;
      for (int64_t i = 0; i < w; ++i, p += pixel) line += loadn(p, left);
      image += line;
    }
    storen(sums + j, loadn(sums + j, left) + image, left);
  }
}
void add_bias(const Job& job, const Images& from, int64_t rows, int64_t images, float* db) {
  for (int64_t n = 0; n < images; ++n)
    add_column_sums(from.dy + n * from.next_dy, job.dy_row, job.dy_pixel, rows, job.s.ow, job.s.co,
                    db);
}
void zero(float* p, int64_t n) {
  if (n > 0) std::memset(p, 0, static_cast<size_t>(n) * sizeof(float));
}

// A task has a part of the images. If there are few parts, it has some filter rows of a part.
void by_parts(const Job& job, float* sums, float* biases, float* slots) {
  const Conv2dShape& s = job.s;
  const Conv2dWeightPlan& p = job.p;
  const int64_t splits = imin(s.kh, ceil_div(8, imax(1, p.parts)));
  parallel_tasks(p.parts * splits, [&](int64_t task, int slot) {
    const int64_t part = task / splits, split = task % splits, r0 = s.kh * split / splits,
                  r1 = s.kh * (split + 1) / splits;
    float* slabs = slots + slot * p.batch * (p.slab + p.dy);
    float* dys = slabs + p.batch * p.slab;
    float *dw = sums + part * p.weights, *db = biases + part * p.bias;
    if (r0 == 0) zero(db, s.co);
    const int64_t begin = part * p.per, end = imin(s.n, begin + p.per);
    for (int64_t n = begin; n < end; n += p.batch)
      for (int64_t y0 = 0; y0 < s.oh; y0 += p.rows) {
        const int64_t rows = imin(p.rows, s.oh - y0), images = imin(p.batch, end - n);
        for (int64_t k = 0; k < images; ++k)
          job.load(n + k, y0, rows, slabs + k * p.slab, dys + k * p.dy);
        const Images from = job.images(n, y0, slabs, dys);
        if (r0 == 0 && job.a.bias) add_bias(job, from, rows, images, db);
        if (s.groups > 1 && job.cig == 1 && job.cog == 1) {
          for (int64_t r = r0; r < r1; ++r)
            add_depthwise(job, from, y0, rows, images, r, n > begin || y0 > 0, dw);
          continue;
        }
        const Cut cut(job.k);
        for (int64_t g = 0; g < s.groups; ++g)
          for (int64_t j = 0; j < job.cog; j += kNR)
            for (int64_t r = r0; r < r1; ++r)
              for (int64_t q = 0; q < job.runs; ++q) {
                Row row(job, from, y0, rows, g, r, q);
                row.t.cs = job.cog;
                const Micro* fn = micro_for(row.t, true, imin(job.cog - j, kNR), false);
                float* c = dw + job.place(g, r, q) + j;
                for (int64_t m = 0, i = 0; m < cut.parts; i += cut.size(m++))
                  row.add(fn[cut.size(m) - 1], i, j, 0, images, n > begin || y0 > 0,
                          c + i * job.cog);
              }
      }
  });
}

// A task has some tiles, of all images. Their sums are written once.
void by_tiles(const Job& job, float* sums, float* biases, float* slabs) {
  const Conv2dShape& s = job.s;
  const Conv2dWeightPlan& p = job.p;
  float* dys = slabs + s.n * p.slab;
  if (!job.in_place || !job.dy_in_place)
    parallel_tasks(
        s.n, [&](int64_t n, int) { job.load(n, 0, s.oh, slabs + n * p.slab, dys + n * p.dy); });
  const Images from = job.images(0, 0, slabs, dys);
  const Cut cut(job.k);
  constexpr int64_t kTiles = 4;
  const int64_t biased = job.a.bias ? p.parts : 0, strips = ceil_div(cut.parts, kTiles);
  parallel_tasks(biased + s.groups * s.kh * job.runs * strips, [&](int64_t task, int) {
    if (task < biased) {
      Images mine = from;
      mine.dy += task * p.per * from.next_dy;
      float* db = biases + task * p.bias;
      zero(db, s.co);
      return add_bias(job, mine, s.oh, imin(p.per, s.n - task * p.per), db);
    }
    task -= biased;
    const int64_t m0 = task % strips * kTiles, q = task / strips % job.runs,
                  r = task / strips / job.runs % s.kh, g = task / strips / job.runs / s.kh;
    Row row(job, from, 0, s.oh, g, r, q);
    row.t.cs = kNR;
    alignas(64) float part[kMR * kNR] = {};
    int64_t i = 0;
    for (int64_t m = 0; m < m0; ++m) i += cut.size(m);
    for (int64_t m = m0; m < imin(cut.parts, m0 + kTiles); i += cut.size(m++)) {
      const int64_t lines = cut.size(m);
      for (int64_t j = 0; j < job.cog; j += kNR) {
        const int64_t width = imin(job.cog - j, kNR);
        const Micro fn = micro_for(row.t, true, width, false)[lines - 1];
        alignas(64) float sum[kMR * kNR] = {};
        for (int64_t n = 0; n < s.n; n += p.per) {
          row.add(fn, i, j, n, imin(p.per, s.n - n), false, part);
          for (int64_t e = 0; e < lines * kNR; e += VL)
            store(sum + e, load(sum + e) + load(part + e));
        }
        float* c = sums + job.place(g, r, q) + i * job.cog + j;
        for (int64_t l = 0; l < lines; ++l)
          for (int64_t e = 0; e < width; e += VL)
            storen(c + l * job.cog + e, load(sum + l * kNR + e), width - e);
      }
    }
  });
}

// Adds `parts` sums in order and writes them to [o][c][r][s]. Vectors of outputs become runs of (c,
// r, s).
void finish(const Job& job, const float* sums, int64_t parts) {
  const Conv2dShape& s = job.s;
  float* out = static_cast<float*>(job.a.weight);
  const int64_t cog = job.cog, cig = job.cig, taps = s.kh * s.kw, run = cig * taps,
                blocks = ceil_div(run, VL), tasks = s.groups * blocks;
  const auto fold = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t g = block / blocks, at = block % blocks * VL, n = imin(run - at, VL);
      const float* from[VL];
      for (int64_t i = 0; i < n; ++i)
        from[i] = sums + ((g * taps + (at + i) % taps) * cig + (at + i) / taps) * cog;
      for (int64_t o0 = 0; o0 < cog; o0 += VL) {
        const int64_t left = imin(cog - o0, VL);
        vf sum[VL];
        for (int64_t i = 0; i < VL; ++i) {
          sum[i] = vf{};
          for (int64_t part = 0; part < parts && i < n; ++part)
            sum[i] += loadn(from[i] + part * job.p.weights + o0, left);
        }
        transpose(sum);
        for (int64_t o = 0; o < left; ++o) storen(out + (g * cog + o0 + o) * run + at, sum[o], n);
      }
    }
  };
  if (parts * s.groups * run * cog * 4 < 2 * parallel_grain()) fold(0, tasks);
  else parallel_tasks(8, [&](int64_t t, int) { fold(tasks * t / 8, tasks * (t + 1) / 8); });
}

}  // namespace

void conv2d_float_backward_weight(const Conv2dArgs& a) {
  const Job job(a);
  const Conv2dWeightPlan& p = job.p;
  const int64_t parts = p.by_tiles ? 1 : p.parts;
  float* sums = static_cast<float*>(a.workspace);
  float* biases = sums + parts * p.weights;
  float* rest = biases + p.parts * p.bias;
  if (p.by_tiles) by_tiles(job, sums, biases, rest);
  else by_parts(job, sums, biases, rest);
  finish(job, sums, parts);
  if (!a.bias) return;
  for (int64_t o = 0; o < a.shape.co; ++o) {
    double sum = 0;
    for (int64_t part = 0; part < p.parts; ++part) sum += biases[part * p.bias + o];
    static_cast<float*>(a.bias)[o] = static_cast<float>(sum);
  }
}

}  // namespace ramet::kernels::RAMET_VARIANT
