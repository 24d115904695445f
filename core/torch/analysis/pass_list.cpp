#include "core/torch/analysis/pass_list.h"

#include <chrono>

#include "core/derivation/sizes.h"
#include "core/torch/analysis/derive_joint.h"
#include "core/torch/analysis/symbolic_joint.h"
#include "core/torch/grad/elide_copies.h"
#include "core/torch/packs/libtorch/mathematical_forms.h"
#include "core/trace/dead_code.h"

namespace retrograd {
namespace {

void gradTransform(PassState& state) {
  state.progress.at("deriving the backward", 0.3);
  takeMathematicalForms();
  state.result = deriveJoint(state.analysis, state.document, state.request, state.cache, state.progress);
  for (const auto& op : takeMathematicalForms())
    state.problems.push_back({Problem::Severity::note, mathematicalFormNote, op, -1});
  auto& history = state.result.joint.history;
  history = state.analysis.computation().trace.history;
  history.push_back({"Grad transform", {}, "computation", 0, {}});
}

void symbolicSizes(PassState& state) {
  if (!state.asRead) return;
  state.progress.at("symbolic sizes", 0.6);
  const auto deriveAt = [&](const SizeBindings& sizes) {
    SizedJoint sized{*state.asRead, {}};
    setSizes(sized.document, sizes);
    RuleCache own;
    sized.result = deriveJoint(state.analysis, sized.document, state.request, own, state.progress, &sizes);
    return sized;
  };
  const auto notes = expressSizes(state.analysis.file, state.result, deriveAt);
  state.problems.insert(state.problems.end(), notes.begin(), notes.end());
}

void removeDeadCode(PassState& state) {
  state.progress.at("splitting", 0.9);
  state.result.joint = eliminateDeadCode(state.document, state.result.joint);
}

void takeCopiesBack(PassState& state) { state.result.joint = elideCopies(state.document, state.result.joint); }

void recompute(PassState& state) {
  auto partitioned = partition(state.document, state.result.joint, state.request.partition);
  state.result.joint = std::move(partitioned.joint);
  state.problems.insert(state.problems.end(), partitioned.problems.begin(), partitioned.problems.end());
}

void split(PassState& state) {
  const auto& joint = state.result.joint;
  state.halves = splitJoint(state.document, joint, state.analysis.computation().inputs.size());
  for (auto* half : {&state.halves.forward, &state.halves.backward}) {
    half->history = joint.history;
    half->history.push_back({"Split", {}, "joint", 0, {}});
  }
}

struct Pass {
  const char* name;  ///< as in the history of what it makes
  void (*run)(PassState&);
  double PassSeconds::* seconds;  ///< where its time counts; null: nowhere
};

constexpr Pass passes[] = {
    {"Grad transform", gradTransform, &PassSeconds::joint},
    {"Symbolic sizes", symbolicSizes, nullptr},
    {"Dead code elimination", removeDeadCode, &PassSeconds::split},
    {"Copy elision", takeCopiesBack, &PassSeconds::split},
    {"Recomputation", recompute, &PassSeconds::split},
    {"Split", split, &PassSeconds::split},
};

}  // namespace

PassSeconds runPasses(PassState& state, std::vector<PassResult>* results) {
  PassSeconds seconds;
  auto known = state.analysis.computation().trace.history.size();
  for (const auto& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    pass.run(state);
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (pass.seconds) seconds.*pass.seconds += took;
    for (auto* trace : {&state.result.joint, &state.halves.forward, &state.halves.backward}) {
      if (trace->history.size() <= known) continue;  // the pass did nothing to it
      trace->history[known].seconds = took;
      if (results) results->push_back({pass.name, *trace});
    }
    known = state.result.joint.history.size();
  }
  return seconds;
}

}  // namespace retrograd
