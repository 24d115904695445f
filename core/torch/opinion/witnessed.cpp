#include "core/torch/opinion/witnessed.h"

#include <fmt/format.h>

namespace retrograd {

void Witnessed::settle(const Differentiated& forward, std::size_t gradients, Report& report) const {
  settleExplained(forward, report);
  if (!unknown.empty())
    report.notJudged.push_back(
        {{},
         fmt::format("gradients through a backward of the program's own, or an op that has no derivative here, can "
                     "only be compared "
                     "with those of a joint graph with the same draws, and the log has none that runs: {} of {} ({})",
                     unknown.size(), gradients, shortList(unknown))});
  settleUndefined(report);
}

void Witnessed::settleExplained(const Differentiated& forward, Report& report) const {
  if (explained.empty()) return;
  const auto& cuts = forward.cuts;
  if (!cuts.innerBackwards.empty()) {
    report.notJudged.push_back(
        {{},
         fmt::format(
             "a gradient within the function passes a backward of the program's own (autograd.Function) at {}: eager "
             "PyTorch differentiates that backward's ops too, a compile may leave them out, and the joint graph of the "
             "same "
             "compile does not show which. Derived from the ops of the forward they would differ: {}; --reference with "
             "eager PyTorch's gradients decides",
             shortList(cuts.innerBackwards), shortList(explained))});
    return;
  }
  if (!cuts.ownBackwards.empty() && cuts.doubts.empty()) {
    report.notes.push_back(
        fmt::format("the program has a backward of its own (autograd.Function or a hook) at {}; gradients through it "
                    "are compared with those of the joint graph of the same compile. Derived from the ops of the "
                    "forward they would differ: {}",
                    shortList(cuts.ownBackwards), shortList(explained)));
    return;
  }
  std::vector<std::string> doubts;
  for (const auto& doubt : cuts.doubts) doubts.push_back(doubt.text);
  report.notJudged.push_back({{},
                              fmt::format("it is not known where autograd was cut{}: the job's gradients are those of "
                                          "the joint graph of the same compile, "
                                          "and those derived from its forward are not ({})",
                                          !forward.isKnown ? " (the log has no Dynamo graph)"
                                          : doubts.empty() ? ""
                                                           : " (" + shortList(doubts) + ")",
                                          shortList(explained))});
}

/// An op that was decomposed before its derivative was taken, as the norm of zeros.
void Witnessed::settleUndefined(Report& report) const {
  if (!byJoint.empty())
    report.notes.push_back(
        "derived from the forward's decomposed ops it is NaN, infinite or None where autograd's own formula is finite "
        "(as for the norm of zeros), and is compared there with the joint graph of the same compile: " +
        shortList(byJoint));
  if (!undefined.empty())
    report.notJudged.push_back(
        {{},
         "derived from the forward's ops it is NaN or infinite where the job's is finite (as for the norm of zeros, "
         "decomposed before its derivative is taken), and the log has no joint graph that says which is right: " +
             shortList(undefined)});
}

}  // namespace retrograd
