#include "tools/training/run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "autograd/autocast.h"
#include "autograd/grad_mode.h"
#include "autograd/graph_print.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/observe/observer.h"
#include "tools/training/digest.h"
#include "tools/training/graph_svg.h"
#include "tools/training/image_data.h"
#include "tools/training/results.h"
#include "tools/training/run_state.h"

namespace ramet::training {

namespace {

// The launcher's second attempt goes on where the first one was. It must not go on from the files
// of an earlier run, if the first attempt ended before it wrote anything.
bool left_by_this_launch(const std::string& checkpoint) {
  if (::access(checkpoint.c_str(), R_OK) != 0) return false;
  serialize::InputArchive archive;
  archive.load_from(checkpoint);
  IValue launch;
  return archive.try_read("launch", launch) && launch.toStringRef() == launch_id();
}

}  // namespace

Run::Run(Options& o) : options_(o) {
  o.check();
  RAMET_CHECK(
      !o.ddp || join_processes, "train",
      "--ddp: this program is linked without process groups; expected what ./tools/train builds "
      "for --ddp (//tools/training:train_processes)");
  RAMET_CHECK(o.explore.empty() || record_step, "train",
              "--explore: this program is linked without recordings; expected what ./tools/train "
              "builds for --explore (//tools/training:train_explore)");
  if (o.ddp && started_again() && left_by_this_launch(file("checkpoint"))) o.resume = true;
  RAMET_CHECK(o.ledger_every == 0 || !o.ledger.empty() || o.resume || std::getenv("RAMET_LEDGER"),
              "train", "--ledger-every: got ", o.ledger_every, " without --ledger");
  const auto asked = ledger::to_verify();
  RAMET_CHECK(!asked || !o.resume, "train", "--resume: got it for ./tools/verify");
  const std::string resumed = o.resume ? file("checkpoint") : "";
  if (o.resume) {
    serialize::InputArchive archive;
    archive.load_from(resumed);
    IValue saved;
    archive.read("config", saved);
    o.adopt(saved.toStringRef(), "checkpoint");
    o.check();
    // A ledger goes on where it was.
    if (o.ledger.empty() && ::access(file(kLedger).c_str(), F_OK) == 0) o.ledger = file(kLedger);
  } else if (asked) {
    o.adopt(ledger::recorded_settings(asked->path), "ledger");
    o.check();
  }
  // A checkpoint has weights of its own.
  RAMET_CHECK(o.resume || !is_result(o.weights, o.out), "train", "--weights: got \"", o.weights,
              "\", which a new run in --out \"", o.out,
              "\" removes, expected another --out, or a copy of the file elsewhere");
  config_ = o.config();
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  else if (o.ddp) set_num_threads(threads_beside_others());
  devices_ = parse_devices(o.devices, o.ddp ? number_on_host() : -1);
  job_ = make_job(o);
  const TrainingData& set = job_->data();
  if (o.ddp) processes_ = join_processes(std::chrono::seconds(o.timeout));
  check_batches();

  leader_.emplace(devices_[0]);
  random_.emplace(LeadingGenerators{devices_[0]});
  manual_seed(static_cast<uint64_t>(o.seed));
  model_ = job_->make_model(o.dropout);
  model_->to(devices_[0]);
  for (const Tensor& p : model_->parameters()) parameters_ += p.numel();
  replicas_ = processes_->replicate(model_, devices_, o.reduce);
  optimizer_.emplace(model_->parameters(), job_->optimizer(o.lr));
  scaler_.emplace(optim::GradScalerOptions().enabled(o.autocast == "fp16"));
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
  make_ledger();
  first_step_ = step_;
  // All input has been checked: from here on results are written. Before this line a signal ends
  // the program at once, with the folder as it was.
  if (!o.explore.empty() && writes()) check_page(o.explore, o.out);
  if (writes() && ledger_->is_on()) check_ledger();
  signals_.emplace();
  if (!writes()) return;
  make_folders(o.out);
  remove_leftovers(o.out);
  if (!o.resume) save_checkpoint();  // over the old one: there is a whole one at every moment
  if (step_ == 0) remove_stale_results(o.out);
  history_.open(file("metrics.jsonl"), step_);
  ledger_->begin(step_);
}

void Run::make_ledger() {
  ledger::LedgerOptions o{options_.ledger};
  o.checkpoint_every = options_.ledger_every;
  o.settings = config_;
  o.order = parse_order(options_.reduce).is_tree()
                ? options_.reduce
                : options_.reduce + " with --devices for " + std::to_string(devices_.size()) +
                      " and processes: " + std::to_string(processes_->size());
  o.processes = processes_->size();
  o.writes = processes_->writes();
  ledger_parts_ = checkpoint();
  ledger_.emplace(ledger_parts_, o);
  ledger_->watch(*model_).watch(*optimizer_);
  if (!ledger_->verifies()) return;
  ledger_->begin();
  random_->go_on_from(random_->loaded);
}

// Before anything is written.
void Run::check_ledger() const {
  RAMET_CHECK(options_.reduce != "any", "train",
              "--ledger: got --reduce any, expected fixed or "
              "tree:V, which always have the same bits");
  const std::string path = ledger_->path();
  if (path == file(kLedger)) return;  // its folder is made with the results'
  RAMET_CHECK(
      path != options_.weights && !is_result(path, options_.out) && path != file("checkpoint"),
      "train", "--ledger: got \"", path, "\", expected a file that is no other's");
  ledger::check_ledger_path(path);
}

// The steps from the ledger's checkpoint to the one that was asked for. Only rank 0 compares.
int Run::verify() {
  for (;;) {
    model_->train();
    for (auto& batch : *loader_) {
      train_step(batch);
      if (stop_) return 128 + (interrupted() ? interrupted() : SIGTERM);
      std::vector<double> ended = {ledger_->has_ended() ? 1.0 : 0.0};
      processes_->sum(ended);
      if (ended[0] > 0) return report_verdict();
    }
    ++epoch_;
    if (processes_->writes()) test();
    agree_on_random_numbers();
  }
}

int Run::report_verdict() const {
  if (!processes_->writes()) return 0;
  const ledger::Verdict& found = ledger_->verdict();
  std::printf("verify: %s (from the checkpoint after step %s; devices %s)\n", found.text.c_str(),
              grouped(found.checkpoint).c_str(), options_.devices.c_str());
  return found.same ? 0 : 1;
}

// Checks whole batches, and the rest at the end of an epoch.
void Run::check_batches() const {
  const int64_t all = job_->data().train_rows.size(0), whole = std::min(options_.batch, all),
                least = job_->least_rows();
  for (const int64_t batch : {whole, all % whole}) {
    if (batch == 0) continue;
    const std::vector<int64_t> shares =
        shares_of(batch, devices_.size(), options_.ddp ? processes_->size() : 0, options_.reduce);
    const int64_t share = *std::min_element(shares.begin(), shares.end());
    RAMET_CHECK(share >= least, "train", "--batch: got ", options_.batch, " of ", all, " ", rows(),
                ", of which one batch is ", batch, " and a replica's share of it ", share,
                ", expected at least ", least, " for the batch norms of --model ", options_.model,
                " with ", rows(), " as small as these");
  }
}

Job::Pass Run::train_pass(int number, const data::Example<>& batch, bool last) {
  optimizer_->zero_grad();
  Job::Pass pass;
  {
    RecordScope forward("forward");
    const AutocastGuard autocast(devices_[0].type(),
                                 options_.autocast == "fp16" ? kHalf : kBFloat16,
                                 /*enabled=*/options_.autocast != "off");
    pass = job_->pass(number, *replicas_, *processes_, batch);
  }
  if (last && step_ == first_step_ && writes()) {
    const auto graph =
        autograd::collect_graph({pass.loss}, model_->named_parameters().pairs(), 1000);
    write_file_atomically(file("graph.svg"),
                          draw_graph(graph, "The autograd graph of one step: " + options_.model +
                                                " on " + options_.devices));
  }
  {
    RecordScope backward("backward");
    scaler_->scale(pass.loss).backward();
  }
  ledger_->gradients();
  RecordScope update("optimizer");
  job_->before_step(number, model_);
  scaler_->step(*optimizer_);
  scaler_->update();
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
  ledger_->batch({batch.data, batch.target});
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
  r.accuracy = answers > 0 ? sums[1] / answers : std::nan("");
  r.loss = sums[2];
  for (size_t i = 0; i < further.size(); ++i) r.more.push_back({further[i], sums[3 + i]});
  ++step_;
  images_ += batch.data.size(0);
  ledger_->end_step();
  seconds_ += seconds_since(begun);
  r.seconds = seconds_;
  return r;
}

void Run::write_explored() {
  const std::vector<std::string> ranks = processes_->of_all_ranks(recording_->text());
  if (processes_->writes()) recording_->write(ranks, options_.explore);
  recording_.reset();
  explored_ = step_;
}

// False: interrupted.
bool Run::train_epoch(ProgressBar& bar) {
  model_->train();
  double loss = 0, accuracy = 0;
  int64_t seen = 0;
  const auto begun = Clock::now();
  const int64_t images_before = images_;
  // An early step in which caches are warm already; in a run of a single step, that one.
  const int64_t traced = early_step(2), explored = options_.explore.empty() ? -1 : early_step(5);
  for (auto& batch : *loader_) {
    if (step_ == traced && processes_->writes()) trace_.start();
    if (step_ == explored)
      recording_ = record_step(model_, options_.model + " on " + job_->data().name + ", step " +
                                           grouped(step_ + 1) + ": " + options_.devices +
                                           ", batch " + grouped(batch.data.size(0)));
    const StepRecord r = train_step(batch);
    if (recording_) write_explored();
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
  if (const std::string png = job_->pictures(model_, devices_[0]); !png.empty() && writes())
    write_file_atomically(file("pictures.png"), png);
  return {epoch_, step_, tested.loss, tested.accuracy, seconds_, std::move(tested.more)};
}

int Run::train() {
  if (ledger_->verifies()) return verify();
  if (!processes_->writes()) {
    // The same steps; only rank 0 writes and prints their results.
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
      if (explored_ > 0)
        std::printf("step %s recorded: %s is its page, %s for ./tools/explore\n",
                    grouped(std::exchange(explored_, 0)).c_str(), options_.explore.c_str(),
                    recording_beside(options_.explore).c_str());
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
      ledger_->save_checkpoint();
      write_curve();
      report_epoch(last);
    }
  }
  // resumed at the end of a run without its measurements
  if (last.epoch != epoch_) last = test();
  job_->save_model(model_, options_.out);
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
    if (ledger::to_verify()) return r->train();  // writes nothing
  } catch (const Error& e) { throw Refused{e.what()}; }
  return r->train();
}

}  // namespace ramet::training
