#include "core/torch/checking/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/number_text.h"
#include "core/questions/lost_backward.h"
#include "core/questions/parting.h"
#include "core/torch/analysis/analyse.h"
#include "core/torch/analysis/higher_order.h"
#include "core/torch/analysis/joint_run.h"
#include "core/torch/analysis/own_gradients.h"
#include "core/torch/checking/against_reference.h"
#include "core/torch/checking/judged_run.h"
#include "core/torch/checking/tensor_claims.h"
#include "core/torch/execution/device.h"
#include "core/torch/judging/compare.h"
#include "core/torch/judging/health.h"
#include "core/torch/judging/named_results.h"
#include "core/torch/judging/other_device.h"
#include "core/torch/packs/libtorch/mathematical_forms.h"
#include "core/torch/reading/formats.h"
#include "core/torch/reading/read_model.h"
#include "core/torch/reading/session_file.h"
#include "core/torch/session/fault_watch.h"

namespace retrograd {
namespace {

bool isBelowDouble(DType d) { return isDifferentiable(d) && d != DType::f64 && d != DType::c128 && itemSize(d) > 1; }

bool namesLessThanDouble(const Argument& argument) {
  if (argument.kind == Argument::Kind::dtype) return isBelowDouble(static_cast<DType>(argument.integer));
  return std::ranges::any_of(argument.items, namesLessThanDouble);
}

/// The first op of the graph as written that converts to less than double whatever flows in (`x.to(torch.float32)`), or
/// keeps less than double although all that flows in is double. PyTorch's own run in double rounds there; nullopt where
/// there is none.
std::optional<std::string> pinnedPrecision(const Analysis& asWritten, const Analysis& inDouble) {
  const auto& document = *asWritten.document;
  std::optional<std::string> found;
  for (const auto op : document.boundSymbolIds()) {  // bodies of higher-order ops included
    if (found) break;
    const auto& bound = document.boundSymbol(op);
    if (bound.origin.role != Role::none || bound.operandCount == 0) continue;
    for (const auto& argument : document.pattern(bound.pattern).arguments)
      if (namesLessThanDouble(argument)) found = document.opName(op);
  }
  const auto& doubles = *inDouble.document;
  for (const auto* trace : {&inDouble.forward, &inDouble.backward})
    for (auto op : trace->ops)
      for (auto output : doubles.outputs(op))
        if (!found && output && doubles.isTensor(output) && isBelowDouble(doubles.meta(output).dtype))
          found = doubles.opName(op);
  return found;
}

}  // namespace

struct ModelCheck::Impl {
  Impl(const std::string& path, const CheckOptions& options, const Progress& progress)
      : path_(path), options_(options), progress_(progress) {
    if (!options.reference.empty()) reference_ = readReference(options.reference);
    prepare();
  }

  Report against(const Reference* reference) {
    auto report = basis_;
    if (!report.notJudged.empty()) return report;
    const auto& analysis = *written_->analysis;
    auto claims = claims_;
    const auto expected = reference ? namedExpectations(analysis, reference->expected) : TensorMap();
    const bool byNumbers = options_.deterministic && !(reference && isDrawnElsewhere(*reference));
    std::set<std::string> finiteAsExpected;
    AgainstReference comparison(*written_, leftOut_, claims, report, reference && reference->hasNoGradients);
    const bool isOfLower = reference && analysis.differentiated && !isOfHigherOrder(*reference, firstOf(analysis).file);
    if (isOfLower) comparison.compareFirstOrder(*reference);
    else if (reference && byNumbers) comparison.compareNumbers(expected, reference->drawnOnGpu);
    else if (reference) comparison.compareShapes(expected, isDrawnElsewhere(*reference));
    if (reference && reference->inDouble && double_)
      comparison.compareInDouble(*double_, *reference->inDouble, pinned_);
    if (reference && byNumbers)
      for (const auto& [name, tensor] : isOfLower ? eagerTwice_ : expected) finiteAsExpected.insert(name);
    claims.writeTo(report, written_->run);
    if (reference && !analysis.backward.ops.empty())
      if (auto parting = whereGradientsPart(claims, expected))
        report.claims.insert(report.claims.begin(), std::move(*parting));
    if (!options_.gradInputs && (!reference || !reference->requiresGrad)) listUndifferentiated(report);
    for (const auto& difference : analysis.printedDifferences)
      report.claims.push_back({.kind = "printed-difference", .sentence = difference});
    if (const auto missing = countMissingOrigins(analysis); missing > 0)
      report.claims.push_back({.kind = "no-origin", .sentence = fmt::format("{} ops have no origin", missing)});
    for (auto& claim : healthOf(analysis, written_->run, finiteAsExpected, someFault_, progress_))
      report.claims.push_back(std::move(claim));
    sayWhatIsNotJudged(report, claims, reference);
    if (!holdsGradients(expected)) sayWhichBackwardsWereNotTested(report);
    return report;
  }

