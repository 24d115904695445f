// Gathering and scattering by indices and masks, out of place.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

int indexed(Draft& d) {
  return d.pick({Want::floating, 1, 3, [](const at::Tensor& t) { return t.numel() > 0; }});
}

/// Indices along a dimension, one-dimensional.
int along(Draft& d, int v, std::int64_t dim, std::int64_t count = 0) {
  return d.indices(d.tensor(v).size(dim), {count > 0 ? count : d.random.between(1, 3)});
}

bool select(Draft& d, const std::string& op) {
  const auto v = indexed(d);
  if (v < 0) return false;
  const auto dim = d.dim(v);
  const auto i = along(d, v, dim);
  return i >= 0 && d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i)});
}

/// Indices of the value's own sizes, along `dim`.
bool gather(Draft& d, const std::string& op) {
  const auto v = indexed(d);
  if (v < 0) return false;
  const auto dim = d.dim(v);
  const auto i = d.indices(d.tensor(v).size(dim), d.tensor(v).sizes().vec());
  if (i < 0) return false;
  if (op == "aten.take_along_dim.default") return d.call(op, {Arg::value(v), Arg::value(i), Arg::number(dim)});
  if (op == "aten.gather.default") return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i)});
  if (op.ends_with(".value"))
    return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::number(d.scalar())});
  const auto source = d.partner(v, true);
  if (source < 0) return false;
  if (op.ends_with(".two"))
    return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::value(source),
                       Arg::string(d.random.of<std::string>({"sum", "mean", "amax", "amin", "prod"})),
                       Arg::boolean(d.random.chance(0.5))});
  return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::value(source)});
}

bool add(Draft& d, const std::string& op) {
  const auto v = indexed(d);
  if (v < 0) return false;
  const auto dim = d.dim(v);
  const bool unique = op.find("index_copy") != std::string::npos;
  const auto count = unique ? 1 : d.random.between(1, 3);
  const auto i = along(d, v, dim, count);
  if (i < 0) return false;
  if (op.find("index_fill") != std::string::npos)
    return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::number(d.scalar())});
  auto sizes = d.tensor(v).sizes().vec();
  sizes[static_cast<std::size_t>(dim)] = count;
  const auto source = d.shaped(sizes, v);
  if (source < 0) return false;
  if (op.find("index_reduce") != std::string::npos)
    return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::value(source),
                       Arg::string(d.random.of<std::string>({"mean", "amax", "amin"}))});
  return d.call(op, {Arg::value(v), Arg::number(dim), Arg::value(i), Arg::value(source)});
}

bool put(Draft& d, const std::string& op) {
  const auto v = indexed(d);
  if (v < 0) return false;
  if (op.starts_with("aten.put")) {
    const auto i = d.indices(d.tensor(v).numel(), {1});
    const auto source = i < 0 ? -1 : d.shaped({1}, v);
    return source >= 0 &&
           d.call(op, {Arg::value(v), Arg::value(i), Arg::value(source), Arg::boolean(d.random.chance(0.5))});
  }
  const auto i = along(d, v, 0);
  if (i < 0) return false;
  auto sizes = d.tensor(v).sizes().vec();
  sizes[0] = d.tensor(i).size(0);
  const auto values = d.shaped(sizes, v);
  if (values < 0) return false;
  const bool accumulate = sizes[0] > 1 || d.random.chance(0.5);
  return d.call(op, {Arg::value(v), Arg::list({Arg::value(i)}), Arg::value(values), Arg::boolean(accumulate)});
}

bool masked(Draft& d, const std::string& op) {
  const auto v = indexed(d);
  if (v < 0) return false;
  const auto m = d.truths(v);
  if (m < 0) return false;
  if (op == "aten.masked_select.default") return d.call(op, {Arg::value(v), Arg::value(m)});
  if (op.find("Tensor") != std::string::npos) {
    const auto number = d.pick({Want::floating, 0, 0});
    return number >= 0 && d.call(op, {Arg::value(v), Arg::value(m), Arg::value(number)});
  }
  const auto source = d.partner(v, true);
  return source >= 0 && d.call(op, {Arg::value(v), Arg::value(m), Arg::value(source)});
}

