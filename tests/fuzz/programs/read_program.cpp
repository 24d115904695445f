#include "tests/fuzz/programs/read_program.h"

#include <map>

#include "core/formats/text/text_trace.h"
#include "core/torch/tracing/op_table.h"
#include "tests/fuzz/programs/oracle.h"

namespace retrograd::fuzz {
namespace {

class Reading {
 public:
  explicit Reading(const ModelFile& file) : document_(*file.document) {
    if (!document_.sizeSymbols().empty()) program_.size = document_.sizeSymbols().front().hint;
    const auto& computation = file.computation;
    for (std::size_t i = 0; i < computation.inputs.size(); ++i)
      addInput(computation.inputs[i], computation.trace.inputs[i]);
    program_.main.calls = calls(computation.trace.ops);
    for (const auto& output : computation.outputs)
      program_.main.results.push_back(output.value ? Arg::value(idOf(output.value)) : Arg::none());
  }

  Program take() { return std::move(program_); }

 private:
  void addInput(const InputSpec& spec, ValueId value) {
    Input input;
    input.kind = spec.kind == InputKind::parameter ? Input::Kind::parameter
                 : spec.kind == InputKind::user    ? Input::Kind::user
                                                   : Input::Kind::buffer;
    input.name = spec.name;
    const auto& meta = document_.meta(value);
    input.dtype = meta.dtype;
    input.sizes = meta.sizes;
    input.strides = meta.strides;
    input.offset = meta.offset;
    for (std::size_t d = 0; d < meta.symbols.size(); ++d) input.perSize.push_back(perSize(meta.symbols[d]));
    input.noGrad = input.kind != Input::Kind::buffer && isDifferentiable(meta.dtype) && !spec.requiresGrad;
    ids_[value.index] = program_.values++;
    program_.inputs.push_back(std::move(input));
  }

  std::int64_t perSize(const std::string& expression) const {
    if (expression.empty()) return 0;
    const auto& name = document_.sizeSymbols().front().name;
    const auto here = evaluateSize(expression, {{name, 10}}), there = evaluateSize(expression, {{name, 11}});
    return here && there ? *there - *here : 0;
  }

  int idOf(ValueId value) {
    const auto [it, isNew] = ids_.try_emplace(value.index, program_.values);
    program_.values += isNew;
    return it->second;
  }

  std::vector<Call> calls(const std::vector<BoundSymbolId>& ops) {
    std::vector<Call> found;
    for (auto op : ops) {
      const auto& bound = document_.boundSymbol(op);
      const auto& pattern = document_.pattern(bound.pattern);
      const auto& name = document_.symbol(bound.symbol).name;
      Call call;
      call.op = name;
      const auto operands = document_.operands(op);
      for (const auto& argument : pattern.arguments) call.args.push_back(arg(argument, operands));
      for (auto output : document_.outputs(op)) call.outputs.push_back(output ? idOf(output) : -1);
      call.returns = pattern.returns;
      found.push_back(std::move(call));
    }
    return found;
  }

  Arg arg(const Argument& argument, std::span<const ValueId> operands) {
    using K = Argument::Kind;
    switch (argument.kind) {
      case K::none: return Arg::none();
      case K::missing: return Arg::missing();
      case K::operand: return Arg::value(idOf(operands[static_cast<std::size_t>(argument.integer)]));
      case K::boolean: return Arg::boolean(argument.integer != 0);
      case K::integer: {
        auto number = Arg::number(argument.integer);
        number.perSize = perSize(argument.text);
        number.integer -= number.perSize * program_.size;
        return number;
      }
      case K::real: return Arg::number(argument.real);
      case K::complex: {
        auto number = Arg::number(argument.real);
        number.kind = Arg::Kind::complex;
        number.imaginary = argument.imaginary;
        return number;
      }
      case K::string: return Arg::string(argument.text);
      case K::dtype: return Arg::of(Arg::Kind::dtype, argument.integer);
      case K::layout: return Arg::of(Arg::Kind::layout, argument.integer);
      case K::memoryFormat: return Arg::of(Arg::Kind::memoryFormat, argument.integer);
      case K::device: {
        auto device = Arg::string(argument.text);
        device.kind = Arg::Kind::device;
        return device;
      }
      case K::subgraph: return Arg::body(body(SubgraphId(argument.integer)));
      case K::list: {
        std::vector<Arg> items;
        for (const auto& item : argument.items) items.push_back(arg(item, operands));
        return Arg::list(std::move(items));
      }
      case K::op: break;
    }
    throw Error(ErrorCode::badInput, "a program of the fuzzer has no such argument");
  }

  int body(SubgraphId id) {
    const auto& graph = document_.subgraph(id);
    Body body;
    for (auto input : graph.inputs) body.inputs.push_back(idOf(input));
    body.calls = calls(graph.ops);
    for (const auto& output : graph.outputs) body.results.push_back(arg(output, graph.outputValues));
    program_.bodies.push_back(std::move(body));
    return static_cast<int>(program_.bodies.size()) - 1;
  }

  const Document& document_;
  Program program_;
  std::map<std::int32_t, int> ids_;
};

}  // namespace

Program readProgram(const std::string& text, std::uint64_t seed, const Mode& mode) {
  const auto file = readTextModel(text, "program.txt", lookupSymbol);
  for (const auto& problem : file.problems)
    if (problem.severity == Problem::Severity::error) throw Error(ErrorCode::badInput, problem.message, problem.place);
  auto program = Reading(file).take();
  program.seed = seed;
  program.mode = mode;
  if (!settleInputs(program)) throw Error(ErrorCode::badInput, "eager LibTorch does not run this program");
  return program;
}

}  // namespace retrograd::fuzz