  const std::optional<Reference>& reference() const { return reference_; }

 private:
  static bool holdsGradients(const TensorMap& expected) {
    return std::ranges::any_of(expected, [](const auto& tensor) { return isGradientName(tensor.first); });
  }

  /// Nothing is promised of what was compared with nothing.
  void sayWhatIsNotJudged(Report& report, const TensorClaims& claims, const Reference* reference) {
    const auto& analysis = *written_->analysis;
    if (reference)
      for (const auto& name : namesNotUsed(*reference, analysis.computation()))
        report.notJudged.push_back(notCompared(analysis, name + " of the reference"));
    if (reference && holdsNothing(*reference))
      skip(report, "the reference holds nothing to compare: no out.*, grad.*, mut.* and no loss");
    else if (!claims.comparedAny() && !written_->run.empty())
      skip(report, "no result was compared with another run: " + written_->judge.noise().refusal() +
                       "; give PyTorch's results with --reference");
  }

  /// A custom Function's backward is in the gradients that PyTorch gave, never in the file.
  void sayWhichBackwardsWereNotTested(Report& report) const {
    const auto& analysis = *written_->analysis;
    const auto lost = lostFunctions(*analysis.document, analysis.computation().trace.ops);
    if (lost.empty() || analysis.backward.ops.empty()) return;
    auto claim = warningClaim(
        fmt::format("NOT tested: the backward of {}, which the file does not hold", fmt::join(lost, ", ")));
    claim.remedy =
        "capture the step with retrograd.capture in Python, which records PyTorch's gradients, and check its folder";
    report.claims.push_back(std::move(claim));
  }

  static void skip(Report& report, std::string reason) { report.notJudged.push_back({{}, std::move(reason)}); }

  void prepare() {
    if (options_.device) requireDevice(*options_.device);
    if (options_.device && options_.device->type == Device::Type::cuda) fullPrecision_.emplace();
    if (isOf(Format::session, path_)) stored_ = loadSession(path_, progress_, options_.rules);
    auto file = stored_ ? stored_->file : read();
    if (reference_) placeLoss(*reference_, file);
    if (const auto unusable = errorsOf(file.problems); !unusable.empty()) return skip(basis_, unusable);
    if (file.computation.outputs.empty()) return skip(basis_, "the file holds nothing to check: it has no outputs");
    const auto analysis = stored_ ? analyseStored(false) : analyseFile(std::move(file), false);
    for (const auto& warning : options_.warnings) basis_.claims.push_back(warningClaim(warning));
    addWarnings(*analysis, basis_.claims);
    if (analysis->device.type == Device::Type::cuda)
      if (const auto why = refusedByCuda(*analysis)) return skip(basis_, *why);
    if (!analysis->derived())
      throw Error(ErrorCode::execution, "the backward could not be derived: " + errorsOf(analysis->problems), path_);
    count(*analysis);
    leftOut_ = leftOutNames(*analysis);
    written_.emplace(analysis, options_, progress_);
    if (analysis->leftOut && sayWhatIsLeftOut(*analysis)) return;
    compareRuns();
    if (reference_ && reference_->inDouble && options_.deterministic && !isDrawnElsewhere(*reference_) &&
        !analysis->differentiated)
      runInDouble();
  }

