#include "core/formats/session_file/session_file.h"
#include "core/formats/read/read_file.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/formats/kinds/file_kind.h"
#include "core/trace/print/json.h"
#include "core/trace/print/printer.h"
#include "tests/core/formats/cases.h"
#include "tests/core/formats/flipped_bits.h"
#include "tests/core/formats/session_file/session_builder.h"
#include "tests/core/formats/zip/zip_writer.h"

namespace retrograd {
namespace {

using test::SessionBuilder;
using test::stubLookup;

/// A file of these tests' own, and its content.
std::string place(const std::string& name) { return test::writeTemporary(name, "x"); }
std::string written(const SessionFile& session, const std::string& name = "written.retrograd") {
  const auto path = place(name);
  writeSessionFile(path, session);
  return path;
}
std::string builtByHand() {
  static const std::string bytes = test::contentOf(written(SessionBuilder().build()));
  return bytes;
}

/// Without a file, for the loops over many damaged archives.
SessionFile readInMemory(const std::string& bytes) {
  auto kept = std::make_shared<std::string>(bytes);
  const auto archive =
      Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "session");
  return readSessionRecords(archive, stubLookup, {});
}

/// The archive with one record changed, and right checksums around it.
std::string changed(const std::string& bytes, const std::string& record,
                    const std::function<std::string(std::string)>& change) {
  auto kept = std::make_shared<std::string>(bytes);
  const auto archive =
      Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "session");
  test::ZipContent content;
  for (const auto& entry : archive->entries()) {
    std::string text(archive->read(entry.name).text());
    content.emplace_back(entry.name, entry.name == record ? change(std::move(text)) : std::move(text));
  }
  return test::makeZip(content);
}

std::string refusal(const std::string& bytes) {
  try {
    readInMemory(bytes);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
    return e.what();
  }
  return "nothing was refused";
}

/// What is refused when `from` in a record becomes `to`.
std::string refusalOf(const std::string& record, const std::string& from, const std::string& to,
                      const std::string& bytes = builtByHand()) {
  EXPECT_NO_THROW(readInMemory(bytes));
  return refusal(changed(bytes, record, [&](std::string text) {
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  }));
}

void expectMentions(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

std::string bytesOf(const TensorData& tensor) { return {reinterpret_cast<const char*>(tensor.data), tensor.bytes}; }

void expectSame(const TensorData& a, const TensorData& b) {
  EXPECT_EQ(a.meta, b.meta);
  EXPECT_EQ(bytesOf(a), bytesOf(b));
}

TEST(SessionFile, savingWhatWasReadGivesTheSameBytes) {
  const auto first = written(SessionBuilder().build(), "first.retrograd");
  const auto second = written(readSessionFile(first, stubLookup), "second.retrograd");
  EXPECT_EQ(test::contentOf(first), test::contentOf(second));
}

TEST(SessionFile, keepsAllThatIsNotATable) {
  const auto before = SessionBuilder().build();
  const auto after = readSessionFile(written(before), stubLookup);
  EXPECT_TRUE(after.model.embedded);
  EXPECT_EQ(after.model.path, before.model.path);
  EXPECT_EQ(after.model.torchVersion, "2.15");
  EXPECT_EQ(after.model.guards, before.model.guards);
  EXPECT_EQ(after.inputSource, before.inputSource);
  EXPECT_EQ(after.mutated, before.mutated);
  EXPECT_EQ(after.gradients, before.gradients);
  EXPECT_EQ(after.dataDependent, before.dataDependent);
  EXPECT_EQ(after.seed, 0xfedcba9876543210);
  EXPECT_TRUE(after.minCut);
  EXPECT_EQ(after.budget, 4096);
  EXPECT_EQ(after.recompute, before.recompute);
  EXPECT_EQ(after.gradInputs, before.gradInputs);
  EXPECT_EQ(after.precision, DType::bf16);
  EXPECT_EQ(after.seconds, before.seconds);
  EXPECT_EQ(after.numbers, before.numbers);
  EXPECT_EQ(after.model.sampleNumbers, before.model.sampleNumbers);
  EXPECT_EQ(after.valueNumbers, before.valueNumbers);
  EXPECT_EQ(after.marks, before.marks);
  ASSERT_EQ(after.problems.size(), 1u);
  EXPECT_EQ(after.problems[0].message, "a note");
  EXPECT_EQ(after.problems[0].op, 0);
  expectSame(after.model.weights.at("w"), before.model.weights.at("w"));
  expectSame(after.inputs.at("x"), before.inputs.at("x"));
  expectSame(after.cotangents.at("0"), before.cotangents.at("0"));
  expectSame(after.constants.begin()->second, before.constants.begin()->second);
  expectSame(after.values.begin()->second, before.values.begin()->second);
}

TEST(SessionFile, keepsTheTracesWithTheirIds) {
  const auto before = SessionBuilder().build();
  const auto after = readSessionFile(written(before), stubLookup);
  const auto same = [&](const Trace& a, const Trace& b) {
    EXPECT_EQ(printTrace(*before.model.document, a), printTrace(*after.model.document, b));
    EXPECT_EQ(a.ops, b.ops);
    ASSERT_EQ(a.history.size(), b.history.size());
    for (std::size_t i = 0; i < a.history.size(); ++i) EXPECT_EQ(a.history[i].replaced, b.history[i].replaced);
  };
  same(before.model.computation.trace, after.model.computation.trace);
  same(before.joint, after.joint);
  same(before.forward, after.forward);
  same(before.backward, after.backward);
  const auto& sum = after.model.document->boundSymbol(after.joint.ops.back()).origin;
  EXPECT_EQ(sum.role, Role::accumulation);
  ASSERT_EQ(after.model.document->terms(sum).size(), 2u);
  EXPECT_EQ(after.model.document->terms(sum)[1], after.constants.begin()->first);
}

TEST(SessionFile, tensorsAreMappedAndAligned) {
  const auto path = written(SessionBuilder().build());
  const auto session = readSessionFile(path, stubLookup);
  for (const auto* tensor :
       {&session.model.weights.at("w"), &session.inputs.at("x"), &session.values.begin()->second}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor->data) % 64, 0u);
  }
  EXPECT_EQ(session.inputs.at("x").data, session.model.sampleInputs.at("x").data);  // one record for both
}

