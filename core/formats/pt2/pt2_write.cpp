#include "core/formats/pt2/pt2_write.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/formats/files/mapped_file.h"
#include "core/formats/zip/zip_writer.h"
#include "core/trace/symbol.h"

namespace retrograd {
namespace {

/// Opcodes of a pickle of protocol 2.
class PickleText {
 public:
  PickleText() { code_ = "\x80\x02"; }

  void mark() { code_ += '('; }
  void tuple() { code_ += 't'; }
  void emptyDict() { code_ += '}'; }
  void boolean(bool b) { code_ += b ? '\x88' : '\x89'; }
  void persistent() { code_ += 'Q'; }
  void reduce() { code_ += 'R'; }
  void global(const std::string& module, const std::string& name) { code_ += "c" + module + "\n" + name + "\n"; }
  void text(const std::string& s) {
    code_ += 'X';
    number(s.size(), 4);
    code_ += s;
  }
  void whole(std::int64_t i) {
    code_ += "\x8a\x08";
    number(static_cast<std::uint64_t>(i), 8);
  }
  void wholes(const std::vector<std::int64_t>& all) {
    mark();
    for (auto i : all) whole(i);
    tuple();
  }
  std::string finish() { return code_ + '.'; }

 private:
  void number(std::uint64_t n, int width) {
    for (int i = 0; i < width; ++i) code_ += static_cast<char>(n >> (8 * i) & 0xff);
  }
  std::string code_;
};

std::string storageClass(DType dtype) {
  switch (dtype) {
    case DType::f64: return "DoubleStorage";
    case DType::f32: return "FloatStorage";
    case DType::f16: return "HalfStorage";
    case DType::bf16: return "BFloat16Storage";
    case DType::i64: return "LongStorage";
    case DType::i32: return "IntStorage";
    case DType::i16: return "ShortStorage";
    case DType::i8: return "CharStorage";
    case DType::u8: return "ByteStorage";
    case DType::b8: return "BoolStorage";
    case DType::c128: return "ComplexDoubleStorage";
    case DType::c64: return "ComplexFloatStorage";
    default:
      throw Error(ErrorCode::unsupportedOp,
                  "a sample of dtype " + std::string(torchName(dtype)) + " cannot be written to a .pt2 here");
  }
}

void addTensor(PickleText& pickle, const TensorData& tensor, std::size_t key, bool requiresGrad) {
  const auto& meta = tensor.meta;
  pickle.global("torch._utils", "_rebuild_tensor_v2");
  pickle.mark();
  pickle.mark();
  pickle.text("storage");
  pickle.global("torch", storageClass(meta.dtype));
  pickle.text(std::to_string(key));
  pickle.text("cpu");
  pickle.whole(static_cast<std::int64_t>(tensor.bytes) / itemSize(meta.dtype));
  pickle.tuple();
  pickle.persistent();
  pickle.whole(meta.offset);
  pickle.wholes(meta.sizes);
  pickle.wholes(meta.strides);
  pickle.boolean(requiresGrad);
  pickle.global("collections", "OrderedDict");
  pickle.mark();
  pickle.tuple();
  pickle.reduce();
  pickle.tuple();
  pickle.reduce();
}

/// A file that is removed again.
struct Beside {
  std::string path;
  ~Beside() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

/// What torch.save writes of ((samples of the user's inputs in order), {}). Made in a file next to `path` that is gone
/// when this returns. Throws Error(unsupportedOp) for an input without a sample, or of a dtype that has no storage
/// class; Error(io).
ByteRegion sampleArchive(const ModelFile& model, const std::string& path) {
  PickleText pickle;
  std::vector<TensorData> tensors;
  pickle.mark();
  pickle.mark();
  for (const auto& input : model.computation.inputs) {
    const auto it = model.sampleInputs.find(input.name);
    if (it == model.sampleInputs.end())
      throw Error(ErrorCode::unsupportedOp, "has no sample, which a .pt2 needs here", "input " + input.name);
    const auto& meta = it->second.meta;
    addTensor(pickle, it->second, tensors.size(), input.requiresGrad && isDifferentiable(meta.dtype));
    tensors.push_back(it->second);
  }
  pickle.tuple();
  pickle.emptyDict();
  pickle.tuple();
  const auto code = pickle.finish();
  const Beside file{path + "." + std::to_string(::getpid()) + ".samples"};
  ZipWriter zip(file.path);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  zip.addStored("archive/data.pkl", bytes(code));
  zip.addStored("archive/byteorder", bytes("little"));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    zip.addStored("archive/data/" + std::to_string(i), {tensors[i].data, tensors[i].bytes});
  zip.addStored("archive/version", bytes("3\n"));
  zip.commit();
  return mapFile(file.path);
}

using OrderedJson = nlohmann::ordered_json;

[[noreturn]] void refuse(const std::string& what, const std::string& place = {}) {
  throw Error(ErrorCode::unsupportedOp, what + " cannot be written to a .pt2 here", place);
}

int dtypeCode(DType dtype) {
  static constexpr std::array<DType, 13> first{DType::u8,   DType::i8,  DType::i16, DType::i32, DType::i64,
                                               DType::f16,  DType::f32, DType::f64, DType::c32, DType::c64,
                                               DType::c128, DType::b8,  DType::bf16};
  static constexpr std::array<DType, 8> second{DType::u16,        DType::f8e4m3fn,  DType::f8e5m2, DType::f8e4m3fnuz,
                                               DType::f8e5m2fnuz, DType::f8e8m0fnu, DType::u32,    DType::u64};
  for (std::size_t i = 0; i < first.size(); ++i)
    if (first[i] == dtype) return static_cast<int>(i) + 1;
  for (std::size_t i = 0; i < second.size(); ++i)
    if (second[i] == dtype) return static_cast<int>(i) + 28;
  refuse("a dtype");
}

int layoutCode(Layout layout) {
  if (layout != Layout::strided) refuse("a sparse tensor");
  return 7;
}

/// Our numbers are c10's: 0 contiguous, 1 preserve, 2 channels_last, 3 channels_last_3d.
int memoryFormatCode(std::int64_t format) {
  static constexpr std::array<int, 4> codes{1, 4, 2, 3};
  if (format < 0 || format > 3) refuse("a memory format");
  return codes[static_cast<std::size_t>(format)];
}

OrderedJson deviceJson(const std::string& device) {
  const auto colon = device.find(':');
  if (colon == std::string::npos) return {{"type", device}, {"index", nullptr}};
  return {{"type", device.substr(0, colon)}, {"index", std::stoi(device.substr(colon + 1))}};
}

OrderedJson realJson(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "Infinity" : "-Infinity";
  return x;
}

OrderedJson sizesJson(const std::vector<std::int64_t>& sizes) {
  auto list = OrderedJson::array();
  for (auto size : sizes) list.push_back({{"as_int", size}});
  return list;
}

OrderedJson metaJson(const TensorMeta& meta, bool requiresGrad) {
  if (meta.isSymbolic()) refuse("a symbolic size");
  return {{"dtype", dtypeCode(meta.dtype)},     {"sizes", sizesJson(meta.sizes)},
          {"requires_grad", requiresGrad},      {"device", deviceJson(toString(meta.device))},
          {"strides", sizesJson(meta.strides)}, {"storage_offset", {{"as_int", meta.offset}}},
          {"layout", layoutCode(meta.layout)}};
}

/// Containers of leaves as torch.utils._pytree writes them.
std::string leaves(std::size_t count) {
  std::string text = R"({"type": "builtins.tuple", "context": "null", "children_spec": [)";
  for (std::size_t i = 0; i < count; ++i)
    text += std::string(i ? ", " : "") + R"({"type": null, "context": null, "children_spec": []})";
  return text + "]}";
}

class GraphWriter {
 public:
  explicit GraphWriter(const ModelFile& model) : model_(model), document_(*model.document) {}

