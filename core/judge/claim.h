#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.h"

namespace retrograd {

/// Who says what is expected. Each keeps its own way to find out; what it finds is a Claim like any other.
enum class Producer : std::uint8_t {
  reference,        ///< a file of right results
  doubleReference,  ///< the same in double precision
  eager,            ///< LibTorch's own autograd
  eagerAgain,       ///< LibTorch's own autograd, for derivatives of derivatives
  cpu,              ///< the same ops on the CPU, for a run on another device
  split,            ///< forward and backward apart, against the joint trace
  session,          ///< the run op by op, against the joint trace
  jobBackward,      ///< the backward that a compiled job ran
  jointGraph,       ///< the joint graph of the same compile
  derivative,       ///< Retrograd's derivative of a recorded forward
  replay,           ///< a recorded step that runs again
  books,            ///< facts of a recording that need no second run
  stages,           ///< pipeline stages, against the model in one piece
  rank,             ///< another rank, or one process on the whole batch
  run,              ///< another run: of another file, precision, device or commit
  health,           ///< NaN and infinities where there should be none
};
/// "reference", "eager", ...: for programs.
std::string_view name(Producer);

/// How bad a claim is. A fault fails a check; a suspicion is shown first and fails with --strict; a note does neither.
enum class Severity : std::uint8_t { holds, note, suspicion, fault };
std::string_view name(Severity);

/// How far a tensor is from what is expected of it, in the tensor's own unit.
struct Measure {
  double deviation = 0;          ///< largest difference of an element; infinite where the tensors cannot be compared
  double tolerance = 0;          ///< what rounding explains
  double scale = 0;              ///< largest finite magnitude among the expected elements
  std::string failure;           ///< what no tolerance covers: "is f32[2], expected f32[3]"; empty where there is none
  std::optional<double> factor;  ///< how many times the expected tensor it is; none: not one number

  /// Of tensors that cannot be compared, and why.
  static Measure failed(std::string why);

  bool good() const { return failure.empty() && deviation <= tolerance; }
  /// Deviation over tolerance; infinite for a failure.
  double ratio() const;
  /// The tolerance is beyond 1 % of the tensor's largest element: an error of a few percent would not be seen.
  bool tooNoisy() const;
  /// The same bit for bit: nobody asked for a tolerance.
  bool isExact() const { return good() && deviation == 0 && tolerance == 0; }
};
/// "off by 0.012, tolerance 3e-06, largest element 2.1", or the failure.
std::string textOf(const Measure& measure);

/// One thing that was judged, or found on the way: whose, where, what was expected by whom, what was measured.
struct Claim {
  Producer by = Producer::books;
  Severity severity = Severity::fault;
  std::string kind;      ///< a stable word for programs: "gradient-never-read"
  std::string subject;   ///< by the model's own name: "h.weight"; an output; may be empty
  std::string sentence;  ///< what is wrong, in one line with its numbers, without the place: for people
  std::string remedy;    ///< what to do; empty where nothing is known
  std::string line;      ///< "train.py:12 in step"; empty where no line is known
  std::optional<Measure> measure;
  std::vector<std::string> parameters;  ///< whose gradients it changes, by the model's own names
  BoundSymbolId op;                     ///< where; none where no op is to blame
  std::vector<BoundSymbolId> also;      ///< further ops to mark, such as the forward op of a backward op
  ValueId value;                        ///< of the op; may be none
  std::string command;                  ///< what a window goes on with from there, such as "walk-to-root"

  bool good() const { return severity == Severity::holds; }
};

/// A tensor that was measured: it holds, or is a fault with a sentence that says who expected what.
Claim claimOf(Producer by, std::string subject, Measure measure);
/// By severity, then by how far beyond the tolerance; else as they were.
void worstFirst(std::vector<Claim>& claims);

}  // namespace retrograd
