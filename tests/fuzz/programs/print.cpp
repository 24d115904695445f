#include "tests/fuzz/programs/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/trace/python_text.h"
#include "tests/fuzz/programs/schema.h"

namespace retrograd::fuzz {
namespace {

std::string sizeText(std::int64_t perSize, std::int64_t number) {
  if (perSize == 0) return std::to_string(number);
  const auto product = perSize == 1    ? std::string("s0")
                       : perSize == -1 ? std::string("-s0")
                                       : fmt::format("{}*s0", perSize);
  return number == 0 ? product : fmt::format("{} {} {}", product, number < 0 ? '-' : '+', std::abs(number));
}

class Printer {
 public:
  explicit Printer(const Program& program) : program_(program) {}

  std::string print() {
    std::vector<std::string> names;
    for (const auto& input : program_.inputs) names.push_back(input.name);
    text_ = fmt::format("def computation({}):\n", fmt::join(names, ", "));
    if (program_.size > 0) line(1, fmt::format("# s0: {}, symbolic size in [2, 64]", program_.size));
    for (const auto& input : program_.inputs) line(1, inputText(input));
    printBody(program_.main, 1);
    return text_;
  }

 private:
  void line(int depth, const std::string& text) {
    text_ += std::string(static_cast<std::size_t>(4 * depth), ' ') + text + "\n";
  }

  std::string inputText(const Input& input) const {
    std::vector<std::string> sizes;
    for (std::size_t d = 0; d < input.sizes.size(); ++d) {
      const auto perSize = d < input.perSize.size() ? input.perSize[d] : 0;
      sizes.push_back(perSize == 0 ? std::to_string(input.sizes[d])
                                   : fmt::format("{}={}", sizeText(perSize, input.sizes[d] - perSize * program_.size),
                                                 input.sizes[d]));
    }
    auto text = fmt::format("# {}: \"{}[{}]", input.name, shortName(input.dtype), fmt::join(sizes, ", "));
    if (input.strides != contiguousStrides(input.sizes))
      text += fmt::format(" strides [{}]", fmt::join(input.strides, ", "));
    if (input.offset != 0) text += fmt::format(" offset {}", input.offset);
    text += '"';
    if (input.kind == Input::Kind::parameter) text += ", parameter";
    if (input.kind == Input::Kind::buffer) text += ", buffer";
    if (input.noGrad) text += ", no grad";
    return text;
  }

  void printBody(const Body& body, int depth) {
    for (const auto& call : body.calls) printCall(call, depth);
    std::vector<std::string> results;
    for (const auto& result : body.results) results.push_back(argText(result));
    line(depth, fmt::format("return ({}{})", fmt::join(results, ", "), results.size() == 1 ? "," : ""));
  }

  void printCall(const Call& call, int depth) {
    for (const auto& arg : call.args) {
      if (arg.kind != Arg::Kind::body) continue;
      const auto& body = program_.bodies[static_cast<std::size_t>(arg.integer)];
      std::vector<std::string> inputs;
      for (auto input : body.inputs) inputs.push_back(program_.nameOf(input));
      line(depth, fmt::format("def body_{}({}):", arg.integer, fmt::join(inputs, ", ")));
      printBody(body, depth + 1);
    }
    line(depth, targetText(call) + fmt::format("torch.ops.{}({})", call.op, argsText(call)));
  }

  std::string targetText(const Call& call) const {
    if (call.outputs.empty()) return {};
    std::vector<std::string> groups;
    std::size_t next = 0;
    const auto name = [&] {
      const auto id = call.outputs[next++];
      return id < 0 ? std::string("_") : program_.nameOf(id);
    };
    auto returns = call.returns;
    if (returns.empty()) returns.assign(call.outputs.size(), -1);
    for (auto n : returns) {
      if (n < 0) {
        groups.push_back(name());
        continue;
      }
      std::vector<std::string> items;
      for (std::int32_t i = 0; i < n; ++i) items.push_back(name());
      groups.push_back(fmt::format("[{}]", fmt::join(items, ", ")));
    }
    if (groups.size() == 1 && !call.isHigherOrder()) return groups[0] + " = ";
    return fmt::format("({}{}) = ", fmt::join(groups, ", "), groups.size() == 1 ? "," : "");
  }

