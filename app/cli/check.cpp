#include "core/torch/checking/check.h"

#include <memory>

#include "app/cli/check_log.h"
#include "app/cli/checks.h"
#include "app/cli/recorded.h"
#include "core/formats/jobs/job_log.h"
#include "core/torch/execution/device.h"
#include "core/torch/execution/threads.h"

namespace retrograd::cli {
namespace {

int checkOne(Checks checks, const Progress& progress) {
  setThreads(checks.run.threads);
  requireFile(checks.file);
  if (const auto choice = graphToOpen(checks.file)) {
    checks.file = choice->graph.model;
    if (checks.check.reference.empty()) checks.check.reference = choice->graph.values;
  }
  std::vector<CheckReport> reports;
  try {
    auto options = checks.check;
    options.filled = readFill(checks.fill);
    reports.push_back(checkModel(checks.file, options, progress));
  } catch (const Error& error) {
    if (error.code() == ErrorCode::badInput || error.code() == ErrorCode::badUse || error.code() == ErrorCode::cancelled) throw;
    CheckReport report;
    report.name = checks.file;
    report.status = CheckStatus::error;
    report.reason = error.what();
    reports.push_back(std::move(report));
  }
  checks.print(reports.front());
  return checks.conclude(reports);
}

int checkAll(const Checks& checks, const Progress& progress) {
  if (checks.check.device) requireDriver(*checks.check.device);  // the cases run in a process that is still to be forked
  return checks.conclude(checkSuite(
      checks.cases(), checks.run, [&](const CheckReport& report) { checks.print(report); }, progress));
}

Run setup(CLI::App& app) {
  auto checks = std::make_shared<Checks>();
  auto log = std::make_shared<LogCheck>();
  checks->addTo(app, "safetensors file with in.*, cot.*, out.*, grad.in.*, grad.p.*, mut.*");
  addOrder(app, checks->check.order, checks->check.again);
  addDevice(app, checks->check.device);
  log->addTo(app);
  return [checks, log](const Progress& progress) {
    checks->requireFileOrSuite("check");
    if (checks->suite.empty() && jobs::isJobLog(checks->file)) {
      setThreads(checks->run.threads);
      return checkLog(checks->file, *log, checks->check.data, checks->check.reference, checks->check.seed.value_or(0), checks->format, progress);
    }
    if (log->given())
      throw Error(ErrorCode::badUse, "is no log of torch.compile: --compile and --rank choose a compile of a log", checks->file);
    return checks->suite.empty() ? checkOne(*checks, progress) : checkAll(*checks, progress);
  };
}

const Registration registration("check", "compare forward and backward with a reference and with LibTorch's own autograd", setup);

}  // namespace
}  // namespace retrograd::cli
