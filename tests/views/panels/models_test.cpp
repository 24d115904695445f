#include <QAbstractItemModelTester>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <cstring>

#include "core/derivation/gradient_of.h"
#include "core/questions/partition_wishes.h"
#include "tests/views/synthetic.h"
#include "tests/views/test_program.h"
#include "views/content/fold_rows.h"
#include "views/models/breakpoints_model.h"
#include "views/models/inputs_model.h"
#include "views/models/inspector_model.h"
#include "views/models/modules_model.h"
#include "views/models/nan_model.h"
#include "views/models/problems_model.h"
#include "views/models/slice_model.h"
#include "views/models/values_model.h"
#include "views/models/why_model.h"
#include "views/text/format.h"
#include "views/text/line_text.h"
#include "views/theme/color_scale.h"

namespace retrograd::views {

/// Item models and the integer vectors behind listings, without widgets.
class ModelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void inspectorShowsTheOrigin();
  void inspectorSaysWhatAnOpComputes();
  void symbolicSizesAreShown();
  void valuesFollowAReport();
  void sliceReadsTheLastTwoDims();
  void elementsOfEveryDtype();
  void colorsAreDistinguishedByLightness();
  void modulesCountOps();
  void problemsAreWorstFirst();
  void breakpointsShowWhereAndWhen();
  void whyShowsReadersAndTheWayOut();
  void whyOfABackwardValueLeadsToTheForward();
  void nanWayMarksItsRoot();
  void inputsChooseGradients();
  void foldingHidesAndReveals();
  void modulesNestInListings();
  void linesAreSplitIntoTokens();
};

namespace {

std::shared_ptr<const OpenDocument> openDocument(int layers) {
  auto document = std::make_shared<OpenDocument>();
  document->analysis = syntheticAnalysis(layers);
  for (auto kind : {TraceKind::computation, TraceKind::joint, TraceKind::forward, TraceKind::backward})
    document->traces[kind] = indexTrace(document->analysis, kind);
  document->saved = savedValues(*document->analysis);
  document->program = Program(document->analysis);
  return document;
}

using Tester = QAbstractItemModelTester;
constexpr auto fatal = Tester::FailureReportingMode::QtTest;

/// What is next to a label below a section: its text, or what another role has.
QString textOf(const QAbstractItemModel& model, const QString& section, const QString& label,
               int role = Qt::DisplayRole) {
  for (int row = 0; row < model.rowCount(); ++row) {
    const auto parent = model.index(row, 0);
    if (parent.data().toString() != section) continue;
    for (int child = 0; child < model.rowCount(parent); ++child)
      if (model.index(child, 0, parent).data().toString() == label)
        return model.index(child, 1, parent).data(role).toString();
  }
  return {};
}

}  // namespace

void ModelsTest::inspectorShowsTheOrigin() {
  InspectorModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(3);
  const auto op = document->analysis->backward.ops[2];  // mm: gradient of the last linear's input
  model.show(document, op);
  QCOMPARE(textOf(model, QStringLiteral("Origin"), QStringLiteral("role")), QStringLiteral("gradient"));
  QVERIFY(textOf(model, QStringLiteral("Origin"), QStringLiteral("operation"))
              .contains(QStringLiteral("  linear_2 = aten.linear(")));
  QVERIFY(textOf(model, QStringLiteral("Origin"), QStringLiteral("operand")).startsWith(QStringLiteral("self:")));
  // One number of the op is in sight; the tooltip has its place in the backward.
  QCOMPARE(textOf(model, QStringLiteral("Op"), QStringLiteral("number")), QStringLiteral("#%1").arg(op.index));
  QCOMPARE(textOf(model, QStringLiteral("Op"), QStringLiteral("runs")), QStringLiteral("in the backward"));
  QVERIFY(textOf(model, QStringLiteral("Op"), QStringLiteral("runs"), Qt::ToolTipRole)
              .endsWith(QStringLiteral("backward 3/18")));
  QVERIFY(textOf(model, QStringLiteral("Source"), QStringLiteral("model.py:33")).contains(QStringLiteral("relu")));
  model.show(document, document->analysis->forward.ops[2]);  // a saved relu
  const auto last = model.rowCount();
  QVERIFY(last >= 5);
  model.show(nullptr, {});
  QCOMPARE(model.rowCount(), 0);
}

