// Views, and ops that copy where no view can be had.
#include "tests/fuzz/programs/catalogue.h"

namespace retrograd::fuzz {
namespace {

/// Sizes of so many elements, in another shape.
Sizes reshaped(Draft& d, std::int64_t elements) {
  Sizes sizes;
  for (std::int64_t f : {2, 3, 2, 5})
    if (elements % f == 0 && elements > f && d.random.chance(0.6)) {
      sizes.push_back(f);
      elements /= f;
    }
  sizes.push_back(elements);
  if (d.random.chance(0.2))
    sizes.insert(sizes.begin() + static_cast<std::ptrdiff_t>(d.random.below(sizes.size() + 1)), 1);
  return sizes;
}

bool reshape(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any});
  if (v < 0 || d.tensor(v).numel() == 0) return false;
  auto sizes = reshaped(d, d.tensor(v).numel());
  if (d.random.chance(0.3)) sizes[d.random.below(sizes.size())] = -1;
  return d.call(op, {Arg::value(v), Arg::ints(sizes)});
}

bool like(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::floating});
  if (v < 0) return false;
  const auto numel = d.tensor(v).numel();
  const auto other = d.pick({Want::any, 0, 6, [&](const at::Tensor& t) { return t.numel() == numel; }});
  return other >= 0 && d.call(op, {Arg::value(v), Arg::value(other)});
}

bool permute(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 1});
  if (v < 0) return false;
  Sizes order;
  for (std::int64_t i = 0; i < d.tensor(v).dim(); ++i)
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(d.random.below(order.size() + 1)), i);
  return d.call(op, {Arg::value(v), Arg::ints(order)});
}

bool twoDims(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 1});
  return v >= 0 &&
         d.call(op, {Arg::value(v), Arg::number(d.dim(v)), Arg::number(d.random.chance(0.5) ? d.dim(v) : -1)});
}

/// A size of one becomes more, dimensions come in front.
bool expand(Draft& d, const std::string& op) {
  auto v = d.pick({Want::any, 0, 3, [](const at::Tensor& t) {
                     return t.dim() == 0 || std::find(t.sizes().begin(), t.sizes().end(), 1) != t.sizes().end();
                   }});
  if (v < 0) {
    v = d.pick({Want::any, 0, 3});
    if (v < 0) return false;
    if (d.random.chance(0.6))
      v = d.make("aten.unsqueeze.default", {Arg::value(v), Arg::number(d.random.between(0, d.tensor(v).dim()))});
    if (v < 0) return false;
  }
  auto sizes = d.tensor(v).sizes().vec();
  // Also size one to size one: a view with strides of its own that can be written.
  for (auto& s : sizes) s = s == 1 ? d.random.between(1, 3) : d.random.chance(0.2) ? -1 : s;
  if (sizes.empty() || d.random.chance(0.3)) sizes.insert(sizes.begin(), d.random.between(1, 2));
  return d.call(op, {Arg::value(v), Arg::ints(sizes)});
}

bool expandAs(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::floating, 1});
  if (v < 0) return false;
  const auto small = d.partner(v, false);
  return small >= 0 && d.call(op, {Arg::value(small), Arg::value(v)});
}

bool narrowed(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 1, 9, [](const at::Tensor& t) { return t.numel() > 0; }});
  if (v < 0) return false;
  const auto dim = d.dim(v), size = d.tensor(v).size(dim), start = d.random.between(0, size - 1);
  if (op == "aten.narrow.default" || op == "aten.narrow_copy.default")
    return d.call(
        op, {Arg::value(v), Arg::number(dim), Arg::number(start), Arg::number(d.random.between(1, size - start))});
  if (op.starts_with("aten.select"))
    return d.call(op, {Arg::value(v), Arg::number(dim), Arg::number(d.random.chance(0.3) ? start - size : start)});
  return d.call(op, {Arg::value(v), Arg::number(dim), d.random.chance(0.2) ? Arg::none() : Arg::number(start),
                     d.random.chance(0.3) ? Arg::none() : Arg::number(d.random.between(start + 1, size + 1)),
                     Arg::number(d.random.between(1, 2))});
}

