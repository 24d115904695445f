#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/formats/jobs/input_sources.h"
#include "core/formats/jobs/job_log.h"
#include "core/sizes/size_expression.h"
#include "core/trace/symbol.h"

namespace retrograd {

/// Forward and backward graph of a compile, and how their values match.
struct JobGraphs {
  fx::Graph forward;
  jobs::GraphKind computed = jobs::GraphKind::forward;  ///< what `forward` was read as: forward, inference, joint (its
                                                        ///< ops before the backward), or other
  fx::Graph backward;                                   ///< without inputs and outputs where the log has none
  std::optional<fx::Graph> joint, dynamo;
  std::string forwardPlace, backwardPlace;
  SizeBindings sizes;
  std::vector<std::optional<jobs::InputSource>> sources;  ///< by input of the forward
  std::size_t results = 0;  ///< outputs[0..results) of the forward are the program's, the others are saved
  std::vector<std::size_t> differentiated;  ///< the forward's outputs that have a tangent, in the order of the tangents
  std::vector<std::size_t> tangents;        ///< positions of the tangents among the backward's inputs
  /// By input of the backward the position of the forward's output that it is; none for tangents and for inputs of the
  /// forward that it reads itself.
  std::vector<std::optional<std::size_t>> savedFrom;
  /// Draws that the backward repeats: node of the backward, and the position of the forward's output that it is
  /// (tieDraws()).
  std::vector<std::pair<std::size_t, std::size_t>> shared;
  std::vector<std::size_t> ownDraws;  ///< nodes of the backward whose draws nothing ties to those of the forward
};

/// Reads what a compile computes: its forward graph, else the inference graph of a compile without a backward, else the
/// ops of the joint graph before its backward; and its backward graph, where it has one; else the first graph of
/// another record. `chosen`: that graph instead. Throws Error(badInput) where there is none of these.
JobGraphs readComputedGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt,
                             const jobs::GraphRecord* chosen = nullptr);
/// Reads the graphs of an attempt, without pairing tangents and saved values. Throws Error(badInput) where there is no
/// forward or no backward graph.
JobGraphs readUnpairedGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt);
/// Reads the graphs of an attempt and pairs them: by descriptors where PyTorch wrote them (2.9), else by names and
/// order; and their draws (tieDraws()). Throws Error(badInput) where there is no forward or no backward graph, or they
/// do not fit each other.
JobGraphs readJobGraphs(const jobs::JobLog& log, const jobs::Attempt& attempt, const SymbolLookup& lookup);

/// Whether an input of a joint or backward graph is a cotangent.
bool isTangent(const fx::Input& input);
/// Whether it is one that a gradient flows in by: a floating tensor. Of a tensor subclass other parts flow in too.
bool isCotangent(const fx::Graph& graph, const fx::Input& input);
/// Whether an input is a generator that both graphs have, whose state the forward leaves and the backward starts from:
/// "fwd_rng_state_0" and "bwd_rng_state_0". What follows the prefix pairs them.
bool isGeneratorState(const fx::Input& input);
inline constexpr std::size_t generatorPrefix = 4;

/// Inputs of a joint or forward graph that are the program's: neither tangents nor generators.
std::size_t primalsOf(const fx::Graph& graph);

/// The ops of a joint graph before its backward, with the first `results` of its outputs, those of the program. Throws
/// Error(badInput) naming `place` where the backward makes one of them.
fx::Graph forwardPart(const fx::Graph& joint, std::size_t results, const std::string& place);

/// Whether a gradient is wanted for an input of the forward: as Dynamo described it, else as the joint or the backward
/// graph gives one. Of an inference graph none is.
bool isDifferentiated(const JobGraphs& graphs, std::size_t input);
/// "primals_2 (b.weight)"
std::string inputLabel(const JobGraphs& graphs, std::size_t input);
/// What text of the log the op came from: "/job/train.py:99: return x"; empty where it has no stack trace.
std::string sourceText(const fx::Graph& graph, const fx::Node& node);

}  // namespace retrograd