  /// A file that is traced is so on the reference's inputs.
  ModelFile read() const {
    const auto options = reference_ ? options_.forReading(reference_->inputs, reference_->seed) : options_.forReading();
    return readModel(path_, options, progress_);
  }

  DerivationRequest requestFor(const ModelFile& file, bool inDouble) const {
    DerivationRequest request = reference_ ? retrograd::requestFor(*reference_, file) : DerivationRequest();
    options_.layOver(request);
    if (inDouble) request.precision = DType::f64;
    return request;
  }

  std::shared_ptr<const Analysis> analyseFile(ModelFile file, bool inDouble) {
    const auto request = requestFor(file, inDouble);
    return analyse(std::move(file), request, progress_);
  }

  /// The session as it was saved, unless something else is asked for.
  std::shared_ptr<const Analysis> analyseStored(bool inDouble) {
    if (!inDouble && !reference_ && options_.isDefault()) return stored_;
    auto request = overlaid(*stored_, requestFor(stored_->file, inDouble));
    options_.layOver(request);  // also what is asked for and is the default
    return deriveAnew(*stored_, request, progress_);
  }

  void count(const Analysis& analysis) {
    addDetails(basis_, opCounts(analysis));
    for (const auto& reason : analysis.dataDependent) basis_.notes.push_back("holds for these inputs only: " + reason);
    std::set<std::string> formulas;
    for (const auto* level = &analysis; level; level = level->differentiated.get())
      for (const auto& problem : level->problems)
        if (problem.message == mathematicalFormNote) formulas.insert(problem.place);
    for (const auto& op : formulas) basis_.notes.push_back(op + " is differentiated by its formula");
  }

  /// Whether nothing remains that could be checked.
  bool sayWhatIsLeftOut(const Analysis& analysis) {
    addLeftOut(analysis, leftOut_, basis_.claims);
    const auto& run = written_->run;
    if (!reference_ &&
        std::ranges::all_of(run, [&](const auto& tensor) { return leftOut_.partial.contains(tensor.first); })) {
      skip(basis_, "what could be compared depends on ops that are opaque here: " +
                       opaqueOpsText(*analysis.document, analysis.joint.ops));
      return true;
    }
    return false;
  }

  /// With everything but the reference.
  void compareRuns() {
    const auto& analysis = *written_->analysis;
    compareWithJoint(analysis);
    progress_.check();
    if (written_->isOnGpu()) compareWithCpu(analysis);
    progress_.check();
    // The joint as a program of its own does not say what a backward reads late.
    const bool readsLate = analysis.differentiated && !analysis.differentiated->readLate.empty();
    if (const auto* eager = readsLate ? nullptr : written_->judge.noise().eager())
      compareWithEager(Producer::eager, *eager);
    else if (!readsLate)
      basis_.notes.push_back("not compared with LibTorch's autograd: " + written_->judge.noise().refusal());
    progress_.check();
    if (orderOf(analysis) == 2 && differentiatedKind(analysis) == TraceKind::joint) compareWithEagerTwice(analysis);
    if (orderOf(analysis) == 1) compareOwnGradients(analysis);
  }

  /// The gradients that a program exported with its backward has of its own, against those derived from its forward.
  void compareOwnGradients(const Analysis& analysis) {
    const auto own = ownGradients(analysis);
    if (own.empty()) return;
    for (const auto& [key, tensor] : own) {
      const auto name = "grad." + key;
      const auto* derived = findTensor(written_->run, name);
      if (derived != nullptr) claims_.add(Producer::derivative, name, written_->compare(name, tensor, *derived));
      else if (!leftOut_.names.contains(name)) claims_.fail(Producer::derivative, name, "the derived one is None");
    }
    basis_.notes.push_back(
        fmt::format("the file has gradients of its own: {} compared with the derived ones", own.size()));
  }

