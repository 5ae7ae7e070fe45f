#include "tools/training/run.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "autograd/grad_mode.h"
#include "autograd/graph_print.h"
#include "nn/data.h"
#include "nn/module/checkpoint.h"
#include "nn/optim/adam.h"
#include "nn/optim/lr_scheduler.h"
#include "nn/serialize/save.h"
#include "runtime/atomic_file.h"
#include "runtime/chrome_trace.h"
#include "runtime/devices.h"
#include "runtime/generator.h"
#include "runtime/observer.h"
#include "runtime/thread_pool.h"
#include "tools/training/curve.h"
#include "tools/training/digest.h"
#include "tools/training/graph_svg.h"
#include "tools/training/history.h"
#include "tools/training/image_data.h"
#include "tools/training/interrupt.h"
#include "tools/training/jobs.h"
#include "tools/training/processes.h"
#include "tools/training/progress.h"
#include "tools/training/replicas.h"
#include "tools/training/results.h"

namespace ramet::training {

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

// The generators that a run draws from, under no device's name, so that it may go on with another
// one: weights and order from the host's, dropout from that of the device that leads. On CPU
// devices the two are one.
struct LeadingGenerators {
  Device device;
  std::vector<int64_t> loaded = {};
  std::vector<Device> all() const {
    if (device.is_cpu()) return {device};
    return {Device(kCPU, 0), device};
  }
  std::vector<int64_t> now() const {
    std::vector<int64_t> numbers;
    for (Device d : all()) {
      const GeneratorState state = default_generator(d).get_state();
      numbers.push_back(static_cast<int64_t>(state.seed));
      numbers.push_back(static_cast<int64_t>(state.offset));
    }
    return numbers;
  }
  void save(serialize::OutputArchive& archive) const { archive.write("state", IValue(now())); }
  void load(serialize::InputArchive& archive) {
    IValue value;
    archive.read("state", value);
    loaded = value.toIntVector();
    RAMET_CHECK(loaded.size() == 2 || loaded.size() == 4, "train",
                "the checkpoint's generator is damaged");
  }
  void go_on_from(const std::vector<int64_t>& numbers) const {
    const auto state = [&](size_t i) {
      return GeneratorState{static_cast<uint64_t>(numbers[i]),
                            static_cast<uint64_t>(numbers[i + 1])};
    };
    default_generator(all()[0]).set_state(state(0));
    default_generator(device).set_state(state(numbers.size() - 2));
  }
};

// ---- the run ------------------------------------------------------------------------------------

class Run {
 public:
  explicit Run(Options& o);
  int train();

 private:
  using Loader =
      data::StatelessDataLoader<data::datasets::GatherDataset, data::samplers::RandomSampler>;

  const char* rows() const { return job_->rows(); }
  std::string file(const char* name) const { return options_.out + "/" + name; }
  Checkpoint checkpoint() {
    Checkpoint c;
    c.add("config", config_)
        .add("launch", launch_)
        .add("model", *model_)
        .add("optimizer", *optimizer_)
        .add("schedule", *schedule_)
        .add("loader", *loader_);
    c.add("random", *random_)
        .add("epoch", epoch_)
        .add("step", step_)
        .add("seconds", seconds_)
        .add("images", images_);
    return c;
  }
  void save_checkpoint() {
    if (!processes_->writes()) return;
    checkpoint().save(file("checkpoint"));
    saved_at_ = Clock::now();
  }

  // Rank 0 alone has tested, and drawn for that.
  void agree_on_random_numbers() { random_->go_on_from(processes_->of_rank_0(random_->now())); }

  bool train_epoch(ProgressBar& bar);
  StepRecord train_step(data::Example<>& batch);
  Job::Pass train_pass(int number, const data::Example<>& batch, bool last);
  EpochRecord test();
  void write_curve() const;
  void write_summary(const EpochRecord& last, const std::string& digest) const;
  void report_epoch(const EpochRecord& r) const;

