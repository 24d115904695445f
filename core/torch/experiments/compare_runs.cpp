#include "core/torch/experiments/compare_runs.h"

#include <ATen/Context.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/formats/recording/recording.h"
#include "core/questions/align_ops.h"
#include "core/questions/intended_infinities.h"
#include "core/torch/execution/device.h"
#include "core/torch/experiments/compare_lane.h"
#include "core/torch/experiments/compare_own.h"
#include "core/torch/experiments/compare_path.h"
#include "core/torch/session/run_forecast.h"
#include "core/torch/tracing/thread_scope.h"
#include "core/trace/diff/diff_text.h"

namespace retrograd {
namespace {

bool isOnGpu(const Analysis& a, const Analysis& b) {
  return a.device.type == Device::Type::cuda || b.device.type == Device::Type::cuda;
}

std::vector<std::string> notesOn(const Analysis& a, const Analysis& b) {
  if (!isOnGpu(a, b) || !(at::globalContext().allowTF32CuDNN() || at::globalContext().allowTF32CuBLAS())) return {};
  return {
      "TF32 is on, as in PyTorch by default; this comparison is made without it, so that it does not hide other "
      "differences"};
}

bool sameData(const TensorMap& a, const TensorMap& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    if (x.first != y.first || x.second.meta != y.second.meta) return false;
    const auto *here = x.second.data, *there = y.second.data;
    if (here == there) return true;
    return here && there && x.second.bytes == y.second.bytes && std::memcmp(here, there, x.second.bytes) == 0;
  });
}

/// Hashes of two recordings of one program; nullopt for a first op whose results were recorded with other bits.
struct RecordedBits {
  std::size_t compared = 0;
  BoundSymbolId first;  ///< of a, whose results have other bits; none: all are the same
};
RecordedBits recordedBits(const Analysis& a, const Analysis& b, const OwnErrors& own) {
  RecordedBits found;
  const auto &here = *a.file.recording, &there = *b.file.recording;
  for (std::size_t j = 0; j < b.joint.ops.size(); ++j) {
    const auto i = own.partner(j);
    if (!i) continue;
    const auto &x = here.op(a.joint.ops[*i]), &y = there.op(b.joint.ops[j]);
    if (leavesUninitialised(*a.document, a.joint.ops[*i])) continue;
    for (std::uint32_t k = 0; k < std::min(x.checkCount, y.checkCount); ++k) {
      const auto &one = here.checks[x.checksBegin + k].hash, &other = there.checks[y.checksBegin + k].hash;
      if (!one || !other) continue;
      ++found.compared;
      if (*one != *other && !found.first) found.first = a.joint.ops[*i];
    }
  }
  return found;
}

/// Two runs in step. The second's order leads, the first goes as far as each op needs.
class RunPair {
 public:
  RunPair(const Analysis& a, const Analysis& b, const CompareOptions& options, const Progress& progress)
      : a_(a),
        b_(b),
        options_(options),
        progress_(progress),
        pairs_(diffSide(a, a.joint), diffSide(b, b.joint), progress),
        own_(a, b, pairs_, options.own || options.threads > 0) {}

  RunComparison run() {
    result_.notes = notesOn(a_, b_);  // before TF32 is off
    findAlone();
    if (!areIdentical()) {
      std::optional<FullPrecision> fullPrecision;
      if (isOnGpu(a_, b_)) fullPrecision.emplace();
      const RunThreads threads(0);
      runBoth();
    }
    if (!result_.report.judged) {
      result_.report = own_.report();
      result_.path = pathOf(result_, own_, a_, options_.tolerance);
    }
    tellOfTheWhole();
    return std::move(result_);
  }

 private:
  void findAlone() {
    IdVector<BoundSymbolId, char> inA(a_.document->boundSymbolCount(), 0);
    for (const auto op : a_.joint.ops) inA[op] = 1;
    IdVector<BoundSymbolId, char> paired(a_.document->boundSymbolCount(), 0);
    for (const auto op : b_.joint.ops) {
      const auto other = pairs_.partner(Side::right, op);
      if (other && inA[other]) paired[other] = 1;
      else result_.onlyInB.push_back(op);
    }
    for (const auto op : a_.joint.ops)
      if (!paired[op]) result_.onlyInA.push_back(op);
  }

  /// Recordings of the same ops on the same inputs, with the same bits.
  bool areIdentical() {
    if (!a_.file.recording || !b_.file.recording || !own_.sameProgram()) return false;
    if (!options_.second.replaced.empty() || options_.threads > 0) return false;
    if (!sameData(a_.file.recording->data, b_.file.recording->data)) return false;
    const auto bits = recordedBits(a_, b_, own_);
    if (bits.first) return false;
    result_.report = {.judged = b_.joint.ops.size(), .due = b_.joint.ops.size(), .unit = "op"};
    result_.notes.push_back(fmt::format("identical: {} ops, what they begin with and {} recorded hashes",
                                        b_.joint.ops.size(), bits.compared));
    return true;
  }

