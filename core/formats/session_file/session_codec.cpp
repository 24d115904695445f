#include "core/formats/session_file/session_codec.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/memory_account.h"
#include "core/base/tensor_meta.h"
#include "core/formats/pickle/pickle_tensors.h"

namespace retrograd::session {
namespace {

constexpr std::size_t maxRank = 64;  // as for the tensors of a .pt2 archive

constexpr EnumArray<Layout, std::string_view, 7> layoutNames{"strided",    "sparse",     "sparse_csr", "sparse_csc",
                                                             "sparse_bsr", "sparse_bsc", "mkldnn"};
constexpr EnumArray<Problem::Severity, std::string_view, 3> severityNames{"note", "warning", "error"};

bool isUtf8(std::string_view text) {
  // nlohmann refuses to dump what is not.
  try {
    Out(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  badInput("a hex text with other digits");
}

DType readDType(const Json& json) {
  const auto dtype = dtypeFromTorchName(json.text());
  if (!dtype) badInput("unknown dtype '" + std::string(json.text()) + "'");
  return *dtype;
}

Device readDevice(const Json& json) {
  const auto text = json.text();
  const auto device = deviceFromString(text);
  if (toString(device) != text) badInput("unknown device '" + std::string(text) + "'");
  return device;
}

/// JSON has neither NaN nor infinity.
Out realOut(double number) {
  if (std::isnan(number)) return {{"real", "NaN"}};
  if (std::isinf(number)) return {{"real", number > 0 ? "Infinity" : "-Infinity"}};
  return number;
}

Out partOut(double number) {
  const auto out = realOut(number);
  return out.is_object() ? out["real"] : out;
}

/// A literal that is an expression over the size symbols, with what it is at hand.
Out sizeOut(Out hint, const std::string& expression) {
  return {{"size", Out::array({std::move(hint), textOut(expression)})}};
}

Argument readSize(const Json& json) {
  Row row(json, 2);
  const Json& hint = row.next();
  auto number = hint.kind() == Json::Kind::integer ? Argument::ofInt(hint.integer()) : Argument::ofReal(hint.number());
  number.text = readText(row.next());
  return number;
}

std::vector<std::int64_t> readSizes(const Json& json) {
  std::vector<std::int64_t> sizes;
  if (json.items().size() > maxRank) badInput("a tensor of " + std::to_string(json.items().size()) + " dimensions");
  for (const auto& item : json.items()) sizes.push_back(readInteger(item, 0, std::numeric_limits<std::int64_t>::max()));
  return sizes;
}

bool flagIn(const Json& json, std::string_view key) {
  const Json* flag = json.find(key);
  return flag && flag->boolean();
}

}  // namespace

std::int64_t readInteger(const Json& json, std::int64_t low, std::int64_t high) {
  const auto n = json.integer();
  if (n < low || n > high)
    badInput(std::to_string(n) + " where a number from " + std::to_string(low) + " to " + std::to_string(high) +
             " is expected");
  return n;
}

Out textOut(std::string_view text) {
  if (isUtf8(text)) return text;
  static constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : text) {
    hex += digits[static_cast<unsigned char>(c) >> 4];
    hex += digits[static_cast<unsigned char>(c) & 15];
  }
  return {{"hex", hex}};
}

std::string readText(const Json& json) {
  if (!json.isObject()) return std::string(json.text());
  const auto hex = json.at("hex").text();
  if (hex.size() % 2) badInput("a hex text of odd length");
  std::string text;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    text += static_cast<char>(hexDigit(hex[i]) << 4 | hexDigit(hex[i + 1]));
  return text;
}

Out textsOut(const std::vector<std::string>& texts) {
  Out list = Out::array();
  for (const auto& text : texts) list.push_back(textOut(text));
  return list;
}

std::vector<std::string> readTexts(const Json& json) {
  std::vector<std::string> texts;
  for (const auto& item : json.items()) texts.push_back(readText(item));
  return texts;
}

Out metaOut(const TensorMeta& meta) {
  Out out{{"dtype", torchName(meta.dtype)},
          {"device", toString(meta.device)},
          {"sizes", meta.sizes},
          {"strides", meta.strides}};
  if (meta.layout != Layout::strided) out["layout"] = layoutNames[meta.layout];
  if (meta.offset != 0) out["offset"] = meta.offset;
  if (!meta.symbols.empty()) out["symbols"] = textsOut(meta.symbols);
  if (!meta.strideSymbols.empty()) out["stride_symbols"] = textsOut(meta.strideSymbols);
  if (!meta.offsetSymbol.empty()) out["offset_symbol"] = textOut(meta.offsetSymbol);
  if (meta.conjugate) out["conjugate"] = true;
  if (meta.negative) out["negative"] = true;
  if (meta.wrappedNumber) out["wrapped_number"] = true;
  return out;
}

TensorMeta readMeta(const Json& json) {
  TensorMeta meta;
  meta.dtype = readDType(json.at("dtype"));
  meta.device = readDevice(json.at("device"));
  meta.sizes = readSizes(json.at("sizes"));
  meta.strides = readSizes(json.at("strides"));
  if (const Json* layout = json.find("layout")) meta.layout = named(layoutNames, layout->text(), "layout");
  if (const Json* offset = json.find("offset"))
    meta.offset = readInteger(*offset, 0, std::numeric_limits<std::int64_t>::max());
  if (const Json* symbols = json.find("symbols")) meta.symbols = readTexts(*symbols);
  if (const Json* symbols = json.find("stride_symbols")) meta.strideSymbols = readTexts(*symbols);
  if (const Json* symbol = json.find("offset_symbol")) meta.offsetSymbol = readText(*symbol);
  meta.conjugate = flagIn(json, "conjugate");
  meta.negative = flagIn(json, "negative");
  meta.wrappedNumber = flagIn(json, "wrapped_number");
  const bool sparse = meta.layout != Layout::strided && meta.strides.empty();
  if (!sparse && meta.strides.size() != meta.sizes.size())
    badInput(std::to_string(meta.sizes.size()) + " sizes but " + std::to_string(meta.strides.size()) + " strides");
  for (const auto* symbols : {&meta.symbols, &meta.strideSymbols})
    if (!symbols->empty() && symbols->size() != meta.sizes.size()) badInput("not as many symbols as sizes");
  auto extent = meta;
  extent.strides.resize(extent.sizes.size());
  checkExtent(extent);
  return meta;
}

Out argumentOut(const Argument& argument) {
  using Kind = Argument::Kind;
  switch (argument.kind) {
    case Kind::none: return nullptr;
    case Kind::missing: return {{"missing", true}};
    case Kind::operand: return {{"operand", argument.integer}};
    case Kind::boolean: return argument.integer != 0;
    case Kind::integer: return argument.text.empty() ? Out(argument.integer) : sizeOut(argument.integer, argument.text);
    case Kind::real:
      return argument.text.empty() ? realOut(argument.real) : sizeOut(partOut(argument.real), argument.text);
    case Kind::complex: return {{"complex", {partOut(argument.real), partOut(argument.imaginary)}}};
    case Kind::string: return {{"text", textOut(argument.text)}};
    case Kind::dtype: return {{"dtype", torchName(static_cast<DType>(argument.integer))}};
    case Kind::layout: return {{"layout", layoutNames[static_cast<Layout>(argument.integer)]}};
    case Kind::memoryFormat: return {{"memory_format", argument.integer}};
    case Kind::device: return {{"device", textOut(argument.text)}};
    case Kind::list: break;
    case Kind::subgraph: return {{"subgraph", argument.integer}};
    case Kind::op: return {{"op", textOut(argument.text)}};
  }
  Out items = Out::array();
  for (const auto& item : argument.items) items.push_back(argumentOut(item));
  return {{argument.optionalList ? "optional_list" : "list", std::move(items)}};
}

Argument readArgument(const Json& json, std::size_t subgraphs) {
  switch (json.kind()) {
    case Json::Kind::null: return Argument::ofNone();
    case Json::Kind::boolean: return Argument::ofBool(json.boolean());
    case Json::Kind::integer: return Argument::ofInt(json.integer());
    case Json::Kind::real: return Argument::ofReal(json.number());
    default: break;
  }
  const auto& [key, value] = json.only();
  if (key == "missing") return Argument::ofMissing();
  if (key == "operand") return Argument::ofOperand(readInteger(value, 0, std::numeric_limits<std::uint16_t>::max()));
  if (key == "real") return Argument::ofReal(value.number());
  if (key == "size") return readSize(value);
  if (key == "complex") {
    Row parts(value, 2);
    const auto real = parts.next().number();
    return Argument::ofComplex(real, parts.next().number());
  }
  if (key == "text") return Argument::ofString(readText(value));
  if (key == "dtype") return Argument::ofDType(readDType(value));
  if (key == "layout") return Argument::ofLayout(named(layoutNames, value.text(), "layout"));
  if (key == "memory_format") return Argument::ofMemoryFormat(readInteger(value, 0, 3));
  if (key == "device") return Argument::ofDevice(readText(value));
  if (key == "op") return Argument::ofOp(readText(value));
  if (key == "subgraph")
    return Argument::ofSubgraph(SubgraphId(readInteger(value, 0, static_cast<std::int64_t>(subgraphs) - 1)));
  if (key != "list" && key != "optional_list") badInput("an argument of unknown kind '" + std::string(key) + "'");
  Argument list = Argument::ofList({});
  list.optionalList = key == "optional_list";
  chargeReading(2 * value.items().size() * sizeof(Argument));  // here and in the pattern that it becomes part of
  for (const auto& item : value.items()) list.items.push_back(readArgument(item, subgraphs));
  return list;
}

Out problemsOut(const std::vector<Problem>& problems) {
  Out list = Out::array();
  for (const auto& p : problems)
    list.push_back({{"severity", severityNames[p.severity]},
                    {"message", textOut(p.message)},
                    {"place", textOut(p.place)},
                    {"op", p.op}});
  return list;
}

std::vector<Problem> readProblems(const Json& json, std::size_t ops) {
  std::vector<Problem> problems;
  forEachRow(json, [&](const Json& entry) {
    problems.push_back({named(severityNames, entry.at("severity").text(), "severity"), readText(entry.at("message")),
                        readText(entry.at("place")), readId<BoundSymbolId>(entry.at("op"), ops).index});
  });
  return problems;
}

Row::Row(const Json& json, std::size_t cells) : cells_(json.items()) {
  if (cells_.size() != cells)
    badInput(std::to_string(cells_.size()) + " cells where " + std::to_string(cells) + " are expected");
}

void RowText::separate() {
  if (!text_.empty() && text_.back() != '[') text_ += ',';
}

RowText& RowText::open() {
  separate();
  text_ += '[';
  return *this;
}

RowText& RowText::close() {
  text_ += ']';
  return *this;
}

RowText& RowText::number(std::int64_t n) {
  separate();
  text_ += std::to_string(n);
  return *this;
}

std::string tensorRecord(std::size_t number) { return "tensors/" + std::to_string(number); }

Out TensorRecords::add(const TensorData& tensor) {
  const auto [it, isNew] = index_.try_emplace({tensor.data, tensor.bytes}, records_.size());
  if (isNew) records_.emplace_back(tensor.data, tensor.bytes);
  return {it->second, metaOut(tensor.meta)};
}

Out TensorRecords::reference(const TensorData& tensor) { return {nullptr, metaOut(tensor.meta)}; }

/// Records are aligned when written; another program that packed them again may have moved them.
const ByteRegion& TensorReader::region(std::size_t number) {
  auto [it, isNew] = regions_.try_emplace(number);
  auto& region = it->second;
  if (!isNew) return region;
  region = archive_->read(tensorRecord(number));
  constexpr std::uintptr_t largestItem = 16;
  if (reinterpret_cast<std::uintptr_t>(region.data) % largestItem != 0) {
    auto copy = std::make_shared<std::vector<std::byte>>(region.data, region.data + region.size);
    const auto* data = copy->data();
    region = {data, copy->size(), std::move(copy)};
  }
  return region;
}

TensorData TensorReader::read(const Json& json, bool mayRefer) {
  Row row(json, 2);
  const Json& record = row.next();
  TensorData tensor;
  tensor.meta = readMeta(row.next());
  if (tensor.meta.layout != Layout::strided) badInput("a sparse tensor; only strided ones are stored as plain bytes");
  if (record.isNull() && mayRefer) return tensor;
  const auto& bytes = region(readInteger(record, 0, std::numeric_limits<std::int32_t>::max()));
  checkReach(tensor.meta, bytes.size);
  tensor.data = bytes.data;
  tensor.bytes = bytes.size;
  tensor.owner = bytes.owner;
  return tensor;
}

}  // namespace retrograd::session