  Options& options_;
  std::optional<InterruptGuard> signals_;
  std::unique_ptr<Job> job_;
  std::vector<Device> devices_;
  // weights, order and dropout are drawn there, whichever it is
  std::optional<DeviceGuard> leader_;
  std::optional<LeadingGenerators> random_;
  std::unique_ptr<Processes> processes_ = std::make_unique<Processes>();
  nn::Sequential model_{nullptr};
  std::unique_ptr<Replicas> replicas_;
  std::optional<optim::AdamW> optimizer_;
  std::optional<optim::CosineAnnealingLR> schedule_;
  std::unique_ptr<Loader> loader_;
  History history_;
  ChromeTrace trace_;
  std::string config_, launch_;  // launch_id() of the processes that wrote the checkpoint
  int64_t steps_per_epoch_ = 0, parameters_ = 0;
  int64_t epoch_ = 0, step_ = 0, images_ = 0;  // done so far
  int64_t first_step_ = 0;                     // of this process
  double seconds_ = 0;                         // of training
  bool stop_ = false;                          // a signal came, to any of the processes
  Clock::time_point saved_at_ = Clock::now();
};

// The launcher's second attempt goes on where the first one was; not from what an earlier run left
// in the folder, where the first attempt ended before it wrote anything.
bool left_by_this_launch(const std::string& checkpoint) {
  if (::access(checkpoint.c_str(), R_OK) != 0) return false;
  serialize::InputArchive archive;
  archive.load_from(checkpoint);
  IValue launch;
  return archive.try_read("launch", launch) && launch.toStringRef() == launch_id();
}

Run::Run(Options& o) : options_(o) {
  o.check();
  RAMET_CHECK(
      !o.ddp || join_processes, "train",
      "--ddp: this program is linked without process groups; expected what ./tools/train builds "
      "for --ddp (//tools/training:train_processes)");
  if (o.ddp && started_again() && left_by_this_launch(file("checkpoint"))) o.resume = true;
  const std::string resumed = o.resume ? file("checkpoint") : "";
  if (o.resume) {
    serialize::InputArchive archive;
    archive.load_from(resumed);
    IValue saved;
    archive.read("config", saved);
    o.adopt(saved.toStringRef());
    o.check();
  }
  config_ = o.config();
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  else if (o.ddp) set_num_threads(threads_beside_others());
  devices_ = parse_devices(o.devices, o.ddp ? number_on_host() : -1);
  job_ = make_job(o);
  const TrainingData& set = job_->data();
  if (o.ddp) processes_ = join_processes(std::chrono::seconds(o.timeout));

  leader_.emplace(devices_[0]);
  random_.emplace(LeadingGenerators{devices_[0]});
  manual_seed(static_cast<uint64_t>(o.seed));
  model_ = job_->make_model(o.dropout);
  model_->to(devices_[0]);
  for (const Tensor& p : model_->parameters()) parameters_ += p.numel();
  replicas_ = processes_->replicate(model_, devices_, o.reduce);
  optimizer_.emplace(model_->parameters(), job_->optimizer(o.lr));
  steps_per_epoch_ = (set.train_rows.size(0) + o.batch - 1) / o.batch;
  const int64_t steps = steps_per_epoch_ * o.epochs;
  RAMET_CHECK(steps < INT32_MAX, "train", "--epochs: got ", steps,
              " steps in all, expected less than 2^31");
  schedule_.emplace(*optimizer_, static_cast<unsigned>(steps));
  // One batch is made ahead on a thread of its own.
  loader_ = data::make_data_loader(
      set.batches(set.train_rows, set.train_targets),
      data::samplers::RandomSampler(set.train_rows.size(0)),
      data::DataLoaderOptions(static_cast<size_t>(o.batch)).workers(1).max_jobs(1));
  if (o.resume) {
    checkpoint().load(resumed);
    random_->go_on_from(random_->loaded);
  }
  launch_ = launch_id();
  first_step_ = step_;
  // Everything that can be wrong with the input has been found: from here on results are written.
  // Until here a signal ends the program at once, with the folder as it was.
  signals_.emplace();
  if (!processes_->writes()) return;
  make_folders(o.out);
  remove_leftovers(o.out);
  if (!o.resume) save_checkpoint();  // over the old one: there is a whole one at every moment
  if (step_ == 0) remove_stale_results(o.out);
  history_.open(file("metrics.jsonl"), step_);
}

Job::Pass Run::train_pass(int number, const data::Example<>& batch, bool last) {
  optimizer_->zero_grad();
  Job::Pass pass;
  {
    RecordScope forward("forward");
    pass = job_->pass(number, *replicas_, *processes_, batch);
  }
  if (last && step_ == first_step_ && processes_->writes()) {
    const auto graph =
        autograd::collect_graph({pass.loss}, model_->named_parameters().pairs(), 1000);
    write_file_atomically(file("graph.svg"),
                          draw_graph(graph, "The autograd graph of one step: " + options_.model +
                                                " on " + options_.devices));
  }
  {
    RecordScope backward("backward");
    pass.loss.backward();
  }
  RecordScope update("optimizer");
  job_->before_step(number, model_);
  optimizer_->step();
  if (last) schedule_->step();
  return pass;
}

StepRecord Run::train_step(data::Example<>& batch) {
  RecordScope scope("step");
  const auto begun = Clock::now();
  StepRecord r{step_ + 1, step_ / steps_per_epoch_ + 1, 0, 0, 0, 0};
  r.lr = optimizer_->param_groups()[0].options().get_lr();
  batch.data = batch.data.to(devices_[0]);
  batch.target = batch.target.to(devices_[0], kLong);
  const std::vector<std::string> further = job_->further_passes();
  std::vector<Job::Pass> passes;
  for (size_t i = 0; i <= further.size(); ++i)
    passes.push_back(train_pass(static_cast<int>(i), batch, i == further.size()));
  std::vector<double> sums = {interrupted() ? 1.0 : 0.0, 0};
  double answers = 0;
  for (const Job::Pass& pass : passes) {
    sums.push_back(pass.loss.item<double>());
    if (!pass.right.defined()) continue;
    sums[1] += pass.right.item<double>();
    answers += pass.answers;
  }
  processes_->sum(sums);
  stop_ = sums[0] > 0;
  r.accuracy = sums[1] / answers;
  r.loss = sums[2];
  for (size_t i = 0; i < further.size(); ++i) r.more.push_back({further[i], sums[3 + i]});
  ++step_;
  images_ += batch.data.size(0);
  seconds_ += seconds_since(begun);
  r.seconds = seconds_;
  return r;
}

// False: interrupted.
bool Run::train_epoch(ProgressBar& bar) {
  model_->train();
  double loss = 0, accuracy = 0;
  int64_t seen = 0;
  const auto begun = Clock::now();
  const int64_t images_before = images_;
  // A few steps in which caches are warm; in a run of a single step, that one.
  const int64_t traced =
      first_step_ + std::min<int64_t>(2, steps_per_epoch_ - first_step_ % steps_per_epoch_ - 1);
  for (auto& batch : *loader_) {
    if (step_ == traced && processes_->writes()) trace_.start();
    const StepRecord r = train_step(batch);
    const int64_t in_epoch = (step_ - 1) % steps_per_epoch_ + 1;
    if (step_ > traced && processes_->writes() &&
        (step_ == traced + 3 || (step_ < traced + 3 && in_epoch == steps_per_epoch_))) {
      trace_.stop();
      trace_.write(file("trace.json"));
    }
    if (processes_->writes()) history_.add(r);
    // A running mean that forgets: the last 50 steps or so.
    const double keep =
        seen == 0 ? 0.0 : std::min(0.98, static_cast<double>(seen) / static_cast<double>(seen + 1));
    loss = keep * loss + (1 - keep) * r.loss;
    accuracy = keep * accuracy + (1 - keep) * r.accuracy;
    ++seen;
    const double rate =
        static_cast<double>(images_ - images_before) / std::max(1e-9, seconds_since(begun));
    const int64_t left = steps_per_epoch_ * options_.epochs - step_;
    if (processes_->writes())
      bar.show({epoch_ + 1, options_.epochs, in_epoch, steps_per_epoch_, loss, accuracy, rate,
                static_cast<double>(left * options_.batch) / std::max(1e-9, rate), rows()});
    if (stop_) return false;
    if (seconds_since(saved_at_) > 15) save_checkpoint();
  }
  return true;
}

EpochRecord Run::test() {
  NoGradGuard no_grad;
  model_->eval();
  Job::Tested tested = job_->test(model_, devices_[0]);
  if (const std::string png = job_->pictures(model_, devices_[0]); !png.empty())
    write_file_atomically(file("pictures.png"), png);
  return {epoch_, step_, tested.loss, tested.accuracy, seconds_, std::move(tested.more)};
}

// ", test iou 0.9315".
std::string text_of(const std::vector<Measure>& more, const std::string& prefix) {
  std::string text;
  for (const Measure& m : more) {
    char value[40];
    std::snprintf(value, sizeof(value), " %.4f", m.value);
    text += prefix + readable(m.name) + value;
  }
  return text;
}

void Run::report_epoch(const EpochRecord& r) const {
  double loss = 0, accuracy = 0;
  std::vector<Measure> more;
  int64_t n = 0;
  for (const StepRecord& s : history_.steps()) {
    if (s.epoch != r.epoch) continue;
    loss += s.loss, accuracy += s.accuracy, ++n;
    more.resize(s.more.size());
    for (size_t i = 0; i < more.size(); ++i)
      more[i] = {s.more[i].name, more[i].value + s.more[i].value};
  }
  const auto steps = static_cast<double>(std::max<int64_t>(1, n));
  for (Measure& m : more) m.value /= steps;
  std::printf(
      "epoch %d/%d  loss %.4f  accuracy %.2f%%%s  test loss %.4f  test accuracy %.2f%%%s  %s of "
      "training\n",
      static_cast<int>(r.epoch), static_cast<int>(options_.epochs), loss / steps,
      100 * accuracy / steps, text_of(more, "  ").c_str(), r.test_loss, 100 * r.test_accuracy,
      text_of(r.more, "  test ").c_str(), clock_text(seconds_).c_str());
  std::fflush(stdout);
}

void Run::write_curve() const {
  char text[200];
  std::snprintf(text, sizeof(text), "%s, batch %d, AdamW %g with a cosine, %s parameters",
                options_.devices.c_str(), static_cast<int>(options_.batch), options_.lr,
                grouped(parameters_).c_str());
  std::string subtitle = text;
  if (!history_.epochs().empty()) {
    const EpochRecord& r = history_.epochs().back();
    std::snprintf(text, sizeof(text), ": %.2f%% after %d epoch%s, %.1f s of training",
                  100 * r.test(job_->score()), static_cast<int>(r.epoch), r.epoch == 1 ? "" : "s",
                  r.seconds);
    subtitle += text;
  }
  write_file_atomically(file("curve.png"), draw_curve(history_, steps_per_epoch_,
                                                      options_.model + " on " + job_->data().name,
                                                      subtitle, job_->score()));
}

void Run::write_summary(const EpochRecord& last, const std::string& digest) const {
  nlohmann::ordered_json j;
  const auto number = [](double v) {
    return std::isfinite(v) ? nlohmann::ordered_json(v) : nlohmann::ordered_json(nullptr);
  };
  j["test_accuracy"] = last.test_accuracy;
  j["test_loss"] = number(last.test_loss);
  for (const Measure& m : last.more) j["test_" + m.name] = number(m.value);
  j["seconds"] = seconds_;
  j["images_per_second"] = seconds_ > 0 ? static_cast<double>(images_) / seconds_ : 0.0;
  j["devices"] = nlohmann::ordered_json::array();
  for (Device d : devices_) j["devices"].push_back(d.str() == "cpu" ? "cpu:0" : d.str());
  j["digest"] = digest;
  j["data"] = options_.data;
  j["model"] = options_.model;
  j["parameters"] = parameters_;
  j["epochs"] = options_.epochs;
  j["steps"] = step_;
  j["batch"] = options_.batch;
  j["lr"] = options_.lr;
  j["dropout"] = options_.dropout;
  j["limit"] = options_.limit;
  j["seed"] = options_.seed;
  j["reduce"] = options_.reduce;
  j["threads"] = get_num_threads();
  j["processes"] = processes_->size();
  write_file_atomically(file("summary.json"), j.dump(2) + "\n");
}

int Run::train() {
  if (!processes_->writes()) {
    // The same steps; what they lead to is rank 0's business.
    ProgressBar none;
    for (; epoch_ < options_.epochs; ++epoch_) {
      if (!train_epoch(none)) return 128 + (interrupted() ? interrupted() : SIGTERM);
      agree_on_random_numbers();
    }
    processes_->finish(digest_of(*model_, *optimizer_));
    return 0;
  }
  std::string on;
  for (Device d : devices_)
    on += (on.empty() ? "" : ", ") + (d.str() == "cpu" ? std::string("cpu:0") : d.str());
  std::printf(
      "%s with %s parameters on %s %s of %s; devices %s; %d thread%s; batch %s; %d epoch%s of "
      "%s steps%s\n",
      options_.model.c_str(), grouped(parameters_).c_str(),
      grouped(job_->data().train_rows.size(0)).c_str(), rows(), job_->data().name.c_str(),
      on.c_str(), get_num_threads(), get_num_threads() == 1 ? "" : "s",
      grouped(options_.batch).c_str(), static_cast<int>(options_.epochs),
      options_.epochs == 1 ? "" : "s", grouped(steps_per_epoch_).c_str(),
      step_ > 0 ? (", resumed after step " + grouped(step_)).c_str() : "");
  std::fflush(stdout);
  EpochRecord last{};
  if (!history_.epochs().empty()) last = history_.epochs().back();
  {
    ProgressBar bar;
    while (epoch_ < options_.epochs) {
      const bool finished = train_epoch(bar);
      bar.clear();
      if (!finished) {
        save_checkpoint();
        write_curve();
        std::printf("interrupted after step %s: %s is complete; --resume goes on from there\n",
                    grouped(step_).c_str(), file("checkpoint").c_str());
        return 128 + (interrupted() ? interrupted() : SIGTERM);
      }
      ++epoch_;
      last = test();
      agree_on_random_numbers();
      history_.add(last);
      save_checkpoint();
      write_curve();
      report_epoch(last);
    }
  }
  // resumed at the end of a run whose measurements are gone
  if (last.epoch != epoch_) last = test();
  save(model_, file("model.safetensors"));
  const std::string digest = digest_of(*model_, *optimizer_);
  processes_->finish(digest);
  write_summary(last, digest);
  write_curve();
  std::printf(
      "test accuracy %.2f%%%s; %.1f s of training, %s %s/s; results in %s\n",
      100 * last.test_accuracy, text_of(last.more, ", test ").c_str(), seconds_,
      grouped(std::llround(static_cast<double>(images_) / std::max(1e-9, seconds_))).c_str(),
      rows(), options_.out.c_str());
  if (options_.digest) std::printf("digest %s\n", digest.c_str());
  const NoGradGuard off;
  model_->eval();
  std::fputs(job_->samples(model_, devices_[0]).c_str(), stdout);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int run(Options options) {
  std::optional<Run> r;
  try {
    if (options.was_given("make-data") || !options.make_data.empty()) {
      options.check();
      write_made_images(options, options.make_data);
      std::printf("%s has the images of --data shapes --seed %s, as CIFAR-10's files\n",
                  options.make_data.c_str(), std::to_string(options.seed).c_str());
      return 0;
    }
    r.emplace(options);
  } catch (const Error& e) { throw Refused{e.what()}; }
  return r->train();
}

}  // namespace ramet::training