TEST(SessionFile, everyTestModelKeepsItsComputation) {
  for (const auto& path : test::filesBelow(test::data(), ".pt2")) {
    SessionFile before;
    before.model = readModelFile(path, stubLookup);
    before.model.embedded = true;
    const auto after = readSessionFile(written(before), stubLookup);
    EXPECT_EQ(printTrace(*before.model.document, before.model.computation.trace),
              printTrace(*after.model.document, after.model.computation.trace))
        << path;
    EXPECT_FALSE(after.derived());
    EXPECT_EQ(after.model.problems.size(), before.model.problems.size());
    for (const auto& [name, tensor] : before.model.weights) expectSame(tensor, after.model.weights.at(name));
  }
}

TEST(SessionFile, storedSessionsRead) {
  const auto paths = test::filesBelow(test::data().parent_path() / "sessions", ".retrograd");
  EXPECT_EQ(paths.size(), 3u);
  for (const auto& path : paths) EXPECT_TRUE(readSessionFile(path, stubLookup).derived()) << path;
}

TEST(SessionFile, textsNeedNotBeUtf8) {
  auto before = SessionBuilder().build();
  before.model.path = "/models/\xff\xfe.pt2";
  before.model.document->intern("caf\xe9");
  const auto after = readSessionFile(written(before), stubLookup);
  EXPECT_EQ(after.model.path, before.model.path);
  EXPECT_EQ(after.model.document->stringCount(), before.model.document->stringCount());
  EXPECT_EQ(after.model.document->text(StringId(static_cast<std::int64_t>(after.model.document->stringCount()) - 1)),
            "caf\xe9");
}

TEST(SessionFile, argumentsOfEveryKindComeBack) {
  auto before = SessionBuilder().build();
  const double infinity = std::numeric_limits<double>::infinity();
  Argument optional = Argument::ofList({Argument::ofNone()});
  optional.optionalList = true;
  const std::vector<Argument> arguments{Argument::ofNone(),
                                        Argument::ofMissing(),
                                        Argument::ofBool(true),
                                        Argument::ofInt(-3),
                                        Argument::ofReal(2),
                                        Argument::ofReal(-infinity),
                                        Argument::ofReal(-0.0),
                                        Argument::ofComplex(0.5, infinity),
                                        Argument::ofString("none"),
                                        Argument::ofDType(DType::bf16),
                                        Argument::ofLayout(Layout::sparseCsr),
                                        Argument::ofMemoryFormat(2),
                                        Argument::ofDevice("cuda:1"),
                                        Argument::ofOp("aten.add.Tensor"),
                                        Argument::ofList({Argument::ofInt(1), Argument::ofList({})}),
                                        optional};
  CallPattern pattern;
  pattern.arguments = arguments;
  pattern.names.assign(arguments.size(), "a");
  pattern.returns = {-1, 3};
  const auto id = before.model.document->internPattern(pattern);
  const auto after = readSessionFile(written(before), stubLookup);
  EXPECT_EQ(after.model.document->pattern(id), pattern);
  EXPECT_TRUE(std::signbit(after.model.document->pattern(id).arguments[6].real));
}