bool diagonal(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 2});
  if (v < 0) return false;
  const auto dims = d.tensor(v).dim(), a = d.dim(v),
             b = (a + 1 + static_cast<std::int64_t>(d.random.below(static_cast<std::size_t>(dims - 1)))) % dims;
  return d.call(op, {Arg::value(v), Arg::number(d.random.between(-1, 1)), Arg::number(a), Arg::number(b)});
}

bool unfold(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 1, 3});
  if (v < 0) return false;
  const auto dim = d.dim(v), size = d.tensor(v).size(dim);
  if (size < 1) return false;
  const auto width = d.random.between(1, std::min<std::int64_t>(size, 3));
  return d.call(op, {Arg::value(v), Arg::number(dim), Arg::number(width),
                     Arg::number(d.random.chance(0.5) ? width : d.random.between(1, 2))});
}

/// Sizes and strides that lie within the value's own elements.
bool asStrided(Draft& d, const std::string& op) {
  const auto v =
      d.pick({Want::any, 1, 4, [](const at::Tensor& t) { return t.numel() > 0 && t.is_non_overlapping_and_dense(); }});
  if (v < 0 || !d.isDense(v)) return false;
  const auto& t = d.tensor(v);
  const auto elements = t.numel();
  std::vector<std::int64_t> sizes, strides;
  switch (d.random.below(3)) {
    case 0: {  // some in a row
      const auto step = d.random.between(1, 2);
      sizes = {std::max<std::int64_t>(1, (elements - 1) / step)};
      strides = {step};
      break;
    }
    case 1: {  // the same, turned
      for (std::int64_t i = t.dim(); i-- > 0;) {
        sizes.push_back(t.size(i));
        strides.push_back(t.stride(i));
      }
      break;
    }
    default: {
      const auto rows = d.random.between(1, std::max<std::int64_t>(1, elements / 2)),
                 columns = std::max<std::int64_t>(1, elements / rows);
      sizes = {rows, columns};
      strides = {columns, 1};
    }
  }
  const auto offset = t.storage_offset();
  return d.call(op, {Arg::value(v), Arg::ints(sizes), Arg::ints(strides),
                     offset == 0 && d.random.chance(0.5) ? Arg::none() : Arg::number(offset)});
}

bool pieces(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::any, 1, 9, [](const at::Tensor& t) { return t.numel() > 0; }});
  if (v < 0) return false;
  const auto dim = d.dim(v), size = d.tensor(v).size(dim);
  if (size > 6) return false;
  if (op.starts_with("aten.unbind")) return d.call(op, {Arg::value(v), Arg::number(dim)});
  if (op.find("split_with_sizes") != std::string::npos || op == "aten.split.sizes") {
    const auto first = d.random.between(0, size);
    return d.call(op, {Arg::value(v), Arg::ints({first, size - first}), Arg::number(dim)});
  }
  if (op == "aten.tensor_split.indices")
    return d.call(op, {Arg::value(v), Arg::ints({d.random.between(0, size)}), Arg::number(dim)});
  return d.call(op, {Arg::value(v), Arg::number(d.random.between(1, 3)), Arg::number(dim)});
}

bool namedSplit(Draft& d, const std::string& op) {
  const auto dims = op[5] == 'h' ? 2 : op[5] == 'v' ? 2 : 3;
  const auto v = d.pick({Want::floating, dims, 4});
  if (v < 0) return false;
  const auto size = d.tensor(v).size(op[5] == 'h' ? 1 : op[5] == 'v' ? 0 : 2);
  return size >= 1 && d.call(op, {Arg::value(v), Arg::ints({d.random.between(0, size)})});
}

bool several(Draft& d, const std::string& op) {
  const auto v = d.pick({Want::floating, 0, 3});
  if (v < 0) return false;
  std::vector<int> parts{v};
  for (auto n = d.random.between(1, 2); n > 0; --n) parts.push_back(d.partner(v, true));
  if (std::find(parts.begin(), parts.end(), -1) != parts.end()) return false;
  if (op == "aten.cat.default" || op == "aten.concat.default" || op == "aten.concatenate.default")
    return d.tensor(v).dim() > 0 && d.call(op, {Arg::values(parts), Arg::number(d.dim(v))});
  if (op == "aten.stack.default")
    return d.call(op, {Arg::values(parts), Arg::number(d.random.between(0, d.tensor(v).dim()))});
  return d.call(op, {Arg::values(parts)});
}

