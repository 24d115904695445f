#include "tests/fuzz/programs/oracle.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <string_view>

#include "tests/fuzz/programs/interpreter.h"
#include "tests/fuzz/programs/schema.h"

namespace retrograd::fuzz {
namespace {

/// Memory of its own in just this layout, gaps and offset too: whether an op views or copies follows from it. No view
/// of another tensor.
at::Tensor laidOut(const at::Tensor& content, const std::vector<std::int64_t>& strides, std::int64_t offset) {
  std::int64_t reach = offset + 1;
  for (std::int64_t d = 0; d < content.dim(); ++d)
    reach += (content.size(d) - 1) * strides[static_cast<std::size_t>(d)];
  if (content.numel() == 0) reach = offset;
  auto laid = at::empty({0}, content.options())
                  .set_(at::zeros({reach}, content.options()).storage(), offset, content.sizes(), strides);
  laid.copy_(content);
  return laid;
}

at::ScalarType widened(at::ScalarType type) {
  return c10::isComplexType(type) ? at::kComplexDouble : c10::isFloatingType(type) ? at::kDouble : type;
}

at::Tensor asRead(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.detach().clone(at::MemoryFormat::Contiguous).resolve_conj().resolve_neg() : tensor;
}

/// `tensor`, the i-th of its kind, with each element times 1 + the perturbation, signs by turns.
at::Tensor moved(const at::Tensor& tensor, std::size_t i, double by) {
  if (by == 0 || !(tensor.is_floating_point() || tensor.is_complex())) return tensor;
  const auto turns = at::arange(tensor.numel(), at::kDouble).mul_(2.3).add_(static_cast<double>(i) + 1).sin_();
  return tensor.mul(turns.mul_(by).add_(1).view(tensor.sizes()).to(tensor.scalar_type()));
}

/// Moves each gradient that arrives at an op's result, too: what cancels in a sum of gradients (atan2 of a tensor and
/// itself) shows how large the summands are.
void moveGradients(Interpreter& interpreter, double by) {
  interpreter.onTensor([by, count = std::size_t{0}](const at::Tensor& made) mutable {
    const auto i = count++;
    try {
      if (!made.requires_grad() || made.is_leaf()) return;
      made.register_hook(
          [by, i](const at::Tensor& gradient) { return gradient.defined() ? moved(gradient, i, by) : gradient; });
    } catch (const c10::Error&) {
      // One of several views of a base that was written since: eager lets nobody ask for its history.
    }
  });
}

struct Run {
  std::vector<at::Tensor> inputs, outputs, leaves;
};

Run forward(const Program& program, const std::vector<at::Tensor>& contents, const OracleOptions& options,
            Interpreter& interpreter) {
  Run run;
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    auto content = options.inDouble ? contents[i].to(widened(contents[i].scalar_type())) : contents[i];
    content = moved(content, i, options.perturbation);
    const auto strides = contents[i].strides().vec();
    auto leaf = laidOut(content.detach(), strides, contents[i].storage_offset());
    if (program.inputs[i].grad) leaf.requires_grad_(true);
    run.leaves.push_back(program.inputs[i].grad ? leaf : at::Tensor());
    run.inputs.push_back(leaf);
    interpreter.bind(static_cast<int>(i), leaf);
  }
  const at::AutoGradMode mode(true);
  if (options.perturbation != 0)
    moveGradients(interpreter, options.perturbation / 4);  // by one rounding of a shorter dtype
  interpreter.run(program.main.calls);
  for (const auto& result : program.main.results) {
    const auto value = interpreter.argument(result, c10::AnyType::get());
    run.outputs.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
  }
  return run;
}

/// Marks inputs as not differentiated that the op which was refused would have written to. False where there are none.
bool excludeWritten(Program& program, const Interpreter& interpreter) {
  const auto* call = interpreter.refused();
  if (!call) return false;
  bool any = false;
  for (std::size_t k = 0; k < call->args.size(); ++k) {
    if (call->args[k].kind != Arg::Kind::value || !schemaOf(call->op).writes(k)) continue;
    const auto written = interpreter.value(static_cast<int>(call->args[k].integer)).toTensor();
    for (std::size_t i = 0; i < program.inputs.size(); ++i) {
      auto& input = program.inputs[i];
      if (!input.grad || !interpreter.value(static_cast<int>(i)).toTensor().is_alias_of(written)) continue;
      input.grad = false;
      any = true;
    }
  }
  return any;
}

at::Tensor fitted(const at::Tensor& cotangent, const at::Tensor& output) {
  if (!cotangent.defined()) return at::ones_like(output, at::MemoryFormat::Contiguous).detach();
  TORCH_CHECK(cotangent.sizes() == output.sizes(), "a cotangent of shape ", cotangent.sizes(),
              " for a result of shape ", output.sizes());
  return cotangent.to(output.scalar_type());
}

std::vector<at::Tensor> differentiate(const std::vector<at::Tensor>& roots, const std::vector<at::Tensor>& cotangents,
                                      const std::vector<at::Tensor>& leaves, bool createGraph) {
  std::vector<at::Tensor> wanted, gradients(leaves.size());
  for (const auto& leaf : leaves)
    if (leaf.defined()) wanted.push_back(leaf);
  if (roots.empty() || wanted.empty()) return gradients;
  const auto found = torch::autograd::grad(roots, wanted, cotangents, createGraph, createGraph, true);
  for (std::size_t i = 0, k = 0; i < leaves.size(); ++i)
    if (leaves[i].defined()) gradients[i] = found[k++];
  return gradients;
}

at::Tensor cotangentFor(const std::map<std::size_t, at::Tensor>& given, std::size_t i, const at::Tensor& output) {
  const auto it = given.find(i);
  return fitted(it == given.end() ? at::Tensor() : it->second, output);
}

}  // namespace