bool scatterView(Draft& d, const std::string& op) {
  const auto v = d.pick(
      {Want::floating, op.starts_with("aten.diagonal") ? 2 : 1, 3, [](const at::Tensor& t) { return t.numel() > 0; }});
  if (v < 0) return false;
  const auto dim = d.dim(v), size = d.tensor(v).size(dim), start = d.random.between(0, size - 1);
  auto sizes = d.tensor(v).sizes().vec();
  if (op == "aten.select_scatter.default") {
    sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(dim));
    const auto source = d.shaped(sizes, v);
    return source >= 0 && d.call(op, {Arg::value(v), Arg::value(source), Arg::number(dim), Arg::number(start)});
  }
  if (op == "aten.slice_scatter.default") {
    sizes[static_cast<std::size_t>(dim)] = size - start;
    const auto source = d.shaped(sizes, v);
    return source >= 0 &&
           d.call(op, {Arg::value(v), Arg::value(source), Arg::number(dim), Arg::number(start), Arg::none()});
  }
  if (op == "aten.diagonal_scatter.default") {
    Sizes rest(sizes.begin() + 2, sizes.end());
    rest.push_back(std::min(sizes[0], sizes[1]));
    const auto source = d.shaped(rest, v);
    return source >= 0 && d.call(op, {Arg::value(v), Arg::value(source)});
  }
  if (!d.tensor(v).is_contiguous() || d.tensor(v).storage_offset() != 0) return false;
  const auto n = std::max<std::int64_t>(1, d.tensor(v).numel() - 1);
  const auto source = d.shaped({n}, v);
  return source >= 0 && d.call(op, {Arg::value(v), Arg::value(source), Arg::ints({n}), Arg::ints({1}), Arg::none()});
}

bool lookup(Draft& d, const std::string& op) {
  const auto rows = d.random.between(2, 4);
  const auto weight = d.shaped({rows, 3});
  const auto i = weight < 0 ? -1 : d.indices(rows, d.sizes(d.random.between(1, 2)));
  return i >= 0 && d.call(op, {Arg::value(weight), Arg::value(i)});
}

}  // namespace