  /// Split and session against the joint trace in one go, whose results are let go then.
  void compareWithJoint(const Analysis& analysis) {
    FaultWatch watch(analysis);
    bool begun = false;
    const auto joint = namedResults(analysis, runJoint(analysis, [&](Evaluator& evaluator, BoundSymbolId op) {
                                      if (!std::exchange(begun, true)) watch.lookAtInputs(evaluator);
                                      watch.look(evaluator, op);
                                    }));
    someFault_ = watch.seen();
    progress_.check();
    const auto same = [&](Producer by, const TensorMap& run) {
      if (written_->isOnGpu()) compareValues(by, run, joint, false);
      else compareBits(claims_, by, run, joint);
    };
    same(Producer::split, namedResults(analysis, runSplit(analysis)));
    same(Producer::session, written_->run);
  }

  void compareValues(Producer by, const TensorMap& run, const TensorMap& other, bool ofOther) {
    forEachName(run, other, [&](const std::string& name, const TensorData* x, const TensorData* y) {
      if (x && y) claims_.add(by, name, written_->compare(name, *x, *y, false, ofOther));
      else claims_.fail(by, name, x ? "missing in the other run" : "missing");
    });
  }

  /// Against the same file on the CPU, with the same inputs.
  void compareWithCpu(const Analysis& analysis) {
    const auto run = written_->onCpu().run(progress_);
    if (!drawsRandomNumbers(analysis)) return compareValues(Producer::cpu, written_->run, run, true);
    basis_.notes.push_back("compared with the CPU by shape only: a GPU draws other random numbers");
    forEachName(written_->run, run, [&](const std::string& name, const TensorData* x, const TensorData* y) {
      if (!x || !y) return claims_.fail(Producer::cpu, name, x ? "missing in the other run" : "missing");
      if (auto reason = shapeDifference(*x, *y); !reason.empty()) claims_.fail(Producer::cpu, name, std::move(reason));
    });
  }

  /// Against LibTorch's own autograd. Of memory it says only what it wrote; what either side did not write is as it
  /// was.
  void compareWithEager(Producer by, const TensorMap& eager) {
    const auto& analysis = *written_->analysis;
    forEachName(written_->run, eager, [&](const std::string& name, const TensorData* x, const TensorData* y) {
      if (leftOut_.names.contains(name) || leftOut_.partial.contains(name)) return;
      if (isWrittenName(name)) {
        if (!x) x = afterTheRun(analysis, written_->run, name);
        if (!y) y = afterTheRun(analysis, eager, name);
      }
      if (x && y) claims_.add(by, name, written_->compare(name, *x, *y));
      else if (x)
        claims_.fail(by, name, isGradientName(name) ? "should be None: LibTorch gives none" : "LibTorch gives none");
      else claims_.fail(by, name, "missing");
    });
  }

  /// LibTorch's autograd refuses some models that have a well-defined gradient, as those that write to what it has
  /// saved.
  void compareWithEagerTwice(const Analysis& analysis) {
    RunResult eager;
    try {
      eager = runEagerTwice(analysis);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::execution) throw;
      basis_.notes.push_back("not compared with LibTorch's autograd: " + e.message());
      return;
    }
    eagerTwice_ = namedResults(analysis, eager);
    compareWithEager(Producer::eagerAgain, eagerTwice_);
  }

  bool isDrawnElsewhere(const Reference& reference) const {
    return drawsElsewhere(*written_->analysis, reference.drawnOnGpu);
  }

  /// Where outputs are the reference's, the graph's gradients are LibTorch's, and the reference's gradients differ: the
  /// op behind which PyTorch ran something else.
  std::optional<Claim> whereGradientsPart(const TensorClaims& claims, const TensorMap& expected) const {
    const auto found = claims.referenceGradients();
    if (!found) return std::nullopt;
    const auto inputs = inputsByGradient(*written_->analysis);
    const auto valuesOf = [&](const std::set<std::string>& names) {
      std::set<ValueId> values;
      for (const auto& name : names)
        if (const auto input = inputs.find(name); input != inputs.end()) values.insert(input->second);
      return values;
    };
    const GradientsOfInputs gradients{valuesOf(found->wrong), valuesOf(found->right),
                                      commonFactor(found->wrong, written_->run, expected)};
    return retrograd::whereGradientsPart(*written_->analysis, gradients, options_.customBackward);
  }