TEST(SessionFile, symbolicSizesComeBack) {
  auto before = SessionBuilder().build();
  auto& document = *before.model.document;
  document.setSizeSymbols({{"s0", 2, 1, 64}, {"s1", 3, 0, {}}});
  TensorMeta meta;
  meta.sizes = {2, 3};
  meta.strides = {3, 1};
  meta.symbols = {"s0", ""};
  meta.strideSymbols = {"s1", ""};
  meta.offsetSymbol = "s0 - 2";
  const auto metaId = document.internMeta(meta);
  CallPattern pattern;
  pattern.arguments = {Argument::ofInt(3), Argument::ofReal(0.5)};
  pattern.arguments[0].text = "s0 + 1";
  pattern.arguments[1].text = "1/s0";
  const auto patternId = document.internPattern(pattern);
  const auto number = document.addValue({});
  document.setSizeExpression(number, "2*s0");
  const auto after = readSessionFile(written(before), stubLookup);
  EXPECT_EQ(after.model.document->meta(metaId), meta);
  EXPECT_EQ(after.model.document->pattern(patternId), pattern);
  EXPECT_EQ(after.model.document->sizeExpression(number), "2*s0");
  const auto& symbols = after.model.document->sizeSymbols();
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "s0");
  EXPECT_EQ(symbols[0].hint, 2);
  EXPECT_EQ(symbols[0].least, 1);
  EXPECT_EQ(symbols[0].greatest, 64);
  EXPECT_FALSE(symbols[1].greatest);
}

TEST(SessionFile, isKnownByItsContent) {
  const auto path = written(SessionBuilder().build(), "no_ending");
  EXPECT_TRUE(isSessionFile(path));
  EXPECT_FALSE(isSessionFile((test::data() / "mlp/model.pt2").string()));
  EXPECT_FALSE(isSessionFile(test::writeTemporary("text", "mimetypeapplication/x-retrograd-session")));
  EXPECT_THROW(isSessionFile("/nonexistent"), Error);  // not "a model": what is a session would be derived again
  EXPECT_TRUE(isSessionFile(test::writeTemporary("packed", changed(test::contentOf(path), "", nullptr))));
  try {
    readModelFile(path, stubLookup);
    FAIL();
  } catch (const Error& e) {
    expectMentions(e.what(), "session of Retrograd");
  }
}

TEST(SessionFile, packedAgainWithoutAlignmentItStillReads) {
  const auto bytes = changed(builtByHand(), "", nullptr);
  const auto session = readInMemory(bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(session.model.weights.at("w").data) % 16, 0u);
  expectSame(session.model.weights.at("w"), SessionBuilder::tensor({2, 3}, 2));
}

TEST(SessionFile, aNewerFormatIsSaidToBeNewer) {
  expectMentions(refusalOf("session.json", "1", "2"), "written by a newer Retrograd, in format 2");
  expectMentions(refusalOf("session.json", "1", "0"), "unknown format");
}

TEST(SessionFile, anOpThatNoFileMayNameIsRefused) {
  expectMentions(refusalOf("document/symbols.json", "aten.sin.default", "aten.from_file.default"),
                 "aten.from_file.default");
  // Neither as an op unknown to LibTorch, which a session may hold but never run.
  const auto hidden = refusalOf("document/symbols.json", R"("aten.sin.default","known":true)",
                                R"("aten.from_file.default","known":false)");
  expectMentions(hidden, "aten.from_file.default");
}

TEST(SessionFile, aSchemaIsComparedNotBelieved) {
  expectMentions(refusalOf("document/symbols.json", "aten::sin(Tensor self)", "aten::sin(Tensor self, int n)"),
                 "another LibTorch");
}

