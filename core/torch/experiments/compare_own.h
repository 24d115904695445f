#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/judge/report.h"
#include "core/torch/experiments/compare_lane.h"
#include "core/torch/experiments/compare_pairing.h"

namespace retrograd {

/// Own errors of two runs (docs/compare.md): each op of the second whose call, operands or dtypes are not those of its
/// partner runs once more on what the first run has, so that nothing is inherited; what one run alone has takes part in
/// the op that reads it. What is beyond rounding is a claim.
class OwnErrors {
 public:
  /// `all`: every op runs once more. All must outlive it.
  OwnErrors(const Analysis& a, const Analysis& b, OpPairs& pairs, bool all);
  ~OwnErrors();

  /// Whether nothing differs but perhaps numbers: no op, call, operand, dtype.
  bool sameProgram() const { return paired_.mustRun == 0; }
  /// How many ops of the first run have to be over before the second's at `position` is judged.
  std::size_t needs(std::size_t position) const { return paired_.needs[position]; }
  /// The partner in the first run of the second's op at `position`: the same op.
  std::optional<std::size_t> partner(std::size_t position) const;

  void start(const Lane& a);
  /// The lane's next op of the first run is about to run.
  void before(const Lane& a);
  /// It has run.
  void after(const Lane& a);
  /// The second's op at `position`; what it needs is over.
  void judge(std::size_t position);
  /// The op at `position` of the second draws other numbers than its partner.
  void drew(std::size_t position);
  /// What is left at the end of both runs.
  void finish();

  /// Of one op of the second, relative to the largest element of what it makes.
  struct Figures {
    std::optional<double> own;     ///< what is left of the difference on what the first has; none: it did not run again
    std::optional<double> budget;  ///< what rounding explains of it; none where nothing is left
    std::optional<double> enlarged;  ///< how many times the first's op enlarges one rounding of what it reads
  };
  const Figures& figures(std::size_t position) const { return figures_[position]; }

  /// Claims in the order in which the ops ran, how many ops were judged, what was not.
  Report report();
  /// The op of the first from which on the runs differ, by the first claim; none without one. report() was called.
  BoundSymbolId origin() const { return origin_; }
  /// How far the second's value is from the first's as the runs begin, relative; none for what is no input.
  std::optional<double> atStart(ValueId ofA) const;
  const RunPairing& pairing() const { return paired_; }

 private:
  struct Captured {
    std::vector<at::Tensor> operands, outputs, written;
  };
  /// What an op that has no partner made of a value, or left in it.
  struct Mixed {
    at::Tensor tensor;
    BoundSymbolId writerA, writerB;  ///< that wrote there without a new value
  };
  /// A place where the runs part by themselves.
  struct Blame {
    double position = 0;
    BoundSymbolId opA, opB;  ///< to blame
    BoundSymbolId reader;    ///< of b: at which it shows
    Claim claim;
    std::size_t more = 0;  ///< of the same line, or that follow from it
  };
  struct Regions {
    std::vector<BoundSymbolId> a, b;
  };

  at::Tensor operandOf(std::size_t j, std::size_t slot, const Captured* captured) const;
  bool runAgain(std::size_t j, const Captured* captured, std::vector<at::Tensor>& operands);
  void keepMixed(std::size_t j);
  void measure(std::size_t i, std::size_t j, const Captured& captured, const std::vector<at::Tensor>& operands);
  /// What the first's op makes of other operands; empty where it cannot run.
  std::vector<at::Tensor> resultsOf(BoundSymbolId opA, const std::vector<at::Tensor>& operands);
  /// The first's op in double precision; empty where it has no such form.
  std::vector<at::Tensor> inDouble(BoundSymbolId opA, const std::vector<at::Tensor>& operands);
  std::optional<double> enlargement(BoundSymbolId opA, const Captured& captured);
  DType budgetType(std::size_t i, std::size_t j, const at::Tensor& a, const at::Tensor& b, bool isOwn) const;
  Regions regionsOf(BoundSymbolId opA, BoundSymbolId opB) const;
  Regions regionsOf(ValueId valueA, ValueId valueB) const;
  /// `end`: what it is that differs where no op reads it.
  void blame(BoundSymbolId opA, BoundSymbolId opB, const Regions& regions, const Measure& measure,
             const std::string& end = {});
  std::string sentenceOf(const Blame& blame, const Regions& regions, const std::string& end) const;
  void judgeInputs();
  void judgeEnd(const RunPairing::End& end);
  void add(Blame blame);

  const Analysis& a_;
  const Analysis& b_;
  const Document& documentA_;
  const Document& documentB_;
  OpPairs& pairs_;
  const RunPairing paired_;
  const bool all_;
  std::vector<Figures> figures_;  ///< by position of b
  BoundSymbolId origin_;
  std::unordered_map<ValueId, double> atStart_;
  std::unordered_map<ValueId, at::Tensor> snapshots_;
  std::map<std::size_t, Captured> captured_;  ///< by position of a
  std::unordered_map<ValueId, Mixed> mixed_;
  std::unordered_map<ValueId, at::Tensor> startA_, startB_;
  Evaluator evaluatorB_, evaluatorA_;
  std::vector<Blame> blames_;
  std::vector<std::size_t> draws_;  ///< positions of b
  std::set<BoundSymbolId> culpritsA_, culpritsB_;
  std::size_t judged_ = 0;
  std::vector<NotJudged> notJudged_;
  std::vector<std::string> notes_;
};

}  // namespace retrograd
