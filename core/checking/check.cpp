#include "core/checking/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>

#include "core/checking/compare.h"
#include "core/checking/reference.h"
#include "core/checking/tolerance.h"
#include "core/debug/higher_order.h"
#include "core/debug/joint_run.h"
#include "core/debug/read_model.h"
#include "core/debug/session.h"
#include "core/debug/session_file.h"
#include "core/execution/device.h"
#include "core/formats/file_kind.h"

namespace retrograd {
namespace {

struct Groups {
  Comparison outputs, gradients, mutations;
};

/// Tied parameters have several names; all of them lead to the first.
class ParameterNames {
 public:
  explicit ParameterNames(const Computation& computation) {
    std::map<std::string, std::string> byStorage;
    for (const auto& input : computation.inputs) {
      if (input.kind != InputKind::parameter) continue;
      const auto first = input.storageKey.empty() ? input.target : byStorage.try_emplace(input.storageKey, input.target).first->second;
      first_.try_emplace(input.target, first);
      for (const auto& alias : input.aliases) first_.try_emplace(alias, first);
    }
  }
  std::string first(const std::string& name) const {
    const auto it = first_.find(name);
    return it == first_.end() ? name : it->second;
  }

 private:
  std::map<std::string, std::string> first_;
};

/// "grad.p.w", "grad.in.x" for the gradients "p.w", "in.x" of a run.
TensorMap keyed(const TensorMap& gradients, const ParameterNames& names) {
  TensorMap result;
  for (const auto& [key, tensor] : gradients)
    result.emplace("grad." + (key.starts_with("p.") ? "p." + names.first(key.substr(2)) : key), tensor);
  return result;
}

RunResult runSession(const std::shared_ptr<const Analysis>& analysis, const Progress& progress) {
  SessionOptions options;
  options.keepHistory = false;
  Session session(analysis, options);
  session.runTo(session.size(), progress);
  return {session.results(), session.gradients(), session.mutated()};
}

std::optional<TensorData> literalOutput(const Argument& literal) {
  if (literal.kind != Argument::Kind::integer && literal.kind != Argument::Kind::real) return std::nullopt;
  const bool real = literal.kind == Argument::Kind::real;
  auto memory = std::make_shared<std::pair<std::int64_t, double>>(literal.integer, literal.real);
  TensorData tensor;
  tensor.meta.dtype = real ? DType::f64 : DType::i64;
  tensor.data = real ? reinterpret_cast<const std::byte*>(&memory->second) : reinterpret_cast<const std::byte*>(&memory->first);
  tensor.bytes = 8;
  tensor.owner = memory;
  return tensor;
}

/// The user output at `position` (as text) of a run; nullopt where it is None or there is none.
std::optional<TensorData> outputOf(const Computation& computation, const RunResult& run, const std::string& position) {
  const auto users = userOutputs(computation);
  const auto i = static_cast<std::size_t>(std::stoul(position));
  if (i >= users.size()) return std::nullopt;
  if (i < run.outputs.size() && run.outputs[i]) return run.outputs[i];
  return literalOutput(computation.outputs[users[i]].literal);
}

/// Compares a run with a reference.
class ReferenceComparison {
 public:
  ReferenceComparison(const Analysis& analysis, const RunResult& run, bool deterministic, bool anyFloatType, std::string prefix)
      : analysis_(analysis),
        run_(run),
        deterministic_(deterministic),
        anyFloatType_(anyFloatType),
        prefix_(std::move(prefix)),
        names_(analysis.computation()) {}

  Groups compare(const Expected& expected) {
    for (const auto& [position, tensor] : expected.outputs) {
      auto actual = outputOf(analysis_.computation(), run_, position);
      if (actual) fitUnits(position, *actual, tensor.meta);
      if (actual)
        add(groups_.outputs, "out." + position, *actual, tensor);
      else
        groups_.outputs.fail(prefix_ + "out." + position, "missing");
    }
    compareGradients(expected);
    for (const auto& [name, tensor] : expected.bufferMutations) mutation("b." + name, analysis_.file.weights, name, tensor);
    for (const auto& [name, tensor] : expected.inputMutations) mutation("in." + name, analysis_.inputs, name, tensor);
    return std::move(groups_);
  }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// PyTorch 2.9's decomposed LSTM returns its states with one dimension of size 1 more than eager does. Where the file itself says
  /// so, the elements are compared and the report tells.
  void fitUnits(const std::string& position, TensorData& actual, const TensorMeta& expected) {
    auto units = [](std::vector<std::int64_t> sizes) { return std::erase(sizes, 1), sizes; };
    const auto& computation = analysis_.computation();
    const auto declared = computation.outputs[userOutputs(computation).at(std::stoul(position))].value;
    if (isComplex(actual.meta.dtype) || actual.meta.sizes == expected.sizes || units(actual.meta.sizes) != units(expected.sizes)) return;
    if (!declared || !analysis_.document->isTensor(declared) ||
        analysis_.document->meta(analysis_.document->value(declared).meta).sizes != actual.meta.sizes)
      return;
    notes_.push_back("out." + position + " has the file's shape, which differs from the reference's by dimensions of size 1");
    actual.meta.sizes = expected.sizes;
    actual.meta.strides = contiguousStrides(expected.sizes);
  }