TEST(SessionFile, effectsCannotBeHidden) {
  auto session = SessionBuilder().build();
  auto& document = *session.model.document;
  CallPattern pattern;
  pattern.arguments = {Argument::ofOperand(0), Argument::ofOperand(1), Argument::ofMissing()};
  pattern.operandCount = 2;
  BoundSymbol bound;
  bound.symbol = document.internSymbol(*stubLookup("aten.add_.Tensor"));
  bound.pattern = document.internPattern(pattern);
  bound.effects = effect::writes;
  const auto x = session.joint.inputs[0];
  document.addBoundSymbol(bound, std::vector{x, x}, std::vector{x});
  const auto bytes = test::contentOf(written(session));
  expectMentions(refusalOf("document/ops.json", "[0,0],[0],-1,-1,-1,-1,1,", "[0,0],[0],-1,-1,-1,-1,0,", bytes),
                 "effect");
}

TEST(SessionFile, refusesWhatDoesNotFitTogether) {
  expectMentions(refusalOf("document/ops.json", "[0,0,[0],[2]", "[9,0,[0],[2]"),
                 "document/ops.json: entry 0: 9 where a number from -1 to");
  expectMentions(refusalOf("document/ops.json", "[0,0,[0],[2]", "[0,0,[99],[2]"), "99");
  expectMentions(refusalOf("document/ops.json", "[0,0,[0],[2]", "[0,0,[2],[2]"), "before it is defined");
  expectMentions(refusalOf("document/ops.json", "[0,0,[0],[2]", "[0,0,[],[2]"), "holes");
  expectMentions(refusalOf("document/ops.json", "[0,0,[0],[2],-1", "[0,0,[0],[2],0"), "parents form a circle");
  expectMentions(refusalOf("document/strings.json", "\"w\"", "\"x\""), "is twice in the table");
  expectMentions(refusalOf("document/metas.json", "[2,3]", "[2,-3]"), "-3");
  expectMentions(refusalOf("document/metas.json", "[2,3]", "[4611686018427387904,4]"), "2^63");
  expectMentions(refusalOf("traces.json", R"("results":1)", R"("results":5)"), "more results than outputs");
  expectMentions(refusalOf("traces.json", R"("ops":[0,1,2])", R"("ops":[0,1,1])"), "lists an op twice");
  expectMentions(refusalOf("traces.json", R"("forward":3,)", R"("forward":2,)"), "halves");
  expectMentions(refusalOf("traces.json", R"("kind":"joint")", R"("kind":"forward")"), "is of kind");
  expectMentions(refusalOf("computation.json", R"("value":0)", R"("value":1)"), "not that of the trace");
  expectMentions(refusalOf("analysis.json", R"("inputs":[["x")", R"("inputs":[["z")"), "input x: is missing");
  expectMentions(refusalOf("analysis.json", R"([["0")", R"([["1")"), "cotangent of output 0: is missing");
  expectMentions(refusalOf("analysis.json", "\"18364758544493064720\"", "\"18446744073709551616\""), "is not a seed");
  expectMentions(refusalOf("model.json", R"("weights":[["w")", R"("weights":[["v")"), "'w': there is no data");
  expectMentions(refusalOf("model.json", R"("sizes":[2,3])", R"("sizes":[2,4])"), "the storage has 24 bytes");
  expectMentions(refusalOf("model.json", R"("sizes":[2,3],"strides":[3,1])", R"("sizes":[6],"strides":[1])"), "[6]");
  expectMentions(refusalOf("mimetype", "session", "ression"), "not a session file");
  expectMentions(refusalOf("marks/breakpoints.json", "[", "{"), "marks/breakpoints.json");
}

TEST(SessionFile, aMissingConstantIsRefused) {
  const auto bytes = builtByHand();
  const auto id = std::to_string(readInMemory(bytes).constants.begin()->first.index);
  expectMentions(refusalOf("analysis.json", "\"constants\":[[" + id, "\"constants\":[[0"), "is not a constant");
  expectMentions(refusal(changed(bytes, "analysis.json",
                                 [](std::string text) {
                                   const auto from = text.find("\"constants\""), to = text.find("\"mutated\"");
                                   return text.replace(from, to - from, "\"constants\":[],");
                                 })),
                 "constant");
}

