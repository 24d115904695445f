#pragma once
// What the forward of a compile saves for its backward, what the backward recomputes, and why.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/jobs/job_graphs.h"

namespace retrograd {

/// How the backward comes by a value of the forward.
enum class Fate : std::uint8_t {
  saved,       ///< an output of the forward graph, kept until the backward
  recomputed,  ///< a node of the backward graph too
  unused       ///< neither
};
std::string_view name(Fate fate);  ///< "saved", "recomputed", "not needed"

/// One of the equal layers of a job's forward.
struct PlanLayer {
  std::size_t group = 0, number = 0;  ///< number: from 0 within its group
  std::size_t ops = 0;                ///< nodes of the graph in it
  std::int64_t savedBytes = 0;        ///< of its saved activations, as far as sizes are known; each storage once
  /// What the names of its parameters begin with: "blocks.2"; empty where they have nothing in common. (A line of its
  /// own may not begin with the name: that is a module declaration.)
  std::string module;
};

/// A value of the forward.
struct PlanValue {
  std::string name;     ///< in the graphs
  std::string program;  ///< of a parameter, buffer or input: its name in the Python program
  std::string dtype;    ///< "f32"; empty where the text does not say, "size" for a number
  std::vector<std::int64_t> sizes;
  std::optional<std::int64_t> bytes;  ///< its elements; nothing where a size is not known
  bool isInput = false;               ///< an input of the forward, or a view of one: in memory anyway
  std::string viewOf;                 ///< the value whose storage it shares; empty where it has its own
  std::string op;                     ///< "torch.ops.aten.addmm.default"; empty for an input
  std::string file, code;             ///< of the line of Python
  int line = 0;
  std::string policy;  ///< of checkpointing: "MUST_SAVE"; empty where the op has none
  Fate fate = Fate::unused;
  std::optional<std::size_t> layer;  ///< into SavePlan::layers
  std::string slot;  ///< equal for the values that correspond in equal layers; sorts by place in the layer
};

/// Values that correspond in equal layers and have one policy and fate, or a single value outside of layers.
struct PlanRow {
  std::vector<std::size_t> layers;  ///< into SavePlan::layers, ascending; empty outside of layers
  std::vector<std::size_t> values;  ///< into the table's values, by layer
};

/// Each value once, in rows in order of the graph; those of a group of layers together.
struct PlanTable {
  std::vector<PlanValue> values;  ///< in order of the graph
  std::vector<PlanRow> rows;
};

/// What happens to the value at one place of the layers, in the layers where that is the same.
struct PlanTreatment {
  std::vector<std::size_t> layers;  ///< into SavePlan::layers
  std::string value;                ///< of the first of these layers
  Fate fate = Fate::unused;
  std::string policy, jointPolicy;  ///< in the forward graph, and in the joint graph as the checkpointed region asked
  bool operator==(const PlanTreatment&) const = default;
};

/// A place at which equal layers are not treated alike.
struct PlanDifference {
  PlanTreatment odd, others;  ///< `others` has the most layers
  std::string op, type, file;
  int line = 0;
  std::optional<std::int64_t> bytes;  ///< of the value
  enum class Reason : std::uint8_t {
    none,           ///< a finding
    lastLayer,      ///< it follows from who reads the layer's result: no other layer,
    regionReads,    ///< another checkpointed region,
    noRegionReads,  ///< no checkpointed region
    inMemory        ///< an input of the forward, or a view of one: saving it takes no memory
  };
  Reason reason = Reason::none;
};

struct PolicyCount {
  std::string policy;  ///< empty: ops without one
  std::size_t saved = 0, recomputed = 0, unused = 0;
};

/// A sentence about a value of the plan; `value` is empty where it is about several, or about none.
struct PlanFinding {
  std::string text, value;
};

/// Values, and the bytes of their storages, each storage once.
struct PlanTotal {
  std::size_t values = 0;
  std::int64_t bytes = 0;
  std::size_t unknown = 0;  ///< values whose bytes are not known
};

/// What a compiled forward saves for its backward.
struct SavePlan {
  std::vector<PlanLayer> layers;      ///< by group and number
  PlanTable residuals;                ///< what the forward graph saves, inputs included
  PlanTable computed;                 ///< every tensor that the forward computes
  std::vector<PolicyCount> policies;  ///< of `computed`
  PlanTotal saved, inputs;            ///< activations; inputs of the forward and views of them
  std::optional<PlanTotal>
      allSaved;  ///< activations that the joint graph's backward reads; nothing where the log has no joint graph
  std::vector<PlanDifference> differences;
  std::vector<PlanFinding> broken;  ///< values saved although they must be recomputed, or the other way around
};

/// Reads the plan off the graphs. Equal layers are those of jobs::equalLayers() in the joint graph's forward, where the
/// log has a joint graph.
SavePlan savePlanOf(const JobGraphs& graphs);

/// "layer 2 (blocks.2)", "layers 0, 1 and 3", "layers 0 to 3". `layers`: ascending; of many with gaps between them some
/// are left out.
std::string layersText(const SavePlan& plan, const std::vector<std::size_t>& layers);
std::string typeText(const PlanValue& value);  ///< "f32[2, 12, 32]"
std::string opText(const PlanValue& value);    ///< "aten.addmm"
/// "add_2", "primals_4 (norm1.weight)": without the layer's part of the name, which the heading has.
std::string nameText(const SavePlan& plan, const PlanValue& value);
/// What is above the values of these layers: "layers 0 to 3 (blocks.0 to blocks.3), 4 times", "outside the layers".
std::string headingText(const SavePlan& plan, const std::vector<std::size_t>& layers);
/// What the plan finds wrong or uneven: for each set of layers how much it saves, where other layers save another
/// amount, and a sentence for each difference without a reason; then one for each broken policy. Differences that do
/// not matter for what is saved are one sentence where they say the same.
std::vector<std::string> findingsOf(const SavePlan& plan);
/// The same, each with the value that it is about.
std::vector<PlanFinding> namedFindingsOf(const SavePlan& plan);
/// Sentences for the differences with a reason.
std::vector<std::string> notesOf(const SavePlan& plan);

}  // namespace retrograd
