// mma: the warp's operands are gathered, multiplied and scattered by the last lane to arrive.
#include "matrix_product.h"

#include "collective.h"
#include "registers.h"

using namespace tsim;

namespace {

uint64_t key_of(const Product& p) {
  const uint64_t types = uint64_t(p.d_type & 255) << 24 | uint64_t(p.a_type & 255) << 16 |
                         uint64_t(p.b_type & 255) << 8;
  return 1ull << 63 | uint64_t(p.shape) << 32 | types | uint64_t(p.columns);
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

__thread Remembered<ProductKind> remembered_mma __attribute__((tls_model("initial-exec")));

}  // namespace

extern "C" void tsim_mma(const tsim_registers* d, const tsim_registers* a, const tsim_registers* b,
                         int shape, int d_type, int a_type, int b_type, int columns,
                         unsigned line) {
  const Block& block = *current_block;
  if (block.warp_size != WARP || block.warps[size_t(current_thread->warp)].lanes != 0xffffffff) {
    refuse(line, "mma in a warp that does not have 32 lanes");
  }
  Product product{nullptr, nullptr, nullptr, shape, d_type, a_type, b_type, columns};
  if (remembered_mma.key != key_of(product)) {
    remembered_mma.kind = find_product(product, line);
    remembered_mma.key = key_of(product);
  }
  const ProductKind kind = remembered_mma.kind;
  product.a = read_registers(*a, kind.a_bytes, line);
  product.b = read_registers(*b, kind.b_bytes, line);
  read_registers(*d, kind.d_bytes, line);
  product.d = write_registers(*d, kind.d_bytes, line);
  collective(OP_MMA, ~0ull, &product, line, [&](Warp&, Rendezvous& r) {
    Operands operands;
    for_each_lane<Product>(r, [&](int lane, Product& p) {
      if (key_of(p) != key_of(product)) {
        refuse(r.line, "lanes of one warp execute different products");
      }
      operands.lanes[lane] = &p;
    });
    kind.multiply(operands);
  });
}
