// Graph text of torch.fx and repro scripts: what is read prints to expressions that read back to the same print.
#include "core/formats/fx/fx_reader.h"
#include "tests/fuzz/fuzz.h"

namespace {

void check(const retrograd::fx::Graph& graph) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < graph.valueCount(); ++i) names.push_back(graph.valueName(i));
  for (const auto& node : graph.nodes) {
    if (node.call.kind == retrograd::fx::Expression::Kind::inPlace) continue;
    const auto text = toText(node.call, names);
    if (toText(retrograd::fx::readExpression(text, "again"), names) != text) __builtin_trap();
  }
  for (const auto& body : graph.bodies) check(body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace retrograd;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  fx::Graph graph;
  fuzz::expectReadOrRefusal(
      [&] { graph = fx::looksLikeRepro(text) ? fx::readRepro(text, "fuzz").graph : fx::readGraph(text, "fuzz"); });
  check(graph);
  return 0;
}
