// What a program has, for the figures.
#include <algorithm>
#include <set>

#include "tests/fuzz/programs/generator.h"

namespace retrograd::fuzz {

const std::vector<std::string>& allFeatures() {
  static const std::vector<std::string> all{"write through a view",
                                            "write to an input",
                                            "write to a buffer",
                                            "running statistics",
                                            "f64",
                                            "f32",
                                            "bf16",
                                            "complex",
                                            "integers",
                                            "truths",
                                            "input not contiguous",
                                            "unused input",
                                            "several outputs",
                                            "draws",
                                            "no_grad",
                                            "autocast",
                                            "checkpointed",
                                            "cond",
                                            "scan",
                                            "map",
                                            "while",
                                            "order 2",
                                            "recompute all",
                                            "min-cut",
                                            "stages",
                                            "dynamic sizes",
                                            "data-dependent shape",
                                            "strided view"};
  return all;
}

std::vector<std::string> featuresOf(const Program& program) {
  std::set<std::string> found;
  std::set<int> used;
  forEachCall(program, [&](const Call& call) {
    for (const auto& arg : call.args)
      forEachArg(arg, [&](const Arg& a) {
        if (a.kind == Arg::Kind::value) used.insert(static_cast<int>(a.integer));
        if (a.kind != Arg::Kind::dtype) return;
        const auto dtype = static_cast<DType>(a.integer);
        if (dtype == DType::bf16) found.insert("bf16");
        if (dtype == DType::f32) found.insert("f32");
      });
    const auto has = [&](std::initializer_list<const char*> parts) {
      return std::any_of(parts.begin(), parts.end(),
                         [&](const char* p) { return call.op.find(p) != std::string::npos; });
    };
    if (has({"batch_norm", "instance_norm"}) && call.args.size() > 3 && call.args[3].kind == Arg::Kind::value)
      found.insert("running statistics");
    if (has({"dropout", "rand", "bernoulli", "normal_", "normal.", "uniform", "exponential", "multinomial", "poisson.",
             "rrelu"}))
      found.insert("draws");
    if (has({"masked_select", "nonzero", "argwhere"})) found.insert("data-dependent shape");
    if (has({"as_strided", "unfold."})) found.insert("strided view");
    if (call.op == "higher_order.wrap_with_set_grad_enabled") found.insert("no_grad");
    if (call.op == "higher_order.wrap_with_autocast") found.insert("autocast");
    if (call.op == "higher_order.tag_activation_checkpoint") found.insert("checkpointed");
    if (call.op == "higher_order.cond") found.insert("cond");
    if (call.op == "higher_order.scan") found.insert("scan");
    if (call.op == "higher_order.map_impl") found.insert("map");
    if (call.op == "higher_order.while_loop") found.insert("while");
  });
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const auto& input = program.inputs[i];
    if (input.dtype == DType::f64) found.insert("f64");
    if (input.dtype == DType::f32) found.insert("f32");
    if (input.dtype == DType::bf16) found.insert("bf16");
    if (isComplex(input.dtype)) found.insert("complex");
    if (input.dtype == DType::i64 || input.dtype == DType::i32) found.insert("integers");
    if (input.dtype == DType::b8) found.insert("truths");
    if (input.strides != contiguousStrides(input.sizes)) found.insert("input not contiguous");
    if (!used.contains(static_cast<int>(i))) found.insert("unused input");
  }
  if (program.writesThroughViews > 0) found.insert("write through a view");
  if (program.writesInputs) found.insert("write to an input");
  if (program.writesBuffers) found.insert("write to a buffer");
  if (program.main.results.size() > 1) found.insert("several outputs");
  if (program.mode.order > 1) found.insert("order 2");
  if (program.mode.recomputeAll) found.insert("recompute all");
  if (program.mode.minCut) found.insert("min-cut");
  if (!program.mode.cuts.empty()) found.insert("stages");
  if (program.size > 0) found.insert("dynamic sizes");
  return {found.begin(), found.end()};
}

}  // namespace retrograd::fuzz