void ModelsTest::inspectorSaysWhatAnOpComputes() {
  InspectorModel model;
  const auto document = openDocument(1);
  const auto& tables = *document->analysis->document;
  int formulas = 0;
  for (const auto op : document->analysis->joint.ops) {
    model.show(document, op);
    const auto text = textOf(model, QStringLiteral("Formula"), QStringLiteral("result"));
    const bool isKernel = tables.opName(op).find("threshold_backward") != std::string::npos;
    QCOMPARE(text, isKernel ? QStringLiteral("grad_output * (self > threshold)") : QString());
    formulas += isKernel;
  }
  QVERIFY(formulas > 0);
}

void ModelsTest::symbolicSizesAreShown() {
  const auto plain = openDocument(1);
  auto document = std::make_shared<Document>(*plain->analysis->document);
  auto analysis = std::make_shared<Analysis>(*plain->analysis);
  const auto op = analysis->forward.ops[0];
  const auto output = document->outputs(op)[0];
  auto meta = document->meta(output);
  meta.symbols.resize(meta.sizes.size());
  meta.symbols[0] = "2*s7";
  document->value(output).meta = document->internMeta(meta);
  auto pattern = document->pattern(document->boundSymbol(op).pattern);
  pattern.arguments.push_back(Argument::ofInt(12));
  pattern.arguments.back().text = "s7 + 4";
  document->boundSymbol(op).pattern = document->internPattern(pattern);
  document->setSizeSymbols({{"s7", 8, 2, 64}});
  analysis->document = document;
  auto open = std::make_shared<OpenDocument>(*plain);
  open->analysis = analysis;
  const auto line = lineOf(*document, op, nullptr, true, true).text;
  QVERIFY2(line.contains(QStringLiteral("s7 + 4)")), qPrintable(line));
  QVERIFY2(line.contains(QStringLiteral("[2*s7=%1").arg(meta.sizes[0])), qPrintable(line));
  InspectorModel model;
  model.show(open, op);
  QCOMPARE(textOf(model, QStringLiteral("Op"), QStringLiteral("size")),
           QStringLiteral("s7: 8, symbolic size in [2, 64]"));
}

void ModelsTest::valuesFollowAReport() {
  ValuesModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(2);
  FakeRunner runner(document->analysis);
  const auto op = document->analysis->forward.ops[1];
  model.expect(document, op);
  QCOMPARE(model.rowCount(), 4);
  runner.runTo(2, {});
  QSignalSpy changed(&model, &QAbstractItemModel::dataChanged), reset(&model, &QAbstractItemModel::modelReset);
  model.setReport(std::make_shared<ValueReport>(reportValues(runner, *document->analysis, {op}, {})));
  QCOMPARE(changed.count(), 1);
  QCOMPARE(reset.count(), 0);
  QCOMPARE(model.index(3, ValuesModel::state).data().toString(), QStringLiteral("present"));
  QVERIFY(!model.index(3, ValuesModel::norm).data().toString().isEmpty());
}

void ModelsTest::sliceReadsTheLastTwoDims() {
  SliceModel model;
  Tester tester(&model, fatal);
  auto numbers = std::make_shared<std::vector<std::int32_t>>();
  for (int i = 0; i < 2 * 3 * 4; ++i) numbers->push_back(i);
  TensorData data;
  data.meta.dtype = DType::i32;
  data.meta.sizes = {2, 3, 4};
  data.data = reinterpret_cast<const std::byte*>(numbers->data());
  data.owner = numbers;
  model.setData(data);
  QCOMPARE(model.rowCount(), 3);
  QCOMPARE(model.columnCount(), 4);
  QCOMPARE(model.index(1, 2).data().toString(), QStringLiteral("6"));
  model.setLeading(0, 1);
  QCOMPARE(model.index(1, 2).data().toString(), QStringLiteral("18"));
  data.meta.sizes = {};
  model.setData(data);
  QCOMPARE(model.index(0, 0).data().toString(), QStringLiteral("0"));
  data.meta.sizes = {0, 4};
  model.setData(data);
  QCOMPARE(model.rowCount(), 0);
}