InputDraw::InputDraw(std::uint64_t seed)
    : users_(at::detail::createCPUGenerator(seed)), weights_(at::detail::createCPUGenerator(seed + 2)) {}

at::Tensor InputDraw::draw(const Input& input, const std::vector<std::int64_t>& sizes) {
  const auto type = scalarType(input.dtype);
  const bool isComplexInput = isComplex(input.dtype), differentiable = isDifferentiable(input.dtype);
  const auto wide = at::TensorOptions().dtype(isComplexInput ? at::kComplexDouble : at::kDouble);
  const auto strides = sizes == input.sizes ? input.strides : contiguousStrides(sizes);
  if (input.kind == Input::Kind::user) {
    auto content = differentiable ? at::randn(sizes, users_, wide).to(type)
                                  : at::randint(0, 2, sizes, users_, at::TensorOptions().dtype(at::kLong)).to(type);
    return laidOut(content, strides, sizes == input.sizes ? input.offset : 0);
  }
  std::int64_t reach = 1, elements = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    reach += (sizes[d] - 1) * strides[d];
    elements *= sizes[d];
  }
  reach = elements == 0 ? 0 : reach + input.offset;
  at::Tensor flat;
  if (!differentiable) {
    flat = at::randint(0, 2, {reach}, weights_, at::TensorOptions().dtype(at::kLong)).to(type);
  } else if (input.kind == Input::Kind::buffer) {
    flat = at::rand({reach}, weights_, wide).add_(0.5).to(type);
  } else {
    const auto fanIn = sizes.size() < 2 ? 1 : elements / std::max<std::int64_t>(sizes[0], 1);
    flat = at::randn({reach}, weights_, wide)
               .div_(std::sqrt(static_cast<double>(std::max<std::int64_t>(fanIn, 1))))
               .to(type);
  }
  return flat.as_strided(sizes, strides, input.offset);
}

std::vector<at::Tensor> drawInputs(const Program& program, std::int64_t size) {
  InputDraw draw(program.seed);
  std::vector<at::Tensor> contents;
  for (const auto& input : program.inputs) {
    auto sizes = input.sizes;
    for (std::size_t d = 0; d < input.perSize.size(); ++d) sizes[d] += input.perSize[d] * (size - program.size);
    contents.push_back(draw.draw(input, sizes));
  }
  return contents;
}

bool settleInputs(Program& program, std::optional<std::int64_t> at) {
  const auto size = at.value_or(program.size);
  for (auto& input : program.inputs)
    input.grad = input.kind != Input::Kind::buffer && !input.noGrad && isDifferentiable(input.dtype);
  const auto contents = drawInputs(program, size);
  for (;;) {
    at::manual_seed(program.seed);
    Interpreter interpreter(program, false, size);
    try {
      forward(program, contents, {.size = size}, interpreter);
      return true;
    } catch (const std::exception& e) {
      if (std::string_view(e.what()).find("leaf Variable that requires grad") == std::string_view::npos ||
          !excludeWritten(program, interpreter))
        return false;
    }
  }
}

Outcome runOracle(const Program& program, const std::vector<at::Tensor>& inputs, const Cotangents& cotangents,
                  const OracleOptions& options) {
  at::manual_seed(program.seed);
  Interpreter interpreter(program, options.inDouble, options.size);
  auto run = forward(program, inputs, options, interpreter);
  Outcome outcome;
  for (const auto& output : run.outputs) outcome.outputs.push_back(asRead(output));
  for (std::size_t i = 0; i < run.inputs.size(); ++i)
    outcome.contents.push_back(program.inputs[i].kind == Input::Kind::parameter ? at::Tensor() : asRead(run.inputs[i]));
  outcome.gradients.resize(run.inputs.size());
  const bool twice = options.order == 2;
  {
    std::vector<at::Tensor> roots, flowing, cotangentLeaves(run.outputs.size());
    for (std::size_t i = 0; i < run.outputs.size(); ++i) {
      if (!run.outputs[i].defined() || !run.outputs[i].requires_grad()) continue;
      roots.push_back(run.outputs[i]);
      flowing.push_back(moved(cotangentFor(cotangents.first, i, run.outputs[i]), i, options.perturbation));
      if (twice) flowing.back() = flowing.back().detach().clone().requires_grad_(true);
      cotangentLeaves[i] = flowing.back();
    }
    const auto gradients = differentiate(roots, flowing, run.leaves, twice);
    for (std::size_t i = 0; i < gradients.size(); ++i) outcome.gradients[i] = asRead(gradients[i]);
    if (twice) {
      auto results = run.outputs;
      for (const auto& gradient : gradients)
        if (gradient.defined()) results.push_back(gradient);
      std::vector<at::Tensor> again, against;
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (!results[i].defined() || !results[i].requires_grad()) continue;
        again.push_back(results[i]);
        against.push_back(moved(cotangentFor(cotangents.second, i, results[i]), i, options.perturbation));
      }
      auto leaves = run.leaves;
      leaves.insert(leaves.end(), cotangentLeaves.begin(), cotangentLeaves.end());
      for (const auto& gradient : differentiate(again, against, leaves, false))
        outcome.second.push_back(asRead(gradient));
    }
  }
  outcome.generator = at::detail::getDefaultCPUGenerator().get_state();
  return outcome;
}

}  // namespace retrograd::fuzz
