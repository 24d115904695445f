#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/cut/cuts.h"

namespace retrograd {

/// How a parameter reaches the stages that use it, where they are several.
enum class MultiUse : std::uint8_t {
  replicate,  ///< each stage holds a copy; their gradients have to be summed before the optimizer's step
  transmit    ///< the first stage that uses it holds it and sends it to the others, which send its gradient back
};

struct PipelineOptions {
  MultiUse multiUse = MultiUse::replicate;
  std::map<std::string, MultiUse> multiUseOf;  ///< by name of the parameter, any of a tied one; instead of `multiUse`
  std::vector<Device> devices;                 ///< by stage, or one for all; empty: where the model is

  bool operator==(const PipelineOptions&) const = default;
};

/// What a stage is sent: a value that another stage makes, or an input of the model.
struct StageInput {
  ValueId value;
  int source = -1;         ///< stage; -1: a model input
  std::size_t output = 0;  ///< of the source stage; 0 for a model input
};

/// What a stage returns: to other stages, to the model's caller, or both.
struct StageOutput {
  ValueId value;
  std::vector<int> destinations;     ///< stages, ascending
  std::vector<std::size_t> results;  ///< user outputs of the computation, as indices into its outputs
};

struct PipelineStage {
  std::vector<BoundSymbolId> ops;  ///< of the computation, top level, in its order; no markers
  std::vector<std::size_t>
      held;  ///< parameters, buffers, constants, tokens: indices into the computation's inputs, in its order
  std::vector<StageInput> inputs;    ///< in the order of their first use
  std::vector<StageOutput> outputs;  ///< those sent first, in the order in which they are first needed
  std::vector<std::size_t>
      mutations;  ///< buffer, input and parameter mutations that it returns: indices into the computation's outputs
  std::vector<ValueId> cloned;   ///< of `inputs`: written in place here, so that a copy is worked on
  std::size_t begin = 0;         ///< position of the first op in the computation
  std::optional<Device> device;  ///< where it is to run; absent: where the model is
};

/// A value sent from its defining stage straight to one that uses it.
struct PipelineEdge {
  int source = -1;
  std::size_t output = 0;
  int destination = 0;
  ValueId value;
};

/// A parameter that several stages use.
struct SharedParameter {
  std::vector<std::string> names;     ///< all of a tied one, in the file's order
  std::map<int, std::string> nameIn;  ///< by stage, the name under which it is used there
  MultiUse use = MultiUse::replicate;
  std::int64_t bytes = 0;
};

/// A computation cut into stages. Ids are those of the computation's document.
struct PipelineSplit {
  std::vector<PipelineStage> stages;
  std::vector<PipelineEdge> edges;      ///< by destination, then in the order of first use
  std::vector<SharedParameter> shared;  ///< those to synchronise, where `use` is replicate
  std::map<std::size_t, int>
      mutationOwner;                ///< buffer or input (index into the computation's inputs) -> stage that writes it
  std::vector<std::string> unused;  ///< parameters that no stage uses
  std::vector<std::string> notes;   ///< "the 4 ops from #relu on were left out: ..."
};

/// Cuts the computation. Stage numbers are dense; a stage gets exactly the values it uses, each from the stage that
/// defines it; parameters go to the stages that use them; a buffer stays with the stage that writes it, which sends its
/// content on. A stage that nothing needs and that has no effect is left out, with a note. A value written in place
/// after it was sent is taken from the stage that wrote it. Throws Error(badUse) naming the op where no order of sends
/// gives what the whole model gives: a write through one of several values that share memory across a border, a buffer
/// read in a stage before the one that writes it; and where devices are neither one nor one for each stage.
PipelineSplit splitPipeline(const Document& document, const Computation& computation, const Cuts& cuts,
                            const PipelineOptions& options = {});

/// Names of the parameters that a stage holds, by index into the computation's inputs: of a tied one that under the
/// module of the first op that uses it, unless the stage has another parameter of that name; else the file's.
std::map<std::size_t, std::string> parameterNames(const Document& document, const Computation& computation,
                                                  const PipelineStage& stage);

/// The user inputs of the computation that no op uses (of two that were one tensor at export, all but one).
std::vector<std::string> unusedInputs(const Document& document, const Computation& computation);

}  // namespace retrograd