void ModelsTest::elementsOfEveryDtype() {
  const auto text = [](DType dtype, std::vector<std::uint8_t> bytes) {
    TensorData data;
    data.meta.dtype = dtype;
    data.data = reinterpret_cast<const std::byte*>(bytes.data());
    return elementText(data, 0);
  };
  QCOMPARE(text(DType::f16, {0x00, 0x3c}), QStringLiteral("1"));
  QCOMPARE(text(DType::f16, {0x00, 0xfc}), QStringLiteral("-inf"));
  QCOMPARE(text(DType::bf16, {0x80, 0x3f}), QStringLiteral("1"));
  QCOMPARE(text(DType::f8e4m3fn, {0x38}), QStringLiteral("1"));
  QCOMPARE(text(DType::f8e4m3fn, {0x7e}), QStringLiteral("448"));
  QCOMPARE(text(DType::f8e4m3fn, {0x7f}), QStringLiteral("nan"));
  QCOMPARE(text(DType::f8e5m2, {0x3c}), QStringLiteral("1"));
  QCOMPARE(text(DType::f8e5m2, {0x7c}), QStringLiteral("inf"));
  QCOMPARE(text(DType::f8e8m0fnu, {0x80}), QStringLiteral("2"));
  QCOMPARE(text(DType::b8, {1}), QStringLiteral("True"));
  QCOMPARE(text(DType::i8, {0xff}), QStringLiteral("-1"));
  QCOMPARE(text(DType::c64, {0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf}), QStringLiteral("1-1j"));
  QCOMPARE(text(DType::u64, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), QStringLiteral("18446744073709551615"));
}

void ModelsTest::colorsAreDistinguishedByLightness() {
  const auto lightness = [](QRgb color) { return qGray(color); };
  const ColorScale positive(0, 10);
  QVERIFY(!positive.hasZero());
  for (int i = 0; i < 10; ++i) QVERIFY(lightness(positive.color(i)) < lightness(positive.color(i + 1)));
  QCOMPARE(positive.color(-5), positive.color(0));
  QCOMPARE(positive.color(INFINITY), positive.color(10));
  const ColorScale both(-2, 4);
  QVERIFY(both.hasZero());
  QCOMPARE(both.color(0), qRgb(247, 247, 247));
  QVERIFY(qBlue(both.color(-4)) > qRed(both.color(-4)));
  QVERIFY(qRed(both.color(4)) > qBlue(both.color(4)));
  QVERIFY(lightness(both.color(-2)) >
          lightness(both.color(-4)));  // equal steps from zero look alike: -2 is not the darkest
  QCOMPARE(positive.color(NAN), qRgb(0, 0, 0));
  QCOMPARE(ColorScale(3, 3).color(3), ColorScale(3, 3).color(7));
}

void ModelsTest::modulesCountOps() {
  ModulesModel model;
  Tester tester(&model, fatal);
  model.show(ModulesModel::modulesOf(*openDocument(3)));
  const auto layer = model.find(QStringLiteral("layers.1"));
  QVERIFY(layer.isValid());
  QCOMPARE(layer.siblingAtColumn(ModulesModel::ops).data().toInt(), 9);
  QVERIFY(layer.data(Qt::ToolTipRole).toString().contains(QStringLiteral("3 forward ops, 6 backward ops")));
  QCOMPARE(model.rowCount(layer), 1);
  QVERIFY(!model.find(QStringLiteral("layers.9")).isValid());
  QVERIFY(layer.data(opRole).toInt() >= 0);
}

void ModelsTest::problemsAreWorstFirst() {
  ProblemsModel model;
  Tester tester(&model, fatal);
  model.setDocument(openDocument(1));
  QCOMPARE(model.rowCount(), 1);
  model.setRunProblem(QStringLiteral("out of memory"), BoundSymbolId(4));
  QCOMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, 2).data().toString(), QStringLiteral("out of memory"));
  QCOMPARE(model.index(0, 0).data(opRole).toInt(), 4);
  model.setRunProblem({}, {});
  QCOMPARE(model.rowCount(), 1);
}

void ModelsTest::breakpointsShowWhereAndWhen() {
  BreakpointsModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(2);
  const auto& analysis = *document->analysis;
  const auto nan = parseBreakpoint(analysis, "kind mm if norm > 2.5 after 3");
  Breakpoint plain;
  plain.op = analysis.backward.ops[3];
  model.set(document, {nan, plain});
  QCOMPARE(model.rowCount(), 2);
  const auto text = [&](int row, BreakpointsModel::Column column) {
    return model.index(row, column).data().toString();
  };
  QCOMPARE(text(0, BreakpointsModel::where), QStringLiteral("every mm"));
  QCOMPARE(text(0, BreakpointsModel::condition), QStringLiteral("norm > 2.5"));
  QCOMPARE(text(1, BreakpointsModel::where), QStringLiteral("#%1 backward").arg(plain.op.index));
  QCOMPARE(model.placeOf(1), plain.op);
  QCOMPARE(model.placeOf(0), analysis.backward.ops[2]);
  model.setHits({5, 1});
  QCOMPARE(text(0, BreakpointsModel::hits), QStringLiteral("5, first 3 pass"));
  QCOMPARE(text(1, BreakpointsModel::hits), QStringLiteral("1"));
  // The box asks; whoever owns the breakpoints switches them.
  QSignalSpy asked(&model, &BreakpointsModel::enableRequested), reset(&model, &QAbstractItemModel::modelReset);
  QVERIFY(model.setData(model.index(1, 0), Qt::Unchecked, Qt::CheckStateRole));
  QCOMPARE(asked.count(), 1);
  QCOMPARE(asked[0][1].toBool(), false);
  plain.enabled = false;
  model.set(document, {nan, plain});
  QCOMPARE(model.index(1, 0).data(Qt::CheckStateRole).toInt(), static_cast<int>(Qt::Unchecked));
  QCOMPARE(reset.count(), 0);
  model.set(nullptr, {});
  QCOMPARE(model.rowCount(), 0);
}