void addIndexing(Catalogue& c) {
  const Catalogue::Flags writes{false, true, false};
  c.add("index_select.default", select);
  c.add("gather.default take_along_dim.default scatter.src scatter.value scatter_add.default scatter_reduce.two",
        gather);
  c.add("scatter_.src scatter_.value scatter_add_.default scatter_reduce_.two", gather, writes);
  c.add("index_add.default index_copy.default index_fill.int_Scalar index_reduce.default", add);
  c.add("index_add_.default index_copy_.default index_fill_.int_Scalar", add, writes);
  c.add("index_put.default put.default _unsafe_index_put.default", put);
  c.add("index_put_.default put_.default", put, writes);
  c.add("masked_select.default masked_scatter.default masked_fill.Tensor", masked);
  c.add("masked_scatter_.default masked_fill_.Tensor", masked, writes);
  c.add("select_scatter.default slice_scatter.default diagonal_scatter.default as_strided_scatter.default",
        scatterView);
  c.add("embedding.default", lookup);
  c.add("index.Tensor", [](Draft& d, const std::string& op) {
    const auto v = indexed(d);
    if (v < 0) return false;
    if (d.random.chance(0.2)) {
      const auto m = d.truths(v);
      return m >= 0 && d.call(op, {Arg::value(v), Arg::list({Arg::value(m)})});
    }
    const auto dims = d.tensor(v).dim();
    std::vector<Arg> list;
    const auto count = d.random.between(1, 3);
    bool any = false;
    for (std::int64_t k = 0; k < dims; ++k) {
      if (d.random.chance(0.4) && !(k == dims - 1 && !any)) {
        list.push_back(Arg::none());
        continue;
      }
      const auto i = along(d, v, k, count);
      if (i < 0) return false;
      list.push_back(Arg::value(i));
      any = true;
    }
    return d.call(op, {Arg::value(v), Arg::list(list)});
  });
  c.add("take.default", [](Draft& d, const std::string& op) {
    const auto v = indexed(d);
    const auto i = v < 0 ? -1 : d.indices(d.tensor(v).numel(), d.sizes(d.random.between(1, 2)));
    return i >= 0 && d.call(op, {Arg::value(v), Arg::value(i)});
  });
  c.add("embedding_bag.default", [](Draft& d, const std::string& op) {
    const auto weight = d.shaped({3, 2});
    const auto i = weight < 0 ? -1 : d.indices(3, {4});
    const auto offsets =
        i < 0 ? -1
              : d.make("aten.arange.start_step",
                       {Arg::number(std::int64_t{0}), Arg::number(std::int64_t{4}), Arg::number(std::int64_t{2})});
    return offsets >= 0 && d.call(op, {Arg::value(weight), Arg::value(i), Arg::value(offsets), Arg::boolean(false),
                                       Arg::number(d.random.between(0, 2))});
  });
  c.add("one_hot.default", [](Draft& d, const std::string& op) {
    const auto i = d.indices(3, d.sizes(1));
    return i >= 0 && d.call(op, {Arg::value(i), Arg::number(std::int64_t{3})});
  });
  c.add("bucketize.Tensor searchsorted.Tensor", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::real, 1, 2});
    if (v < 0 || d.tensor(v).scalar_type() == at::kBFloat16) return false;
    const auto bounds = d.make("aten.sort.default", {Arg::value(v)});
    const auto flat = bounds < 0 ? -1
                                 : d.make("aten.select.int", {Arg::value(bounds), Arg::number(std::int64_t{0}),
                                                              Arg::number(std::int64_t{0})});
    if (flat < 0 || d.tensor(bounds).dim() != 2) return false;
    return op.starts_with("aten.bucketize") ? d.call(op, {Arg::value(v), Arg::value(flat)})
                                            : d.call(op, {Arg::value(bounds), Arg::value(v)});
  });
  c.add("tril_indices.default triu_indices.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::number(d.random.between(2, 3)), Arg::number(d.random.between(2, 3))});
  });
  c.add("arange.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::number(d.random.between(1, 4)), Arg::dtype(d.main)});
  });
  c.add("full.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::ints(d.sizes(d.random.between(0, 2))), Arg::number(d.scalar()), Arg::dtype(d.main)});
  });
  c.add("linspace.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::number(-1.0), Arg::number(1.5), Arg::number(d.random.between(1, 5)), Arg::dtype(d.main)});
  });
  c.add("eye.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::number(d.random.between(1, 4)), Arg::dtype(d.main)});
  });
  c.add("zeros.default ones.default", [](Draft& d, const std::string& op) {
    return d.call(op, {Arg::ints(d.sizes(d.random.between(0, 2))), Arg::dtype(d.main)});
  });
  c.add("scalar_tensor.default",
        [](Draft& d, const std::string& op) { return d.call(op, {Arg::number(d.scalar()), Arg::dtype(d.main)}); });
  c.add("new_zeros.default new_ones.default", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::any});
    return v >= 0 && d.call(op, {Arg::value(v), Arg::ints(d.sizes(d.random.between(0, 2)))});
  });
  c.add("new_full.default", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::floating});
    return v >= 0 && d.call(op, {Arg::value(v), Arg::ints(d.sizes(d.random.between(0, 2))), Arg::number(d.scalar())});
  });
  c.add("nonzero.default argwhere.default", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::boolean | Want::integer, 1, 2});
    return v >= 0 && d.call(op, {Arg::value(v)});
  });
  c.add("combinations.default", "f=1");
  c.add("vander.default", "u=1 #3");
}

}  // namespace retrograd::fuzz
