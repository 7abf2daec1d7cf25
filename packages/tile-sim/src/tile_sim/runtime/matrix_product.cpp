// mma: the warp's operands are gathered, multiplied and scattered by the last lane to arrive.
#include "matrix_product.h"

#include "collective.h"
#include "registers.h"

using namespace tsim;

namespace {

[[noreturn]] void refuse(uint32_t line, const std::string& message) {
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, message);
}

ProductKind find_product(const Product& p, uint32_t line) {
  for (auto find : {find_float_product, find_integer_product, find_double_product,
                    find_quad_pair_product}) {
    const ProductKind kind = find(p);
    if (kind.multiply) return kind;
  }
  refuse(line, format("no mma m%dn%dk%d of such element types", p.shape >> 16, p.shape >> 8 & 255,
                      p.shape & 255));
}

bool is_same_kind(const Product& x, const Product& y) {
  return x.shape == y.shape && x.a_type == y.a_type && x.b_type == y.b_type &&
         x.d_type == y.d_type && x.columns == y.columns;
}

}  // namespace

extern "C" void tsim_mma(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b,
                         int shape, int d_type, int a_type, int b_type, int columns,
                         unsigned line) {
  const Block& block = *current_block;
  if (block.warp_size != WARP || block.warps[size_t(current_thread->warp)].lanes != 0xffffffff) {
    refuse(line, "mma in a warp that does not have 32 lanes");
  }
  Product product{nullptr, nullptr, nullptr, shape, d_type, a_type, b_type, columns};
  const ProductKind kind = find_product(product, line);
  product.a = read_registers(*a, kind.a_bytes, line);
  product.b = read_registers(*b, kind.b_bytes, line);
  read_registers(*d, kind.d_bytes, line);
  product.d = write_registers(*d, kind.d_bytes, line);
  collective(OP_MMA, ~0ull, &product, line, [&](Warp&, Rendezvous& r) {
    Operands operands;
    for_each_lane<Product>(r, [&](int lane, Product& p) {
      if (!is_same_kind(p, product)) refuse(r.line, "lanes of one warp execute different products");
      operands.lanes[lane] = &p;
    });
    kind.multiply(operands);
  });
}