  void runBoth() {
    Lane laneA(a_), laneB(b_, options_.second.replaced);
    std::map<std::size_t, std::vector<at::Tensor>> outputsA;
    const auto advance = [&] {
      own_.before(laneA);
      laneA.step();
      own_.after(laneA);
      const auto op = laneA.op(laneA.position() - 1);
      if (!answer_.contains(laneA.position() - 1)) return;
      auto& outputs = outputsA[laneA.position() - 1];
      for (const auto output : a_.document->outputs(op)) outputs.push_back(laneA.keep(output));
    };
    for (std::size_t j = 0; j < b_.joint.ops.size(); ++j)
      if (const auto i = own_.partner(j)) answer_.insert(*i);
    own_.start(laneA);
    for (std::size_t j = 0; j < b_.joint.ops.size(); ++j) {
      progress_.at(b_.document->opName(b_.joint.ops[j]),
                   static_cast<double>(j) / static_cast<double>(b_.joint.ops.size()));
      progress_.check();
      while (laneA.position() < own_.needs(j)) advance();
      std::optional<RunThreads> second;
      if (options_.threads > 0) second.emplace(options_.threads);
      laneB.step();
      if (const auto i = own_.partner(j)) {
        compare(*i, j, outputsA[*i], laneB);
        outputsA.erase(*i);
      }
      own_.judge(j);
    }
    while (laneA.position() < laneA.size()) advance();
    own_.finish();
    addFigures(result_, positions_, own_, b_);
    sortRows();
  }

  /// In the order of the first.
  void sortRows() {
    IdVector<BoundSymbolId, std::size_t> place(a_.document->boundSymbolCount(), 0);
    for (std::size_t i = 0; i < a_.joint.ops.size(); ++i) place[a_.joint.ops[i]] = i;
    std::ranges::stable_sort(result_.rows, {}, [&](const RunDifference& row) { return place[row.opA]; });
    for (std::size_t i = 0; i < result_.rows.size() && !result_.firstDivergence; ++i)
      if (result_.rows[i].relative > options_.tolerance) result_.firstDivergence = i;
  }

  void compare(std::size_t i, std::size_t j, const std::vector<at::Tensor>& outputsA, const Lane& laneB) {
    const auto opA = a_.joint.ops[i], opB = b_.joint.ops[j];
    if (leavesUninitialised(*a_.document, opA)) return;
    const auto idsA = a_.document->outputs(opA), idsB = b_.document->outputs(opB);
    bool isFirst = true;
    for (std::size_t k = 0; k < std::min(outputsA.size(), idsB.size()); ++k) {
      const auto other = laneB.keep(idsB[k]);
      if (!outputsA[k].defined() || !other.defined() || other.is_meta()) continue;
      auto row = differenceOf(outputsA[k], other);
      row.opA = opA;
      row.opB = opB;
      row.valueA = idsA[k];
      row.valueB = idsB[k];
      result_.largest = std::max(result_.largest, row.relative);
      const bool isDraw = (b_.document->boundSymbol(opB).effects & effect::random) && row.note.empty();
      if (isDraw && row.relative > 0 && (outputsA[k].scalar_type() == at::kBool || (isFirst && idsB.size() == 1)))
        own_.drew(j);
      isFirst = false;
      positions_.push_back(j);
      result_.rows.push_back(std::move(row));
    }
  }

  /// What the whole runs say beyond own errors: where they part, and how much was rounding that an op enlarged.
  void tellOfTheWhole() {
    auto& report = result_.report;
    if (a_.file.recording && b_.file.recording && own_.sameProgram() && report.claims.empty() && !result_.rows.empty())
      if (const auto bits = recordedBits(a_, b_, own_); bits.first)
        report.notes.push_back(fmt::format(
            "recorded bits part at {} ({}), though both give the same here: another machine, library or number of "
            "threads",
            a_.document->opName(bits.first), codeLine(*a_.document, bits.first)));
    if (!result_.firstDivergence) return;
    const auto& row = result_.rows[*result_.firstDivergence];
    const auto where = fmt::format("{} #{}", a_.document->opName(row.opA), row.opA.index);
    Claim claim{.by = Producer::run, .kind = "divergence"};
    claim.severity = options_.isAsked && report.claims.empty() ? Severity::fault : Severity::note;
    claim.sentence = fmt::format("the runs part by {:.3g} first at {}{}", row.relative, where,
                                 report.claims.empty() ? ", where no op by itself is beyond rounding" : "");
    if (!row.note.empty()) claim.sentence = fmt::format("the runs part first at {}: {}", where, row.note);
    claim.line = codeLine(*a_.document, row.opA);
    claim.op = row.opA;
    claim.value = row.valueA;
    report.claims.push_back(std::move(claim));
    if (result_.path.amplifier) report.claims.push_back(amplified(result_.rows[*result_.path.amplifier]));
  }

  /// "rounding, enlarged 1.2e+05 times by _softmax #212"
  Claim amplified(const RunDifference& row) const {
    Claim claim{.by = Producer::run, .severity = Severity::note, .kind = "amplified"};
    const auto what = own_.origin() ? "the difference" : "rounding";
    claim.sentence = fmt::format("{}, enlarged {:.2g} times by {} #{} on the way to {}", what, *row.enlarged,
                                 shortNameOf(*a_.document, row.opA), row.opA.index, result_.path.end);
    if (row.inherited)
      claim.sentence += fmt::format(": {:.2g} comes in, {:.2g} goes out", *row.inherited, row.relative);
    claim.line = codeLine(*a_.document, row.opA);
    claim.op = row.opA;
    claim.value = row.valueA;
    return claim;
  }

  const Analysis& a_;
  const Analysis& b_;
  const CompareOptions& options_;
  const Progress& progress_;
  OpPairs pairs_;
  OwnErrors own_;
  std::set<std::size_t> answer_;
  std::vector<std::size_t> positions_;  ///< of the second's op, by row as they come
  RunComparison result_;
};

}  // namespace

RunComparison compareRuns(const Analysis& a, const Analysis& b, const CompareOptions& options,
                          const Progress& progress) {
  RunForecast(a).requireRoom(0, a.joint.ops.size());
  return RunPair(a, b, options, progress).run();
}

}  // namespace retrograd
