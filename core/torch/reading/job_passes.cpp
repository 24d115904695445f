#include "core/torch/reading/job_passes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/enum_array.h"
#include "core/formats/fx/fx_reader.h"
#include "core/formats/fx/lower_prims.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/listing/listing.h"
#include "core/torch/tracing/op_table.h"
#include "core/trace/source.h"

namespace retrograd {
namespace {

using jobs::GraphKind;

/// The kinds of graph that a pass may be given, the nearest first.
std::vector<GraphKind> predecessorsOf(GraphKind kind, bool ofBackward) {
  const auto half = ofBackward ? GraphKind::backward : GraphKind::forward;
  switch (kind) {
    case GraphKind::dynamo:
    case GraphKind::other:
    case GraphKind::runnable: return {};
    case GraphKind::beforePreGrad: return {GraphKind::dynamo};
    case GraphKind::afterPreGrad: return {GraphKind::beforePreGrad, GraphKind::dynamo};
    case GraphKind::joint:
    case GraphKind::inference: return {GraphKind::afterPreGrad, GraphKind::beforePreGrad, GraphKind::dynamo};
    case GraphKind::forward:
    case GraphKind::backward: return {GraphKind::joint};
    case GraphKind::beforePostGrad: return {half, GraphKind::inference, GraphKind::joint};
    case GraphKind::postGrad: return {GraphKind::beforePostGrad, half, GraphKind::inference, GraphKind::joint};
  }
  return {};
}

bool isOfInductor(GraphKind kind) { return kind == GraphKind::beforePostGrad || kind == GraphKind::postGrad; }

/// Graphs of the attempt in the order of the passes, and whether each is of the backward. Inductor writes its graphs of
/// the forward first, then those of the backward.
std::vector<std::pair<std::size_t, bool>> inOrder(const jobs::Attempt& attempt) {
  std::size_t seen[2] = {};
  const bool hasBackward = attempt.find(GraphKind::backward) != nullptr;
  std::vector<std::pair<std::size_t, bool>> graphs;
  for (std::size_t i = 0; i < attempt.graphs.size(); ++i) {
    const auto kind = attempt.graphs[i].kind;
    if (kind == GraphKind::runnable) continue;
    const bool isSecond = isOfInductor(kind) && hasBackward && seen[kind == GraphKind::postGrad]++ > 0;
    graphs.emplace_back(i, kind == GraphKind::backward || isSecond);
  }
  std::ranges::stable_sort(
      graphs, {}, [&](const auto& graph) { return std::pair(graph.second, attempt.graphs[graph.first].kind); });
  return graphs;
}

std::shared_ptr<const Analysis> readPass(const jobs::JobLog& log, const jobs::GraphRecord& record,
                                         const SizeBindings& sizes, bool toRun) {
  const auto place = jobs::placeOf(log, record.payload);
  auto graph = fx::readGraph(jobs::payloadText(log, record.payload), place);
  if (toRun) graph = fx::withoutPrims(graph).graph;
  const auto listing = jobs::listingOf(graph, lookupSymbol, {.sizes = sizes, .anyCall = !toRun});
  auto analysis = std::make_shared<Analysis>();
  analysis->file = jobs::modelOf(listing, place);
  analysis->document = analysis->file.document;
  return analysis;
}

/// The pass whose graph the log has just before this one, which is what a pass of a framework was given.
std::optional<std::size_t> nearestBefore(const JobPasses& chain, std::size_t graph) {
  std::optional<std::size_t> nearest;
  for (std::size_t i = 0; i < chain.passes.size(); ++i)
    if (chain.passes[i].graph < graph && (!nearest || chain.passes[i].graph > chain.passes[*nearest].graph))
      nearest = i;
  return nearest;
}

DiffSide sideOf(const JobPass& pass) {
  return {
      .document = pass.analysis->document.get(), .trace = &pass.trace(), .computation = &pass.trace(), .isPart = true};
}

const SourceFrame* lineOf(const Document& document, BoundSymbolId op) {
  const auto source = document.boundSymbol(op).source;
  return source.valid() ? shownFrame(document.source(source)) : nullptr;
}

/// Ops of the other side from the same line of Python as `op` that are new there: without a partner, or instead of
/// another op.
std::vector<BoundSymbolId> replacementsOf(const TraceDiff& diff, Side from, BoundSymbolId op) {
  const auto to = from == Side::left ? Side::right : Side::left;
  const auto* line = lineOf(*diff.side(from).document, op);
  std::vector<BoundSymbolId> found;
  if (line == nullptr) return found;
  for (const auto other : diff.lines(to).ops) {
    const auto* place = lineOf(*diff.side(to).document, other);
    const auto partner = diff.pairs->partner(to, other);
    const bool isNew = !partner || diff.side(from).document->opName(partner) != diff.side(to).document->opName(other);
    if (isNew && place != nullptr && place->line == line->line && place->file == line->file) found.push_back(other);
  }
  return found;
}

/// What `op` of the one side is on the other.
FollowedOp stepOver(const TraceDiff& diff, Side from, BoundSymbolId op) {
  const auto to = from == Side::left ? Side::right : Side::left;
  if (const auto partner = diff.pairs->partner(from, op)) {
    if (diff.side(from).document->opName(op) != diff.side(to).document->opName(partner))
      return {FollowedOp::State::replaced, {partner}};
    const auto isIt = [&](const DiffRow& row) { return diff.op(row, from) == op; };
    const auto row = std::ranges::find_if(diff.rows, isIt);
    const bool isChanged = row != diff.rows.end() && row->changes != 0;
    return {isChanged ? FollowedOp::State::changed : FollowedOp::State::same, {partner}};
  }
  auto replacements = replacementsOf(diff, from, op);
  if (!replacements.empty()) return {FollowedOp::State::replaced, std::move(replacements)};
  return {to == Side::right ? FollowedOp::State::gone : FollowedOp::State::absent, {}};
}

}  // namespace

std::string_view name(FollowedOp::State state) {
  static constexpr EnumArray<FollowedOp::State, std::string_view, 5> names{"not there", "same", "changed", "replaced",
                                                                           "dropped"};
  return names[state];
}

std::size_t JobPasses::find(std::string_view wanted) const {
  std::string names;
  std::optional<std::size_t> begins;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].name == wanted) return i;
    if (!begins && passes[i].name.starts_with(wanted)) begins = i;
    names += (names.empty() ? "" : ", ") + passes[i].name;
  }
  if (begins && !wanted.empty()) return *begins;
  throw Error(ErrorCode::badUse, fmt::format("compile {} has no pass '{}'; it has: {}", compile, wanted, names));
}