  OrderedJson run() {
    const auto& computation = model_.computation;
    auto inputs = OrderedJson::array(), outputs = OrderedJson::array(), inputSpecs = OrderedJson::array(),
         outputSpecs = OrderedJson::array(), names = OrderedJson::array();
    for (const auto& input : computation.inputs) {
      if (input.kind != InputKind::user || !input.value || !document_.isTensor(input.value))
        refuse("an input that is not a tensor of the user", input.name);
      describe(input.value, input.requiresGrad);
      inputs.push_back(tensor(input.value));
      inputSpecs.push_back({{"user_input", {{"arg", tensor(input.value)}}}});
      names.push_back(document_.displayName(input.value));
    }
    auto nodes = OrderedJson::array();
    for (const auto op : computation.trace.ops) nodes.push_back(node(op));
    for (const auto& output : computation.outputs) {
      if (!output.value || !document_.isTensor(output.value)) refuse("an output that is not a tensor");
      outputs.push_back(tensor(output.value));
      outputSpecs.push_back({{"user_output", {{"arg", tensor(output.value)}}}});
    }
    OrderedJson graph{{"inputs", inputs},
                      {"outputs", outputs},
                      {"nodes", nodes},
                      {"tensor_values", values_},
                      {"sym_int_values", OrderedJson::object()},
                      {"sym_bool_values", OrderedJson::object()},
                      {"is_single_tensor_return", false},
                      {"custom_obj_values", OrderedJson::object()},
                      {"sym_float_values", OrderedJson::object()}};
    const auto inSpec = R"([1, {"type": "builtins.tuple", "context": "null", "children_spec": [)" +
                        leaves(computation.inputs.size()) +
                        R"(, {"type": "builtins.dict", "context": "[]", "children_spec": []}]}])";
    OrderedJson signature{{"inputs", OrderedJson::array()},
                          {"outputs", OrderedJson::array()},
                          {"in_spec", inSpec},
                          {"out_spec", "[1, " + leaves(computation.outputs.size()) + "]"},
                          {"forward_arg_names", names}};
    OrderedJson module{{"graph", graph},
                       {"signature", {{"input_specs", inputSpecs}, {"output_specs", outputSpecs}}},
                       {"module_call_graph", OrderedJson::array({{{"fqn", ""}, {"signature", signature}}})},
                       {"metadata", OrderedJson::object()},
                       {"treespec_namedtuple_fields", OrderedJson::object()}};
    return {{"graph_module", module},
            {"opset_version", {{"aten", 10}}},
            {"range_constraints", OrderedJson::object()},
            {"schema_version", {{"major", 8}, {"minor", 20}}},
            {"verifiers", OrderedJson::array({"TRAINING"})},
            {"torch_version", model_.torchVersion.empty() ? "2.15.0" : model_.torchVersion},
            {"guards_code", OrderedJson::array()}};
  }