  void add(Comparison& group, const std::string& key, const TensorData& actual, const TensorData& expected) {
    if (deterministic_)
      group.add(prefix_ + key, actual, expected, anyFloatType_);
    else
      group.addShape(prefix_ + key, actual, expected);
  }

  void compareGradients(const Expected& expected) {
    auto actual = keyed(run_.gradients, names_);
    const auto one = [&](const std::string& key, const TensorData& tensor) {
      const auto it = actual.find(key);
      if (it == actual.end()) {
        if (!isZero(tensor)) groups_.gradients.fail(prefix_ + key, "missing");
        return;
      }
      add(groups_.gradients, key, it->second, tensor);
      actual.erase(it);
    };
    for (const auto& [name, tensor] : expected.inputGradients) one("grad.in." + name, tensor);
    for (const auto& [name, tensor] : expected.parameterGradients) one("grad.p." + names_.first(name), tensor);
    for (const auto& [key, tensor] : actual)
      if (!isZero(tensor)) groups_.gradients.fail(prefix_ + key, "should be None or zero");
  }

  /// What was not written to is as it was given.
  void mutation(const std::string& key, const TensorMap& before, const std::string& name, const TensorData& expected) {
    if (const auto it = run_.mutated.find(key); it != run_.mutated.end()) return add(groups_.mutations, "mut." + key, it->second, expected);
    if (const auto it = before.find(name); it != before.end()) return add(groups_.mutations, "mut." + key, it->second, expected);
    groups_.mutations.fail(prefix_ + "mut." + key, "missing");
  }

