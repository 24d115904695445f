#include "core/torch/checking/check.h"

#include <fmt/format.h>

#include <memory>

#include "app/cli/check/check_log.h"
#include "app/cli/check/check_ranks.h"
#include "app/cli/check/check_recording.h"
#include "app/cli/check/checks.h"
#include "app/cli/parsing/input.h"
#include "core/formats/folder/folder.h"
#include "core/formats/repro/repro_inputs.h"
#include "core/torch/execution/device.h"
#include "core/torch/reading/formats.h"
#include "core/torch/tracing/thread_scope.h"

namespace retrograd::cli {
namespace {

Report checkOne(const Checks& checks, const std::string& file, const Progress& progress) {
  try {
    auto options = checks.check;
    options.filled = readFill(checks.fill);
    auto path = reproScript(inputFile(file));
    if (const auto choice = chooseGraph(path)) {
      if (!choice->failure.empty()) fmt::print(stderr, "note: {}: recorded because {}\n", path, choice->failure);
      path = choice->graph.model;
      if (options.reference.empty()) options.reference = choice->graph.values;
      options.customBackward = choice->graph.customBackward;
      for (const auto& line : choice->cannotReplay) options.warnings.push_back("cannot be replayed: " + line);
    }
    return checkModel(path, options, progress);
  } catch (const Error& error) {
    const bool isRefused = error.code() == ErrorCode::badInput || error.code() == ErrorCode::badUse;
    if (error.code() == ErrorCode::cancelled || (checks.files.size() == 1 && isRefused)) throw;
    return isRefused ? reportOfRefusal(file, error.what()) : reportOfError(file, error.what());
  }
}

int checkEach(const Checks& checks, const Progress& progress) {
  setThreads(checks.run.threads);
  for (const auto& file : checks.files) {
    requireFile(inputFile(file));
    if (isOf(Format::recording, file)) badUse("is a recording: check each of these alone", file);
  }
  std::vector<Report> reports;
  for (const auto& file : checks.files) {
    reports.push_back(checkOne(checks, file, progress));
    checks.print(reports.back());
  }
  return checks.conclude(reports);
}

int checkAll(const Checks& checks, const Progress& progress) {
  if (checks.check.device)
    requireDriver(*checks.check.device);  // the cases run in a process that is still to be forked
  return checks.conclude(
      checkSuite(checks.cases(), checks.run, [&](const Report& report) { checks.print(report); }, progress));
}

Run setUpCheck(Parser parser) {
  auto checks = std::make_shared<Checks>();
  checks->addTo(parser, "safetensors file with in.*, cot.*, out.*, grad.in.*, grad.p.*, mut.*");
  addOrder(parser, checks->check.order, checks->check.again);
  addDevice(parser, checks->check.device);
  const auto recording = std::make_shared<RecordingChecks>();
  parser.flag(
      "--strict", recording->strict,
      "of a recorded step: a suspicion (custom Function, hook, detach, no_grad, what the loop does) is a fault");
  parser.add("--against", recording->against,
             "of a recorded step: a recording of a good one; a suspicion that it lacks is a fault. Of several ranks: "
             "one process on the whole batch, whose gradients they need to have");
  return [checks, recording](const Progress& progress) {
    checks->requireFileOrSuite("check");
    const bool isOne = checks->suite.empty() && checks->files.size() == 1;
    const auto format = isOne ? formatOf(inputFile(checks->files.front())).format : Format::model;
    if (format == Format::recording) {
      if (!checks->check.reference.empty())
        badUse("is a recording: it is compared with its own hashes, not with a reference", checks->files.front());
      recording->format = checks->format;
      return checkRecording(checks->files.front(), *recording, progress);
    }
    if (format == Format::ranks) {
      recording->format = checks->format;
      return checkRanks(inputFile(checks->files.front()), *recording, progress);
    }
    if (recording->strict || !recording->against.empty())
      badUse("--strict and --against are for one recording (retrograd.record in Python makes it)", "check");
    if (format == Format::job) {
      setThreads(checks->run.threads);
      return checkLog(checks->files.front(), checks->check.data, checks->check.reference, readFill(checks->fill),
                      checks->check.seed.value_or(0), checks->format, progress);
    }
    return checks->suite.empty() ? checkEach(*checks, progress) : checkAll(*checks, progress);
  };
}

const Registration registrationCheck("check",
                                     "compare forward and backward with a reference and with LibTorch's own autograd",
                                     setUpCheck);

}  // namespace
}  // namespace retrograd::cli