void ModelsTest::whyShowsReadersAndTheWayOut() {
  WhyModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(2);
  const auto& analysis = *document->analysis;
  const auto relu = analysis.forward.ops[2];  // saved; threshold_backward and the second layer's mm read it
  const auto value = analysis.document->outputs(relu)[0];
  model.show(document, reportWhy(*document, relu, value, {}));
  QCOMPARE(model.rowCount(), 1);
  const auto section = model.index(0, 0);
  QVERIFY(section.siblingAtColumn(1).data().toString().contains(QStringLiteral("320 B")));
  QStringList labels;
  for (int row = 0; row < model.rowCount(section); ++row) labels << model.index(row, 0, section).data().toString();
  QCOMPARE(labels.filter(QStringLiteral("read as")).size(), 2);
  const auto instead = model.index(static_cast<int>(labels.indexOf(QStringLiteral("instead"))), 0, section);
  QVERIFY(instead.isValid());
  QVERIFY(instead.siblingAtColumn(1).data().toString().startsWith(QStringLiteral("recompute it: 1 op")));
  // The plan leads to what the partition is asked for, and the wish to save it takes that back.
  const auto partition = recomputing(analysis, value);
  QCOMPARE(partition.recompute, std::vector<std::string>{"#relu"});
  auto other = analysis;
  other.request.partition = partition;
  other.request.partition.recompute.push_back("#relu_1");
  QCOMPARE(saving(other, relu).recompute, std::vector<std::string>{"#relu_1"});
  model.show(nullptr, {});
  QCOMPARE(model.rowCount(), 0);
}

// Nothing saves what the backward makes: Why says what it is, and leads to the op that it comes from.
void ModelsTest::whyOfABackwardValueLeadsToTheForward() {
  WhyModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(2);
  const auto& analysis = *document->analysis;
  const auto& tables = *analysis.document;
  for (const auto op : analysis.backward.ops) {
    const auto value = tables.outputs(op)[0];
    model.show(document, reportWhy(*document, op, value, {}));
    const auto section = model.index(0, 0);
    const auto what = section.siblingAtColumn(1).data().toString();
    const auto of = valueOfGradient(analysis, value);
    QCOMPARE(what.startsWith(QStringLiteral("the gradient of ")), of.valid());
    if (of) QVERIFY2(what.endsWith(toQt(tables.displayName(of))), qPrintable(what));
    QSet<QString> labels;
    for (int row = 0; row < model.rowCount(section); ++row) {
      const auto index = model.index(row, 0, section);
      labels << index.data().toString();
      if (index.data().toString() == QLatin1String("forward op")) {
        const auto forward = BoundSymbolId(index.data(opRole).toInt());
        QCOMPARE(OriginLinks::origin(tables, forward), OriginLinks::origin(tables, op));
        QVERIFY(!isBackwardRole(tables.boundSymbol(forward).origin.role));
      }
    }
    QCOMPARE(labels.contains(QStringLiteral("forward op")), OriginLinks::origin(tables, op).valid());
    QVERIFY(labels.contains(QStringLiteral("made by")) && labels.contains(QStringLiteral("made from")));
  }
}

void ModelsTest::nanWayMarksItsRoot() {
  NanModel model;
  Tester tester(&model, fatal);
  const auto document = openDocument(2);
  const auto& analysis = *document->analysis;
  FakeEngine engine;
  engine.badAt = 4;
  const auto walk = walkNan({*document, engine, nullptr}, {}, {});
  QCOMPARE(walk.root, analysis.forward.ops[3]);
  model.show(document, walk);
  QCOMPARE(model.rowCount(), 2);
  QCOMPARE(model.index(0, 0).data(opRole).toInt(), walk.root.index);
  const auto way = model.index(1, 0);
  QCOMPARE(model.rowCount(way), static_cast<int>(walk.path.size()));
  QVERIFY(!model.index(0, 0, way).data().toString().contains(QStringLiteral("root")));
  QVERIFY(model.index(model.rowCount(way) - 1, 0, way).data().toString().contains(QStringLiteral("root")));
  engine.badAt = -1;
  QVERIFY(walkNan({*document, engine, nullptr}, {}, {}).path.empty());
}