  const Analysis& analysis_;
  const RunResult& run_;
  bool deterministic_, anyFloatType_;
  std::string prefix_;
  ParameterNames names_;
  Groups groups_;
  std::vector<std::string> notes_;
};

/// Compares two runs of the same analysis; `tell` gets the group, the key, and the tensors (null where a run has none).
template <class Tell>
void forEachPair(const Analysis& analysis, const RunResult& a, const RunResult& b, Tell&& tell) {
  const auto users = userOutputs(analysis.computation());
  for (std::size_t i = 0; i < users.size(); ++i) {
    const auto position = std::to_string(i);
    const auto x = outputOf(analysis.computation(), a, position), y = outputOf(analysis.computation(), b, position);
    tell(&Groups::outputs, "out." + position, x ? &*x : nullptr, y ? &*y : nullptr);
  }
  const auto maps = [&](Comparison Groups::*group, const std::string& prefix, const TensorMap& x, const TensorMap& y) {
    std::set<std::string> keys;
    for (const auto& [key, tensor] : x) keys.insert(key);
    for (const auto& [key, tensor] : y) keys.insert(key);
    const auto find = [](const TensorMap& map, const std::string& key) {
      const auto it = map.find(key);
      return it == map.end() ? nullptr : &it->second;
    };
    for (const auto& key : keys) tell(group, prefix + key, find(x, key), find(y, key));
  };
  const ParameterNames names(analysis.computation());
  maps(&Groups::gradients, "", keyed(a.gradients, names), keyed(b.gradients, names));
  maps(&Groups::mutations, "mut.", a.mutated, b.mutated);
}

/// The same ops on the same values give the same bits, whether run as one trace, as two, or step by step.
Groups compareBits(const Analysis& analysis, const std::string& prefix, const RunResult& run, const RunResult& joint) {
  Groups groups;
  forEachPair(analysis, run, joint, [&](Comparison Groups::*group, const std::string& key, const TensorData* x, const TensorData* y) {
    if (!x && !y) return;
    if (!x || !y)
      (groups.*group).fail(prefix + key, x ? "missing in the joint trace's run" : "missing");
    else if (!identical(*x, *y))
      (groups.*group).fail(prefix + key, "is not bit for bit what the joint trace gives");
  });
  return groups;
}

/// The same where kernels may add in any order, or, with `shapesOnly`, draw other numbers.
Groups compareNearly(const Analysis& analysis, const std::string& prefix, const RunResult& run, const RunResult& other, bool shapesOnly) {
  Groups groups;
  forEachPair(analysis, run, other, [&](Comparison Groups::*group, const std::string& key, const TensorData* x, const TensorData* y) {
    if (!x && !y) return;
    if (!x || !y) (groups.*group).fail(prefix + key, x ? "missing in the other run" : "missing");
    else if (shapesOnly) (groups.*group).addShape(prefix + key, *x, *y);
    else (groups.*group).add(prefix + key, *x, *y);
  });
  return groups;
}

Groups compareValues(const Analysis& analysis, const std::string& prefix, const RunResult& run, const RunResult& other) {
  return compareNearly(analysis, prefix, run, other, false);
}

/// Some op draws random numbers.
bool draws(const Analysis& analysis) {
  return std::any_of(analysis.joint.ops.begin(), analysis.joint.ops.end(),
                     [&](BoundSymbolId op) { return analysis.document->boundSymbol(op).effects & effect::random; });
}

/// Against LibTorch's autograd. A gradient one side leaves out must be zero on the other; eager says nothing of what it did not
/// mutate.
Groups compareWithEager(const Analysis& analysis, const RunResult& run, const RunResult& eager) {
  Groups groups;
  forEachPair(analysis, run, eager, [&](Comparison Groups::*group, const std::string& key, const TensorData* x, const TensorData* y) {
    if (!x && !y) return;
    const bool mutation = group == &Groups::mutations;
    if (x && y)
      (groups.*group).add("eager/" + key, *x, *y);
    else if (!mutation && !isZero(x ? *x : *y))
      (groups.*group).fail("eager/" + key, x ? "LibTorch gives none" : "missing");
  });
  return groups;
}

/// Takes the groups' verdict into the report: the worst tensor is the one furthest beyond, or nearest to, its tolerance.
void judge(CheckReport& report, const Groups& groups, const Tolerances& tolerances) {
  const std::pair<const Comparison*, double> parts[] = {
      {&groups.outputs, tolerances.outputs}, {&groups.gradients, tolerances.gradients}, {&groups.mutations, tolerances.outputs}};
  for (const auto& [comparison, tolerance] : parts) {
    const double error = comparison->error();
    const bool worse = report.tolerance == 0 || error / tolerance > report.error / report.tolerance;
    if (worse && error > 0) {
      report.error = error;
      report.worst = comparison->worst();
      report.tolerance = tolerance;
    } else if (report.tolerance == 0) {
      report.tolerance = tolerance;
    }
    if (error <= tolerance) continue;
    report.status = CheckStatus::fail;
    auto reason = comparison->failure();
    if (reason.empty()) reason = fmt::format("{} differs by {:.2g}, tolerance {:.2g}", comparison->worst(), error, tolerance);
    if (report.reason.empty()) report.reason = reason;
  }
}

bool namesFloat32(const Argument& argument) {
  if (argument.kind == Argument::Kind::dtype)
    return isSingle(static_cast<DType>(argument.integer)) || isHalf(static_cast<DType>(argument.integer));
  return std::any_of(argument.items.begin(), argument.items.end(), namesFloat32);
}

/// The first op of the graph as written that converts to less than double whatever flows in (`x.to(torch.float32)`), or keeps
/// less than double although all that flows in is double. PyTorch's own run in double rounds there; nullopt where there is none.
std::optional<std::string> pinnedPrecision(const Analysis& asWritten, const Analysis& inDouble) {
  const auto& document = *asWritten.document;
  std::optional<std::string> found;
  for (std::size_t i = 0; i < document.boundSymbolCount() && !found; ++i) {  // bodies of higher-order ops included
    const BoundSymbolId op(static_cast<std::int64_t>(i));
    const auto& bound = document.boundSymbol(op);
    if (bound.origin.role != Role::none || bound.operandCount == 0) continue;
    for (const auto& argument : document.pattern(bound.pattern).arguments)
      if (namesFloat32(argument)) found = document.opName(op);
  }
  forEachComputedMeta(inDouble, [&](BoundSymbolId op, const TensorMeta& meta) {
    if (!found && (isSingle(meta.dtype) || isHalf(meta.dtype))) found = inDouble.document->opName(op);
  });
  return found;
}

std::size_t countMissingOrigins(const Analysis& analysis) {
  std::size_t missing = 0;
  for (const auto* trace : {&analysis.joint, &analysis.backward})
    for (auto op : trace->ops) {
      const auto& origin = analysis.document->boundSymbol(op).origin;
      if (origin.role == Role::none || (!origin.op && !origin.value)) ++missing;
    }
  return missing;
}

std::string errorsOf(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& p : problems)
    if (p.severity == Problem::Severity::error) text += (text.empty() ? "" : "; ") + (p.place.empty() ? "" : p.place + ": ") + p.message;
  return text;
}

class Check {
 public:
  Check(const std::string& path, const CheckOptions& options, const Progress& progress)
      : path_(path), options_(options), progress_(progress) {
    if (!options.reference.empty()) reference_ = readReference(options.reference);
  }

