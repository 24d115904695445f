#include "views/canvases/graph_export.h"

#include <QBuffer>
#include <QFontDatabase>
#include <QGuiApplication>
#include <QPageLayout>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/layout/dot_client.h"
#include "core/layout/scene.h"
#include "views/canvases/graph_grid.h"
#include "views/canvases/graph_paint.h"
#include "views/text/format.h"

namespace retrograd::views {
namespace {

constexpr double margin = 32;           // around the graph, canvas pixels
constexpr double leastLegend = 320;     // what lines of it may take though the graph is narrower
constexpr double longestPage = 14'400;  // points: what PDF readers show

/// What there is to paint, in canvas pixels: the graph with a margin, above it the names of the lanes, below it the
/// legend.
class Sheet {
 public:
  explicit Sheet(const GraphSheet& sheet) : sheet_(sheet), texts_(4000) {
    const auto bounds = toQt(scene().bounds);
    const GraphPainter unplaced(scene(), sheet_.look, lens_, texts_);
    legend_ = unplaced.legend(nullptr, {}, std::max(bounds.width(), leastLegend));
    const double top = margin + (scene().tree->ladder() ? lanesHeight : 0);
    lens_.origin = bounds.topLeft() - QPointF(margin, top);
    lens_.size = QSizeF(std::max(bounds.width(), legend_.width()) + 2 * margin,
                        bounds.height() + top + margin + (legend_.isEmpty() ? 0 : legend_.height() + margin / 2));
    lens_.cosmetic = false;
  }
  QSizeF size() const { return lens_.size; }
  std::size_t items() const { return scene().boxes.size() + scene().edges.size(); }

  void paint(QPainter& painter, const Progress& progress) {
    painter.fillRect(QRectF(QPointF(), lens_.size), sheet_.look.colors.canvas);
    painter.setRenderHint(QPainter::Antialiasing, true);
    std::vector<std::int32_t> boxes(scene().boxes.size()), edges(scene().edges.size());
    std::iota(boxes.begin(), boxes.end(), 0);
    std::iota(edges.begin(), edges.end(), 0);
    const GraphPainter paint(scene(), sheet_.look, lens_, texts_);
    paint.all(painter, boxes, edges, progress);
    paint.lanes(painter);
    if (!legend_.isEmpty())
      paint.legend(&painter, QPointF(margin, lens_.size.height() - margin), lens_.size.width() - 2 * margin);
  }

 private:
  const layout::Scene& scene() const { return sheet_.picture->scene; }

  const GraphSheet& sheet_;
  GraphLens lens_;
  GraphTexts texts_;
  QSizeF legend_;
};

QString sizeText(const QSizeF& size) {
  return tr("%1 by %2 pixels").arg(std::ceil(size.width())).arg(std::ceil(size.height()));
}

[[noreturn]] void tooLarge(const QString& what) {
  throw Error(
      ErrorCode::badUse,
      what.toStdString() + "; close groups (leave out --open-all, name modules with --open), or export another trace",
      "graph");
}

void writeOut(const QByteArray& bytes, ExportSink& sink, const Progress& progress) {
  constexpr qsizetype most = 1 << 20;
  for (qsizetype at = 0; at < bytes.size(); at += most) {
    progress.check();
    sink.write(std::string_view(bytes.constData() + at, static_cast<std::size_t>(std::min(most, bytes.size() - at))));
  }
}

QByteArray drawSvg(Sheet& sheet, const QString& title, const Progress& progress) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&buffer);
  generator.setResolution(96);  // units are pixels, as they are on the canvas
  const auto size = sheet.size();
  generator.setSize(QSize(static_cast<int>(std::ceil(size.width())), static_cast<int>(std::ceil(size.height()))));
  generator.setViewBox(QRectF(QPointF(), size));
  generator.setTitle(title);
  generator.setDescription(tr("Drawn by Retrograd"));
  QPainter painter(&generator);
  sheet.paint(painter, progress);
  painter.end();
  auto text = buffer.data();
  // Where a font is not there, one of its kind.
  text.replace(QByteArray("font-family=\"") + Theme::codeFont().family().toUtf8() + '"',
               "font-family=\"'" + Theme::codeFont().family().toUtf8() + "', monospace\"");
  text.replace("font-family=\"Sans Serif\"", "font-family=\"sans-serif\"");
  return text;
}