 private:
  void describe(ValueId id, bool requiresGrad) {
    values_[document_.displayName(id)] = metaJson(document_.meta(id), requiresGrad);
  }
  OrderedJson name(ValueId id) const { return {{"name", document_.displayName(id)}}; }
  OrderedJson tensor(ValueId id) const { return {{"as_tensor", name(id)}}; }

  OrderedJson node(BoundSymbolId op) {
    const auto& bound = document_.boundSymbol(op);
    const auto& symbol = document_.symbol(bound.symbol);
    const auto& pattern = document_.pattern(bound.pattern);
    if (symbol.isHigherOrder || !symbol.known) refuse("this op", symbol.qualifiedName());
    operands_ = document_.operands(op);
    auto inputs = OrderedJson::array();
    for (std::size_t i = 0; i < pattern.arguments.size() && i < symbol.arguments.size(); ++i) {
      if (pattern.arguments[i].kind == Argument::Kind::missing) continue;
      try {
        inputs.push_back({{"name", symbol.arguments[i].name},
                          {"arg", argument(pattern.arguments[i], parseSchemaType(symbol.arguments[i].type))},
                          {"kind", symbol.arguments[i].keywordOnly ? 2 : 1}});
      } catch (const Error& e) {
        throw e.at(symbol.qualifiedName());
      }
    }
    OrderedJson json{{"target", symbol.qualifiedName()},
                     {"inputs", inputs},
                     {"outputs", outputs(op, pattern)},
                     {"metadata", metadata(bound)},
                     {"is_hop_single_tensor_return", nullptr}};
    const auto made = document_.outputs(op);
    json["name"] = made.empty() || !made[0] ? "op_" + std::to_string(op.index) : document_.displayName(made[0]);
    return json;
  }

  OrderedJson outputs(BoundSymbolId op, const CallPattern& pattern) {
    const auto made = document_.outputs(op);
    auto result = OrderedJson::array();
    std::size_t at = 0;
    const auto one = [&] {
      const auto id = made[at++];
      if (!id || !document_.isTensor(id)) refuse("an op that makes no tensor", document_.opName(op));
      describe(id, false);
      return id;
    };
    auto returns = pattern.returns;
    if (returns.empty()) returns.assign(made.size(), -1);
    for (const auto count : returns) {
      if (count < 0) {
        result.push_back(tensor(one()));
        continue;
      }
      auto list = OrderedJson::array();
      for (std::int32_t i = 0; i < count; ++i) list.push_back(name(one()));
      result.push_back({{"as_tensors", list}});
    }
    return result;
  }