void ModelsTest::inputsChooseGradients() {
  const auto document = openDocument(1);
  InputsModel model(*document);
  Tester tester(&model, fatal);
  QCOMPARE(model.rowCount(), 1);  // parameters are not asked for
  QVERIFY(!model.gradInputs().has_value());
  const auto cell = model.index(0, InputsModel::gradient);
  QVERIFY(model.setData(cell, Qt::Unchecked, Qt::CheckStateRole));
  QVERIFY(model.gradInputs().has_value() && model.gradInputs()->empty());
  QCOMPARE(model.index(0, InputsModel::source).data().toString(), QStringLiteral("drawn from seed 0"));
}

void ModelsTest::foldingHidesAndReveals() {
  const auto index = indexTrace(syntheticAnalysis(2), TraceKind::forward);
  const auto& outline = index->outline(Grouping::operation);
  // header, t, addmm, relu; twice
  QCOMPARE(outline.rows(), 8);
  FoldRows rows(&outline);
  QCOMPARE(rows.count(), 8);
  rows.setFolded(0, true);
  QCOMPARE(rows.count(), 6);
  QCOMPARE(rows.visibleOf(2), 0);  // hidden: its header represents it
  QCOMPARE(rows.rowAt(1), 3);
  QVERIFY(rows.reveal(2));
  QCOMPARE(rows.visibleOf(2), 2);
  rows.setAllFolded(true);
  QCOMPARE(rows.count(), 4);
  rows.setFolded(3, true);  // a relu has nothing to fold
  QCOMPARE(rows.count(), 4);
}

void ModelsTest::modulesNestInListings() {
  const auto index = indexTrace(syntheticAnalysis(2), TraceKind::forward);
  const auto& outline = index->outline(Grouping::module);
  QStringList headers;
  for (int row = 0; row < outline.rows(); ++row)
    if (outline.isHeader(row))
      headers << lineOfHeader(index->document(), outline.header(row)).text.section(QStringLiteral("  "), 0, 0);
  const QStringList expected{QStringLiteral("layers"),  QStringLiteral("layers.0"), QStringLiteral("layers.0.linear"),
                             QStringLiteral("linear"),  QStringLiteral("layers.1"), QStringLiteral("layers.1.linear"),
                             QStringLiteral("linear_1")};
  QCOMPARE(headers, expected);
  QCOMPARE(outline.header(0).ops, 6);
  QCOMPARE(outline.end[0], outline.rows());
  for (std::size_t line = 0; line < index->lines.size(); ++line)
    QCOMPARE(outline.item[static_cast<std::size_t>(outline.rowOfLine[line])], static_cast<int>(line));
}

void ModelsTest::linesAreSplitIntoTokens() {
  const auto analysis = syntheticAnalysis(2);
  const auto& document = *analysis->document;
  const auto op = analysis->backward.ops[0];
  const auto saved = savedValues(*analysis);
  const auto line = lineOf(document, op, &saved, true);
  QVERIFY(line.text.contains(QStringLiteral("= aten.threshold_backward(cotangent, ")));
  QVERIFY(line.text.endsWith(QStringLiteral("forward: relu_1")));
  int end = 0;
  std::map<TokenKind, int> kinds;
  for (const auto& token : line.tokens) {
    QCOMPARE(token.begin, end);
    end += token.length;
    ++kinds[token.kind];
    if (token.kind == TokenKind::value)
      QCOMPARE(QString::fromStdString(document.displayName(token.value)), line.text.mid(token.begin, token.length));
  }
  QCOMPARE(end, static_cast<int>(line.text.size()));
  QCOMPARE(kinds[TokenKind::op], 1);
  QCOMPARE(kinds[TokenKind::value], 3);
  QCOMPARE(kinds[TokenKind::literal], 1);
  QCOMPARE(kinds[TokenKind::comment], 1);
  QVERIFY(
      lineOf(document, op, &saved, false).text.contains(QStringLiteral("torch.ops.aten.threshold_backward.default(")));
}

}  // namespace retrograd::views

WINDOW_TEST(retrograd::views::ModelsTest)
#include "models_test.moc"