bool vectors(Draft& d, const std::string& op) {
  const auto a = d.shaped(d.sizes(1)), b = a < 0 ? -1 : d.shaped(d.sizes(1), a);
  if (b < 0) return false;
  return op == "aten.meshgrid.indexing" ? d.call(op, {Arg::values({a, b}), Arg::string("ij")})
                                        : d.call(op, {Arg::values({a, b})});
}

}  // namespace

void addViews(Catalogue& c) {
  const Catalogue::Flags view{false, false, true};
  c.add("view.default reshape.default", reshape, view);
  c.add("_unsafe_view.default _reshape_copy.default view_copy.default", reshape);
  c.add("view_as.default reshape_as.default", like, view);
  c.add("permute.default", permute, view);
  c.add("permute_copy.default", permute);
  c.add("transpose.int swapaxes.default swapdims.default movedim.int moveaxis.int", twoDims, view);
  c.add("transpose_copy.int", twoDims);
  c.add("expand.default broadcast_to.default", expand, view);
  c.add("expand_copy.default", expand);
  c.add("expand_as.default", expandAs, view);
  c.add("narrow.default select.int slice.Tensor", narrowed, view);
  c.add("narrow_copy.default select_copy.int slice_copy.Tensor", narrowed);
  c.add("diagonal.default", diagonal, view);
  c.add("diagonal_copy.default", diagonal);
  c.add("unfold.default", unfold, view);
  c.add("unfold_copy.default", unfold);
  c.add("as_strided.default", asStrided, view);
  c.add("as_strided_copy.default", asStrided);
  c.add(
      "split.Tensor chunk.default tensor_split.sections tensor_split.indices split_with_sizes.default unbind.int "
      "unsafe_split.Tensor unsafe_chunk.default "
      "split.sizes",
      pieces, view);
  c.add("split_copy.Tensor unbind_copy.int split_with_sizes_copy.default", pieces);
  c.add("hsplit.array vsplit.array dsplit.array", namedSplit, view);
  c.add("unsqueeze.default", "a I0", view);
  c.add("squeeze.default", "a", view);
  c.add("squeeze.dim", "a1 D", view);
  c.add("squeeze.dims", "a1 L", view);
  c.add("squeeze_copy.default unsqueeze_copy.default", "a", {});
  c.entries.back().tokens = {"a", "I0"};
  c.add("t.default numpy_T.default adjoint.default mT.default mH.default", "f=2", view);
  c.add("t_copy.default", "f=2");
  c.add("flatten.using_ints", "a #0 #-1", view);
  c.add(
      "ravel.default alias.default detach.default atleast_1d.default atleast_2d.default atleast_3d.default "
      "positive.default",
      "f", view);
  c.add("alias_copy.default detach_copy.default", "f");
  c.add("contiguous.default", "a", view);
  c.add(
      "unflatten.int",
      [](Draft& d, const std::string& op) {
        const auto v = d.pick({Want::floating, 1, 4});
        if (v < 0) return false;
        const auto dim = d.dim(v), size = d.tensor(v).size(dim);
        return size > 0 &&
               d.call(op, {Arg::value(v), Arg::number(dim), Arg::ints(size % 2 == 0 ? Sizes{2, -1} : Sizes{1, size})});
      },
      view);
  c.add(
      "movedim.intlist",
      [](Draft& d, const std::string& op) {
        const auto v = d.pick({Want::floating, 2});
        return v >= 0 && d.call(op, {Arg::value(v), Arg::ints({0, 1}), Arg::ints({1, 0})});
      },
      view);
  c.add(
      "view.dtype",
      [](Draft& d, const std::string& op) {
        const auto v = d.pick({Want::real | Want::integer, 1, 4,
                               [](const at::Tensor& t) { return t.element_size() == 8 || t.element_size() == 4; }});
        if (v < 0) return false;
        const auto there = d.tensor(v).element_size() == 8 ? DType::i64 : DType::i32;
        const auto back = d.tensor(v).element_size() == 8 ? DType::f64 : DType::f32;
        if (!d.tensor(v).is_floating_point()) return d.call(op, {Arg::value(v), Arg::dtype(there)});
        const auto bits = d.make(op, {Arg::value(v), Arg::dtype(there)});
        return bits >= 0 && (d.random.chance(0.3) || d.call(op, {Arg::value(bits), Arg::dtype(back)}));
      },
      view);
  c.add("real.default imag.default view_as_real.default", "c", view);
  c.add(
      "view_as_complex.default",
      [](Draft& d, const std::string& op) {
        auto v = d.pick({Want::real, 1, 4, [](const at::Tensor& t) {
                           return t.size(-1) == 2 && t.stride(-1) == 1 && t.scalar_type() != at::kBFloat16;
                         }});
        if (v < 0) {
          auto sizes = d.sizes(d.random.between(0, 2));
          sizes.push_back(2);
          v = d.shaped(sizes);
        }
        return v >= 0 && d.call(op, {Arg::value(v)});
      },
      view);
  c.add(
      "broadcast_tensors.default",
      [](Draft& d, const std::string& op) {
        const auto a = d.pick({Want::floating});
        const auto b = a < 0 ? -1 : d.partner(a, false);
        return b >= 0 && d.call(op, {Arg::values({a, b})});
      },
      view);
  c.add("meshgrid.default meshgrid.indexing", vectors, view);
  c.add("cartesian_prod.default block_diag.default", vectors);
  c.add(
      "cat.default concat.default concatenate.default stack.default hstack.default vstack.default dstack.default "
      "column_stack.default row_stack.default",
      several);
  c.add("repeat.default tile.default", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::any, 0, 3});
    if (v < 0) return false;
    Sizes times;
    for (std::int64_t i = 0; i < d.tensor(v).dim(); ++i) times.push_back(d.random.between(1, 2));
    if (times.empty() || d.random.chance(0.2)) times.insert(times.begin(), 2);
    return d.call(op, {Arg::value(v), Arg::ints(times)});
  });
  c.add("repeat_interleave.self_int", [](Draft& d, const std::string& op) {
    const auto v = d.pick({Want::floating, 1, 3});
    return v >= 0 && d.call(op, {Arg::value(v), Arg::number(d.random.between(1, 2)),
                                 d.random.chance(0.3) ? Arg::none() : Arg::number(d.dim(v))});
  });
  c.add("roll.default", "f1 #[1] #[0]");
  c.add("flip.default", "f1 L");
  c.add("fliplr.default", "f2");
  c.add("flipud.default", "f1");
  c.add("rot90.default", "f2 I3 #[0,1]");
  c.add("tril.default triu.default", "f2 I1", {true, true, false});
  c.add("diag.default", "f=2 I1");
  c.add("diag_embed.default diagflat.default", "f=1 I1");
  c.add("linalg_diagonal.default", "f2", view);
  c.add("constant_pad_nd.default", "f1 #[1,2] S");
  c.add("pad.default", [](Draft& d, const std::string& op) {
    const auto v = d.shaped({d.random.between(1, 2), 2, d.random.between(2, 4)});
    const std::vector<std::string> modes{"reflect", "circular", "replicate", "constant"};
    return v >= 0 &&
           d.call(op, {Arg::value(v), Arg::ints({1, d.random.between(0, 1)}), Arg::string(d.random.of(modes))});
  });
  c.add("reflection_pad1d.default replication_pad1d.default", [](Draft& d, const std::string& op) {
    const auto v = d.shaped({2, d.random.between(2, 4)});
    return v >= 0 && d.call(op, {Arg::value(v), Arg::ints({1, 1})});
  });
  c.add("reflection_pad2d.default replication_pad2d.default", [](Draft& d, const std::string& op) {
    const auto v = d.shaped({1, 2, 3, 3});
    return v >= 0 && d.call(op, {Arg::value(v), Arg::ints({1, 1, 0, 2})});
  });
}

}  // namespace retrograd::fuzz