  OrderedJson metadata(const BoundSymbol& bound) const {
    auto json = OrderedJson::object();
    if (!bound.source) return json;
    std::string stack;
    for (const auto& frame : document_.source(bound.source))
      stack += (stack.empty() ? "" : "\n") + std::string("File \"") + frame.file + "\", line " +
               std::to_string(frame.line) + ", in " + frame.function +
               (frame.code.empty() ? "" : "\n    " + frame.code);
    json["stack_trace"] = stack;
    return json;
  }

  ValueId operand(const Argument& argument) const {
    const auto id = operands_[static_cast<std::size_t>(argument.integer)];
    if (!id || !document_.isTensor(id)) refuse("a number that flows through the graph");
    return id;
  }

  OrderedJson argument(const Argument& a, const SchemaType& type) const {
    if (a.kind == Argument::Kind::list) return list(a, type);
    switch (a.kind) {
      case Argument::Kind::none: return {{"as_none", true}};
      case Argument::Kind::operand: return tensor(operand(a));
      case Argument::Kind::boolean: return {{"as_bool", a.integer != 0}};
      case Argument::Kind::integer:
        if (type.isReal()) return {{"as_float", static_cast<double>(a.integer)}};
        return {{"as_int", a.integer}};
      case Argument::Kind::real: return {{"as_float", realJson(a.real)}};
      case Argument::Kind::complex:
        return {{"as_complex", {{"real", realJson(a.real)}, {"imag", realJson(a.imaginary)}}}};
      case Argument::Kind::string: return {{"as_string", a.text}};
      case Argument::Kind::dtype: return {{"as_scalar_type", dtypeCode(static_cast<DType>(a.integer))}};
      case Argument::Kind::layout: return {{"as_layout", layoutCode(static_cast<Layout>(a.integer))}};
      case Argument::Kind::memoryFormat: return {{"as_memory_format", memoryFormatCode(a.integer)}};
      case Argument::Kind::device: return {{"as_device", deviceJson(a.text)}};
      default: refuse("an argument of its kind");
    }
  }

  OrderedJson list(const Argument& a, const SchemaType& type) const {
    auto items = OrderedJson::array();
    if (type.element == "Tensor") {
      for (const auto& item : a.items) {
        const bool none = item.kind == Argument::Kind::none;
        if (type.optionalElement) items.push_back(none ? OrderedJson{{"as_none", true}} : tensor(operand(item)));
        else items.push_back(name(operand(item)));
      }
      return {{type.optionalElement ? "as_optional_tensors" : "as_tensors", items}};
    }
    bool anyReal = type.isReal(), anyBool = type.element == "bool", anyText = type.element == "str";
    for (const auto& item : a.items) {
      if (!item.isNumber() && item.kind != Argument::Kind::string) refuse("a list of something other than numbers");
      anyReal |= item.kind == Argument::Kind::real;
    }
    for (const auto& item : a.items) {
      if (anyText) items.push_back(item.text);
      else if (anyBool) items.push_back(item.integer != 0);
      else if (anyReal) items.push_back(realJson(item.asDouble()));
      else items.push_back(item.integer);
    }
    return {{anyText ? "as_strings" : anyBool ? "as_bools" : anyReal ? "as_floats" : "as_ints", items}};
  }

  const ModelFile& model_;
  const Document& document_;
  std::span<const ValueId> operands_;
  OrderedJson values_ = OrderedJson::object();
};

}  // namespace

void writePt2(const ModelFile& model, const std::string& path) {
  const auto graph = GraphWriter(model).run().dump();
  const auto samples = sampleArchive(model, path);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  ZipWriter zip(path);
  zip.addStored("model/data/weights/model_weights_config.json", bytes(R"({"config": {}})"));
  zip.addStored("model/data/constants/model_constants_config.json", bytes(R"({"config": {}})"));
  zip.addStored("model/models/model.json", bytes(graph));
  zip.addStored("model/data/sample_inputs/model.pt", samples.span());
  zip.addStored("model/archive_format", bytes("pt2"));
  zip.addStored("model/archive_version", bytes("0"));
  zip.addStored("model/byteorder", bytes("little"));
  zip.addStored("model/version", bytes("3\n"));
  zip.commit();
}

}  // namespace retrograd