QByteArray drawPdf(Sheet& sheet, const QString& title, const Progress& progress) {
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  QPdfWriter writer(&buffer);
  constexpr int resolution = 288;  // units an inch; lines and text are exact whatever it is
  writer.setResolution(resolution);
  writer.setTitle(title);
  writer.setCreator(QStringLiteral("Retrograd"));
  // A pixel of the canvas is three quarters of a point, unless the page would be longer than readers show.
  const auto size = sheet.size() * 0.75;
  const double fit = std::min(1.0, longestPage / std::max(size.width(), size.height()));
  writer.setPageLayout(
      QPageLayout(QPageSize(size * fit, QPageSize::Point, QStringLiteral("graph"), QPageSize::ExactMatch),
                  QPageLayout::Portrait, QMarginsF()));
  QPainter painter(&writer);
  const double scale = fit * 0.75 * resolution / 72;
  painter.scale(scale, scale);
  sheet.paint(painter, progress);
  painter.end();
  return buffer.data();
}

QByteArray drawPng(Sheet& sheet, double scale, const Progress& progress) {
  const auto size = sheet.size() * scale;
  const double fit = std::min(1.0, std::sqrt(mostPixels / (size.width() * size.height())));
  if (fit < 1 && scale * fit < leastScale)
    tooLarge(tr("a picture of %1 has too many pixels, and smaller its text could not be read; write an SVG or a PDF")
                 .arg(sizeText(size)));
  const double factor = scale * fit;
  QImage image((sheet.size() * factor).toSize().expandedTo({1, 1}), QImage::Format_RGB32);
  if (image.isNull()) tooLarge(tr("there is no memory for a picture of %1").arg(sizeText(size * fit)));
  QPainter painter(&image);
  painter.scale(factor, factor);
  sheet.paint(painter, progress);
  painter.end();
  progress.check();
  QBuffer buffer;
  buffer.open(QIODevice::WriteOnly);
  if (!image.save(&buffer, "PNG")) throw Error(ErrorCode::io, "the picture cannot be encoded", "graph");
  return buffer.data();
}

/// Fonts need an application; a subcommand has none, and no display either.
void ensureApplication() {
  if (QCoreApplication::instance()) return;
  qputenv("QT_QPA_PLATFORM", "offscreen");
  qInstallMessageHandler(
      [](QtMsgType, const QMessageLogContext&, const QString&) {});  // what this platform has to say concerns nobody
  static int argc = 1;
  static char name[] = "retrograd";
  static char* argv[] = {name, nullptr};
  static QGuiApplication application(argc, argv);
}

void render(const ExportRequest& request, DrawingFormat format, ExportSink& sink, const Progress& progress) {
  ensureApplication();
  drawSheet(layOutSheet(request, progress), format, request.drawing.scale, sink, progress);
}

const bool registered = (setGraphRenderer(render), true);

}  // namespace

GraphSheet layOutSheet(const ExportRequest& request, const Progress& progress) {
  const auto& analysis = request.analysis;
  const auto& trace = *request.traces.front();
  auto tree = std::make_shared<const layout::GraphTree>(
      layout::buildTree(*analysis.document, trace, &analysis.computation(), progress));
  auto open = request.drawing.openAll ? layout::allOpen(*tree) : layout::openingFolds(*tree);
  for (const auto& module : request.drawing.open)
    if (!layout::openModule(*tree, open, module))
      throw Error(ErrorCode::badUse, "no op of this trace is in such a module; give its path, as 'h.3.attn'",
                  "--open " + module);
  layout::DotClient dot;
  layout::Shaper shaper(std::move(tree), [&dot](const layout::LayerGraph& graph, const Progress& p) {
    return layout::bestLayering(dot, graph, p);
  });
  auto picture = std::make_shared<GraphPicture>();
  picture->scene = layout::makeScene(shaper, open, progress);
  GraphSheet sheet{
      std::move(picture), graphLook(request.drawing.dark),
      toQt(std::filesystem::path(analysis.file.path).filename().string() + ": " + std::string(name(trace.kind)))};
  sheet.look.plain = sheet.look.detail;
  return sheet;
}

void drawSheet(const GraphSheet& graph, DrawingFormat format, double scale, ExportSink& sink,
               const Progress& progress) {
  if (QFontDatabase::families().isEmpty())
    throw Error(ErrorCode::badUse,
                "no font is installed (such as fonts-dejavu-core), so that nothing could be written in the boxes",
                "graph");
  if (graph.picture->scene.boxes.empty()) throw Error(ErrorCode::badUse, "the trace has no ops to draw", "graph");
  Sheet sheet(graph);
  if (format != DrawingFormat::png && sheet.items() > mostDrawn)
    tooLarge(tr("%1 boxes and lines are more than the %2 that programs for SVG and PDF show well")
                 .arg(sheet.items())
                 .arg(mostDrawn));
  QByteArray bytes;
  switch (format) {
    case DrawingFormat::svg: bytes = drawSvg(sheet, graph.title, progress); break;
    case DrawingFormat::png: bytes = drawPng(sheet, scale, progress); break;
    case DrawingFormat::pdf: bytes = drawPdf(sheet, graph.title, progress); break;
  }
  writeOut(bytes, sink, progress);
}

}  // namespace retrograd::views