  std::string argsText(const Call& call) const {
    std::vector<std::string> items;
    const auto* schema = call.isHigherOrder() ? nullptr : &schemaOf(call.op);
    bool named = false;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
      if (call.args[i].kind == Arg::Kind::missing) {
        named = true;
        continue;
      }
      named = named || (schema && schema->keywordOnly(i));
      items.push_back(named && schema ? schema->argumentName(i) + "=" + argText(call.args[i]) : argText(call.args[i]));
    }
    return fmt::format("{}", fmt::join(items, ", "));
  }

  std::string argText(const Arg& arg) const {
    switch (arg.kind) {
      case Arg::Kind::missing:
      case Arg::Kind::none: return "None";
      case Arg::Kind::value: return program_.nameOf(static_cast<int>(arg.integer));
      case Arg::Kind::boolean: return arg.integer ? "True" : "False";
      case Arg::Kind::integer: return sizeText(arg.perSize, arg.integer);
      case Arg::Kind::real: return pythonReal(arg.real);
      case Arg::Kind::complex: return fmt::format("complex({}, {})", pythonReal(arg.real), pythonReal(arg.imaginary));
      case Arg::Kind::string: return pythonString(arg.text);
      case Arg::Kind::dtype: return fmt::format("torch.{}", torchName(static_cast<DType>(arg.integer)));
      case Arg::Kind::layout: return "torch.strided";
      case Arg::Kind::memoryFormat: {
        constexpr const char* names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
        return fmt::format("torch.{}", names[arg.integer]);
      }
      case Arg::Kind::device: return fmt::format("torch.device({})", pythonString(arg.text));
      case Arg::Kind::body: return fmt::format("body_{}", arg.integer);
      case Arg::Kind::list: {
        std::vector<std::string> items;
        for (const auto& item : arg.items) items.push_back(argText(item));
        return fmt::format("[{}]", fmt::join(items, ", "));
      }
    }
    return {};
  }

  const Program& program_;
  std::string text_;
};

}  // namespace

std::string printProgram(const Program& program) { return Printer(program).print(); }

std::string printMode(const Program& program) {
  std::string text;
  const auto& mode = program.mode;
  if (program.seed != 0) text += fmt::format(" --seed {}", program.seed);
  if (mode.minCut) text += " --partition min-cut";
  if (mode.recomputeAll) text += " --recompute all";
  if (mode.order > 1) text += fmt::format(" --order {}", mode.order);
  if (mode.otherSize) text += fmt::format(" (and s0 = {})", *mode.otherSize);
  if (!mode.cuts.empty()) text += fmt::format(" (cut before ops {})", fmt::join(mode.cuts, ", "));
  return text.empty() ? text : text.substr(1);
}

std::string printTest(const Program& program, const std::string& name, const std::string& difference) {
  std::string set;
  const auto& mode = program.mode;
  if (mode.minCut) set += "  mode.minCut = true;\n";
  if (mode.recomputeAll) set += "  mode.recomputeAll = true;\n";
  if (mode.order > 1) set += fmt::format("  mode.order = {};\n", mode.order);
  if (!mode.cuts.empty()) set += fmt::format("  mode.cuts = {{{}}};\n", fmt::join(mode.cuts, ", "));
  if (mode.otherSize) set += fmt::format("  mode.otherSize = {};\n", *mode.otherSize);
  return fmt::format("// {}\nTEST(Programs, {}) {{\n{}{}  expectAsEager(R\"({})\", {}, {});\n}}\n", difference, name,
                     set.empty() ? "" : "  fuzz::Mode mode;\n", set, printProgram(program), set.empty() ? "{}" : "mode",
                     program.seed);
}

}  // namespace retrograd::fuzz