  CheckReport run() {
    if (options_.device) requireDevice(*options_.device);
    if (options_.device && options_.device->type == Device::Type::cuda) computeInFullPrecision();
    if (isSessionFile(path_)) stored_ = loadSession(path_, progress_, options_.rules);
    auto file = stored_ ? stored_->file : read();
    if (const auto unknown = errorsOf(file.problems); !unknown.empty()) {
      report_.unknownOps = true;
      return skip(unknown);
    }
    if (file.computation.outputs.empty()) return skip("the file holds nothing to check: it has no outputs");
    const auto analysis = stored_ ? analyseStored(false) : analyseFile(std::move(file), false);
    if (!analysis->derived())
      throw Error(ErrorCode::execution, "the backward could not be derived: " + errorsOf(analysis->problems), path_);
    count(*analysis);
    compareAll(analysis);
    if (reference_ && reference_->inDouble && options_.deterministic && !analysis->differentiated) compareInDouble(*analysis);
    for (const auto& difference : analysis->printedDifferences) {
      report_.status = CheckStatus::fail;
      if (report_.reason.empty()) report_.reason = difference;
    }
    if (report_.originsMissing > 0) {
      report_.status = CheckStatus::fail;
      if (report_.reason.empty()) report_.reason = fmt::format("{} ops have no origin", report_.originsMissing);
    }
    return std::move(report_);
  }

 private:
  CheckReport skip(std::string reason) {
    report_.status = CheckStatus::skip;
    report_.reason = std::move(reason);
    return std::move(report_);
  }

  /// A file that is traced is so on the reference's inputs.
  ModelFile read() const {
    AnalysisOptions options;
    if (reference_) options.inputs = reference_->inputs;
    options.numbers = options_.numbers;
    options.shapes = options_.shapes;
    options.seed = options_.seed.value_or(reference_ ? reference_->seed.value_or(0) : 0);
    return readModel(path_, options, progress_);
  }

  AnalysisOptions optionsFor(const ModelFile& file, bool inDouble) const {
    AnalysisOptions options = reference_ ? retrograd::optionsFor(*reference_, file) : AnalysisOptions();
    if (options_.seed) options.seed = *options_.seed;
    if (options_.gradInputs) options.gradInputs = options_.gradInputs;
    for (const auto& [name, number] : options_.numbers) options.numbers.insert_or_assign(name, number);
    options.shapes = options_.shapes;
    if (inDouble) options.precision = DType::f64;
    options.partition = options_.partition.value_or(PartitionOptions());
    options.rules = options_.rules;
    options.order = options_.order.value_or(1);
    options.again = options_.again;
    options.device = options_.device;
    return options;
  }

  std::shared_ptr<const Analysis> analyseFile(ModelFile file, bool inDouble) {
    const auto options = optionsFor(file, inDouble);
    return analyse(std::move(file), options, progress_);
  }

  /// The session as it was saved, unless something else is asked for.
  std::shared_ptr<const Analysis> analyseStored(bool inDouble) {
    if (!inDouble && !reference_ && !options_.seed && !options_.gradInputs && !options_.partition && !options_.order && !options_.device && options_.numbers.empty() && options_.shapes.empty()) return stored_;
    auto options = overlaid(*stored_, optionsFor(stored_->file, inDouble));
    if (options_.seed) options.seed = *options_.seed;
    if (options_.partition) options.partition = *options_.partition;
    if (options_.order) options.order = *options_.order;
    return deriveAnew(*stored_, options, progress_);
  }