JobPasses jobPasses(const jobs::JobLog& log, const jobs::GraphChoice& choice, const Progress& progress, bool toRun) {
  JobPasses chain{.compile = nameOf(*choice.compile)};
  const auto& attempt = *choice.attempt;
  SizeBindings sizes;
  for (const auto& [symbol, value] : jobs::sizeHints(log, attempt)) sizes[symbol] = value;
  std::vector<bool> ofBackward;
  const auto graphs = inOrder(attempt);
  for (const auto& [graph, isBackward] : graphs) {
    const auto& record = attempt.graphs[graph];
    JobPass pass;
    pass.name = jobs::nameOf(record) + (isBackward && record.kind != GraphKind::backward ? " (backward)" : "");
    pass.graph = graph;
    pass.isOfOps = record.kind != GraphKind::dynamo && record.kind != GraphKind::beforePreGrad &&
                   record.kind != GraphKind::afterPreGrad;
    progress.at("Reading passes", static_cast<double>(chain.passes.size()) / static_cast<double>(graphs.size()));
    try {
      pass.analysis = readPass(log, record, sizes, toRun && pass.isOfOps);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled) throw;
      pass.problem = error.what();
    }
    if (record.kind == GraphKind::other) pass.before = nearestBefore(chain, graph);
    for (const auto kind : predecessorsOf(record.kind, isBackward)) {
      for (std::size_t i = chain.passes.size(); i-- > 0 && !pass.before;)
        if (attempt.graphs[chain.passes[i].graph].kind == kind && (!isOfInductor(kind) || ofBackward[i] == isBackward))
          pass.before = i;
      if (pass.before) break;
    }
    if (pass.before && pass.analysis && chain.passes[*pass.before].analysis)
      pass.diff =
          std::make_shared<const TraceDiff>(diffTraces(sideOf(chain.passes[*pass.before]), sideOf(pass), progress));
    chain.passes.push_back(std::move(pass));
    ofBackward.push_back(isBackward);
  }
  if (chain.passes.empty())
    throw Error(ErrorCode::badUse, fmt::format("the log has no graph of compile {}", chain.compile), log.path);
  return chain;
}

std::vector<FollowedOp> followOp(const JobPasses& chain, std::size_t pass, BoundSymbolId op) {
  std::vector<FollowedOp> followed(chain.passes.size());
  followed[pass] = {FollowedOp::State::same, {op}};
  std::vector<bool> known(chain.passes.size());
  known[pass] = true;
  // Back to the first pass, then on from each that is known.
  for (auto at = pass; chain.passes[at].before; at = *chain.passes[at].before) {
    const auto before = *chain.passes[at].before;
    known[before] = true;
    if (!chain.passes[at].diff || followed[at].ops.empty()) continue;
    followed[before] = stepOver(*chain.passes[at].diff, Side::right, followed[at].ops.front());
  }
  for (std::size_t i = 0; i < chain.passes.size(); ++i) {
    const auto& next = chain.passes[i];
    if (known[i] || !next.before || !known[*next.before]) continue;
    known[i] = true;
    const auto& from = followed[*next.before];
    if (next.diff && !from.ops.empty()) followed[i] = stepOver(*next.diff, Side::left, from.ops.front());
  }
  // Of the two halves of a joint the one that does not have the op did not drop it.
  for (std::size_t i = 0; i < followed.size(); ++i)
    for (std::size_t other = 0; other < followed.size() && followed[i].state == FollowedOp::State::gone; ++other)
      if (chain.passes[other].before == chain.passes[i].before && !followed[other].ops.empty())
        followed[i].state = FollowedOp::State::absent;
  return followed;
}

}  // namespace retrograd