  /// Inputs that were not differentiated though nobody asked for that, as those without a gradient in a reference that
  /// does not say which it differentiated: a missing gradient does not prove that there is none.
  void listUndifferentiated(Report& report) const {
    if (written_->analysis->differentiated) return;
    const auto& document = *written_->analysis->document;
    for (const auto& input : written_->analysis->computation().inputs) {
      const auto name = "grad.in." + input.name;
      if (input.kind != InputKind::user || !input.value || !document.isTensor(input.value) ||
          document.value(input.value).requiresGrad)
        continue;
      if (isDifferentiable(document.meta(input.value).dtype)) report.claims.push_back(notComparedClaim(name));
    }
  }

  /// On a GPU kernels of float64 may lay out results otherwise than those the file was exported with, so that a view in
  /// it does not fit: then there is no such run.
  void runInDouble() {
    try {
      deriveAndRunInDouble();
    } catch (const Error& e) {
      const bool isRefused = e.code() == ErrorCode::execution || e.code() == ErrorCode::unsupportedOp;
      if (!written_->isOnGpu() || !isRefused) throw;
      double_.reset();
      basis_.notes.push_back("not compared in double precision: it does not run so on a GPU (" + e.message() + ")");
    }
  }

  void deriveAndRunInDouble() {
    const auto analysis = stored_ ? analyseStored(true) : analyseFile(read(), true);
    if (!analysis->derived())
      throw Error(ErrorCode::execution, "in double precision: " + errorsOf(analysis->problems), path_);
    double_.emplace(analysis, options_, progress_);
    pinned_ = pinnedPrecision(*written_->analysis, *analysis);
  }

  std::optional<FullPrecision> fullPrecision_;  // on a GPU
  const std::string path_;
  const CheckOptions options_;
  const Progress progress_;
  std::optional<Reference> reference_;
  std::shared_ptr<const Analysis> stored_;  // where the file is a session
  std::optional<JudgedRun> written_;        // in the file's own precision
  std::optional<JudgedRun> double_;
  std::optional<std::string> pinned_;
  LeftOutNames leftOut_;    // what opaque ops keep from being computed
  bool someFault_ = false;  // some value of the run is NaN, or infinite and not meant to be
  TensorMap eagerTwice_;    // order 2: LibTorch's own gradients of gradients
  TensorClaims claims_;     // of all but the reference
  Report basis_;            // what every report starts from
};

OpCounts opCounts(const Analysis& analysis) {
  return {analysis.computation().trace.ops.size(), analysis.joint.ops.size(), analysis.forward.ops.size(),
          analysis.backward.ops.size()};
}

nlohmann::ordered_json toJson(const OpCounts& ops) {
  return {{"computation", ops.computation}, {"joint", ops.joint}, {"forward", ops.forward}, {"backward", ops.backward}};
}

void addDetails(Report& report, const OpCounts& ops) {
  const nlohmann::ordered_json counts = toJson(ops);
  for (const auto& [name, count] : counts.items()) report.details[name + "_ops"] = count.get<double>();
}

ModelCheck::ModelCheck(const std::string& path, const CheckOptions& options, const Progress& progress)
    : impl_(std::make_unique<Impl>(path, options, progress)) {}
ModelCheck::~ModelCheck() = default;

const Reference* ModelCheck::reference() const { return impl_->reference() ? &*impl_->reference() : nullptr; }
Report ModelCheck::report() { return impl_->against(reference()); }
Report ModelCheck::against(const Reference& other) { return impl_->against(&other); }

Report checkModel(const std::string& path, const CheckOptions& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto report = ModelCheck(path, options, progress).report();
  report.subject = path;
  report.details["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace retrograd