/// Two conds with a body each, one next to the other.
std::string withBodies() {
  auto session = SessionBuilder().build();
  auto& document = *session.model.document;
  Symbol cond;
  cond.name = "higher_order.cond";
  cond.known = cond.isHigherOrder = true;
  for (const bool first : {true, false}) {
    CallPattern pattern;
    pattern.arguments = {Argument::ofSubgraph(document.addSubgraph({"body", {}, {}, {}, {}})), Argument::ofBool(first)};
    BoundSymbol bound;
    bound.symbol = document.internSymbol(cond);
    bound.pattern = document.internPattern(pattern);
    document.addBoundSymbol(bound, {}, {});
  }
  return test::contentOf(written(session));
}

TEST(SessionFile, bodiesThatHoldEachOtherAreRefused) {
  const auto bytes = withBodies();
  const auto last = std::to_string(readInMemory(bytes).model.document->boundSymbolCount() - 1);
  const auto circle = R"("ops":[)" + last + "]}]";
  expectMentions(refusalOf("document/subgraphs.json", R"("ops":[]}])", circle, bytes), "circle");
  expectMentions(refusalOf("document/patterns.json", R"({"subgraph":1})", R"({"subgraph":0})", bytes), "same body");
  expectMentions(refusalOf("document/patterns.json", R"({"subgraph":1})", R"({"subgraph":2})", bytes),
                 "a number from 0 to 1");
}

TEST(SessionFile, whatReadingWouldRefuseIsNotWritten) {
  auto session = SessionBuilder().build();
  session.constants.clear();
  EXPECT_THROW(written(session), Error);
}

TEST(SessionFile, marksMustBeJsonAndHavePlainNames) {
  auto session = SessionBuilder().build();
  session.marks["notes"] = "{";
  EXPECT_THROW(written(session), Error);
  session.marks = {{"../notes", "{}"}};
  EXPECT_THROW(written(session), Error);
}

TEST(SessionFile, whatCannotBeWrittenLeavesTheOldFile) {
  const auto path = written(SessionBuilder().build());
  const auto before = test::contentOf(path);
  auto session = SessionBuilder().build();
  session.marks["notes"] = "{";
  EXPECT_THROW(writeSessionFile(path, session), Error);
  EXPECT_EQ(test::contentOf(path), before);
  EXPECT_THROW(writeSessionFile("/no/such/folder/x.retrograd", SessionBuilder().build()), Error);
}

TEST(SessionFile, everyTruncationIsRefused) {
  const auto bytes = builtByHand();
  for (std::size_t n = 0; n < bytes.size(); n += 7) EXPECT_NE(refusal(bytes.substr(0, n)), "nothing was refused") << n;
}

/// All that a reader could get wrong, as one text.
std::string summary(const SessionFile& session) {
  std::string text;
  for (const auto* trace : {&session.model.computation.trace, &session.joint, &session.forward, &session.backward})
    text += printTrace(*session.model.document, *trace);
  for (const auto* map : {&session.model.weights, &session.inputs, &session.cotangents})
    for (const auto& [name, tensor] : *map) text += name + typeComment(tensor.meta) + bytesOf(tensor);
  return text;
}

TEST(SessionFile, flippedBitsGiveAnErrorOrTheSameSession) {
  test::expectFlippedBitsNoticed(builtByHand(), 13,
                                 [](const std::string& bytes) { return summary(readInMemory(bytes)); });
}

TEST(SessionFile, damagedJsonBehindRightChecksumsNeverCrashes) {
  const auto bytes = builtByHand();
  auto kept = std::make_shared<std::string>(bytes);
  const auto archive =
      Archive::open(ByteRegion{reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept}, "session");
  for (const auto& entry : archive->entries()) {
    if (!entry.name.ends_with(".json")) continue;
    const std::string json(archive->read(entry.name).text());
    for (std::size_t at = 0; at < json.size(); at += 17)
      for (const char c : {'0', '9', '"', ']', '-'}) {
        auto text = json;
        text[at] = c;
        try {
          const auto session = readInMemory(changed(bytes, entry.name, [&](std::string) { return text; }));
          summary(session);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::badInput) << e.what();
        }
      }
  }
}

TEST(SessionFile, canBeCancelled) {
  std::stop_source stop;
  stop.request_stop();
  try {
    readSessionFile(written(SessionBuilder().build()), stubLookup, Progress(stop.get_token(), {}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::cancelled);
  }
}

}  // namespace
}  // namespace retrograd