  void count(const Analysis& analysis) {
    report_.ops = {analysis.computation().trace.ops.size(), analysis.joint.ops.size(), analysis.forward.ops.size(),
                   analysis.backward.ops.size()};
    report_.originsMissing = countMissingOrigins(analysis);
    for (const auto& reason : analysis.dataDependent) report_.notes.push_back("holds for these inputs only: " + reason);
  }

  void compareAll(const std::shared_ptr<const Analysis>& analysis) {
    const auto tolerances = tolerancesFor(*analysis, options_.tolerance, options_.noise);
    const auto run = runSession(analysis, progress_);
    const auto joint = runJoint(*analysis);
    progress_.check();
    const bool onGpu = analysis->device.type == Device::Type::cuda;
    const auto same = onGpu ? compareValues : compareBits;
    judge(report_, same(*analysis, "split/", runSplit(*analysis), joint), tolerances);
    judge(report_, same(*analysis, "session/", run, joint), tolerances);
    progress_.check();
    if (onGpu) compareWithCpu(*analysis, run, tolerances);
    progress_.check();
    compareWithLibTorch(*analysis, run, tolerances);
    progress_.check();
    if (orderOf(*analysis) == 2 && differentiatedKind(*analysis) == TraceKind::joint) compareWithLibTorch(*analysis, run, tolerances, runEagerTwice);
    if (!reference_ || analysis->differentiated) return;
    ReferenceComparison comparison(*analysis, run, options_.deterministic, false, "");
    judge(report_, comparison.compare(reference_->expected), tolerances);
    report_.notes.insert(report_.notes.end(), comparison.notes().begin(), comparison.notes().end());
  }

  /// Against the same file on the CPU, with the same inputs.
  void compareWithCpu(const Analysis& analysis, const RunResult& run, const Tolerances& tolerances) {
    auto options = optionsFromModel(analysis);
    options.device = Device();
    auto file = firstOf(analysis).file;
    file.document = std::make_shared<Document>(*file.document);
    const auto cpu = analyse(std::move(file), options, progress_);
    if (!cpu->derived()) throw Error(ErrorCode::execution, "on the CPU: " + errorsOf(cpu->problems), path_);
    if (draws(analysis)) report_.notes.push_back("compared with the CPU by shape only: a GPU draws other random numbers");
    judge(report_, compareNearly(analysis, "cpu/", run, runSession(cpu, progress_), draws(analysis)), tolerances);
  }

  /// LibTorch's autograd refuses some models that have a well-defined gradient, as those that write to what it has saved.
  void compareWithLibTorch(const Analysis& analysis, const RunResult& split, const Tolerances& tolerances, RunResult (*oracle)(const Analysis&) = runEager) {
    RunResult eager;
    try {
      eager = oracle(analysis);
    } catch (const Error& e) {
      if (e.code() != ErrorCode::execution) throw;
      report_.notes.push_back("not compared with LibTorch's autograd: " + e.message());
      return;
    }
    judge(report_, compareWithEager(analysis, split, eager), tolerances);
  }

  void compareInDouble(const Analysis& asWritten) {
    const auto analysis = stored_ ? analyseStored(true) : analyseFile(read(), true);
    if (!analysis->derived()) throw Error(ErrorCode::execution, "in double precision: " + errorsOf(analysis->problems), path_);
    const auto run = runSession(analysis, progress_);
    const auto tolerance = options_.tolerance.value_or(doubleTolerance);
    const auto pinned = pinnedPrecision(asWritten, *analysis);
    const auto groups = ReferenceComparison(*analysis, run, true, pinned.has_value(), "f64/").compare(*reference_->inDouble);
    const bool met = std::max({groups.outputs.error(), groups.gradients.error(), groups.mutations.error()}) <= tolerance;
    if (pinned && !met) {
      report_.notes.push_back("the graph pins float32 (" + *pinned + "): its run in double is held to the tolerance of float32");
      return judge(report_, groups, tolerancesFor(asWritten, options_.tolerance, options_.noise));
    }
    judge(report_, groups, {tolerance, tolerance});
  }

  const std::string& path_;
  const CheckOptions& options_;
  const Progress& progress_;
  std::optional<Reference> reference_;
  std::shared_ptr<const Analysis> stored_;  // where the file is a session
  CheckReport report_;
};

}  // namespace

CheckReport checkModel(const std::string& path, const CheckOptions& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  auto report = Check(path, options, progress).run();
  report.name = path;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace retrograd
