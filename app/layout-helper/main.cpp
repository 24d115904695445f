// retrograd-layout: the process in which Graphviz lives. It has no threads, cannot be interrupted and aborts on some
// graphs, so it is kept apart: one request at a time over stdin and stdout, killed to cancel. docs/graph.md describes
// the lines.
#include <graphviz/gvc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RETROGRAD_ADDRESS_SANITIZER
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }  // Graphviz keeps some of what it takes
#endif
#endif

namespace {

constexpr rlim_t mostMemory = 1ull << 30;
constexpr int mostNodes = 2'000, mostEdges = 20'000;
constexpr unsigned mostSeconds = 20;  // for one graph, should nobody be there any more who kills this process
constexpr int passage = 1;            // Graphviz's VIRTUAL, in a header that is not installed

struct Request {
  struct Node {
    double width, height;  // inches
  };
  struct Edge {
    int from, to;
  };
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  bool reduced = false;  // less effort: for graphs of more than a few hundred nodes
};

/// "layout N M full" or "... reduced", N lines "n WIDTH HEIGHT" in points, M lines "e FROM TO", "end". False at the end
/// of the input; a bad line ends the process.
bool read(Request& request) {
  std::string line, word;
  if (!std::getline(std::cin, line)) return false;
  std::string effort;
  int nodes = -1, edges = -1;
  if (std::istringstream head(line); !(head >> word >> nodes >> edges >> effort) || word != "layout" || nodes < 0 ||
                                     nodes > mostNodes || edges < 0 || edges > mostEdges)
    return false;
  if (effort != "full" && effort != "reduced") return false;
  request.reduced = effort == "reduced";
  for (int i = 0; i < nodes; ++i) {
    Request::Node node{};
    if (!std::getline(std::cin, line)) return false;
    if (std::istringstream in(line);
        !(in >> word >> node.width >> node.height) || word != "n" || !(node.width > 0) || !(node.height > 0))
      return false;
    node.width /= 72;
    node.height /= 72;
    request.nodes.push_back(node);
  }
  for (int i = 0; i < edges; ++i) {
    Request::Edge edge{};
    if (!std::getline(std::cin, line)) return false;
    if (std::istringstream in(line); !(in >> word >> edge.from >> edge.to) || word != "e") return false;
    if (edge.from < 0 || edge.from >= nodes || edge.to < 0 || edge.to >= nodes || edge.from == edge.to) return false;
    request.edges.push_back(edge);
  }
  return std::getline(std::cin, line) && line == "end";
}

void set(void* object, const char* name, const std::string& value) {
  agsafeset(object, const_cast<char*>(name), const_cast<char*>(value.c_str()), const_cast<char*>(""));
}

/// Ranks and order from dot, its first two phases. Coordinates and lines are the program's own: dot takes many times
/// longer for them than for all else where edges are long, and ortho and curved lines do not always come back.
void layout(GVC_t* context, const Request& request) {
  auto* graph = agopen(const_cast<char*>("g"), Agdirected, nullptr);
  set(graph, "phase", "2");
  if (request.reduced) {
    set(graph, "nslimit1", "1");  // of the ranks; nslimit is for coordinates
    set(graph, "mclimit", "0.5");
  }
  std::vector<Agnode_t*> nodes;
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    auto* node = agnode(graph, const_cast<char*>(("n" + std::to_string(i)).c_str()), 1);
    set(node, "shape", "box");
    set(node, "label", "");
    set(node, "fixedsize", "true");
    set(node, "width", std::to_string(request.nodes[i].width));
    set(node, "height", std::to_string(request.nodes[i].height));
    nodes.push_back(node);
  }
  std::vector<Agedge_t*> edges;
  for (const auto& edge : request.edges)
    edges.push_back(agedge(graph, nodes[static_cast<std::size_t>(edge.from)], nodes[static_cast<std::size_t>(edge.to)],
                           nullptr, 1));
  if (gvLayout(context, graph, "dot") != 0) {
    std::cout << "error dot failed\n" << std::flush;
  } else {
    std::ostringstream out;
    out << "ok " << nodes.size() << ' ' << edges.size() << '\n';
    for (auto* node : nodes) out << "n " << ND_rank(node) << ' ' << ND_order(node) << '\n';
    for (auto* edge : edges) {
      // The nodes that dot puts in an edge's way are still there, as no splines were drawn.
      out << 'e';
      for (auto* part = ED_to_virt(edge); part && ND_node_type(aghead(part)) == passage;
           part = ND_out(aghead(part)).list[0]) {
        out << ' ' << ND_order(aghead(part));
        if (ND_out(aghead(part)).size == 0) break;
      }
      out << '\n';
    }
    out << "end\n";
    std::cout << out.str() << std::flush;
    gvFreeLayout(context, graph);
  }
  agclose(graph);
}

#ifdef RETROGRAD_ADDRESS_SANITIZER
void limitMemory() {}  // the sanitizer's shadow takes terabytes of addresses
#else
void limitMemory() {
  const rlimit memory{mostMemory, mostMemory};
  setrlimit(RLIMIT_AS, &memory);
}
#endif

}  // namespace

int main() {
  limitMemory();
  const rlimit noDump{0, 0};
  setrlimit(RLIMIT_CORE, &noDump);
  std::ios::sync_with_stdio(false);
  agseterr(AGMAX);  // what dot has to say of a graph is for nobody
  auto* context = gvContext();
  for (Request request; read(request); request = {}) {
    alarm(mostSeconds);
    layout(context, request);
    alarm(0);
  }
  gvFreeContext(context);
}
