// Products of warpgroups, which run beside the threads that issue them.
//
// Threads post and run on. A product exists once all 128 have posted it; then its operands in
// shared memory are being read. It is computed at the first wait that covers it, the latest that
// an engine may be, and each thread receives its sums at its own wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "observer.h"
#include "tile_sim/device_abi.h"
#include "wgmma_operand.h"

namespace tsim {

struct Block;
struct Thread;

constexpr int WARPGROUP = 128;
constexpr uint32_t K_BYTES = 32;   // of an instruction

// The sums of a warpgroup in registers that products add to while they are under way.
struct Sums {
  int columns = 0;
  bool is_integer = false;
  uint64_t given[2] = {};       // lanes that have brought their part
  uint64_t returned[2] = {};
  std::vector<float> values;    // 64 rows; integers as their bits

  void take(int lane, const unsigned char* registers, bool is_half);
  void give(int lane, unsigned char* registers, const unsigned char* flags, bool is_half) const;
};

struct GroupProduct {
  tsim_product kind;
  Matrix a, b;
  uint32_t line = 0;
  int posted = 0;
  std::shared_ptr<Sums> sums;
  uint32_t a_registers[WARPGROUP][4];
  Crew crew;
};

// What one thread has under way.
struct Issued {
  struct Accumulator {
    tsim_registers registers;   // null values once they are gone
    std::shared_ptr<Sums> sums;
    uint32_t latest;            // product that adds to it
    uint32_t bytes;
    bool is_half;
    uint32_t line;
  };
  struct Lent {
    tsim_registers registers;
    uint32_t product;
    uint32_t bytes;
    uint32_t line;
  };
  struct Range {
    unsigned char* flags;
    uint32_t bytes;
  };

  uint32_t posted = 0;
  uint32_t awaited = 0;            // products before this one are known to be done
  bool has_fenced = false;
  std::vector<uint32_t> group_ends;
  std::vector<Accumulator> accumulators;
  std::vector<Lent> lent;
  std::vector<Range> known;        // registers whose flags a fence changes

  void start() {
    posted = awaited = 0;
    has_fenced = false;
    group_ends.clear();
    accumulators.clear();
    lent.clear();
    known.clear();
  }
};

class Warpgroup {
 public:
  void start();

  uint32_t first = 0;              // number of products[0]
  std::deque<std::unique_ptr<GroupProduct>> products;   // not computed yet
  std::vector<uint32_t> times;     // ticks of all products
  int agent = 0;                   // the first of four, one for each warp
  uint64_t waiting[4] = {};

  GroupProduct* find(uint32_t number) {
    return number - first < products.size() ? products[number - first].get() : nullptr;
  }
  std::unique_ptr<GroupProduct> fresh();
  void retire(std::unique_ptr<GroupProduct> product) { spare_.push_back(std::move(product)); }

 private:
  std::vector<std::unique_ptr<GroupProduct>> spare_;
};

// The operand that a thread names, in its block's memory.
Matrix matrix_of(Block& block, const tsim_operand& operand, bool is_along_k, uint32_t line);
// Reads of a matrix by an engine: rows of so many bytes.
void read_matrix(Block& block, const Observer& by, const Matrix& matrix, uint32_t rows,
                 uint32_t bytes_along, Stamp stamp);
// The value of an element.
float float_of(int type, const unsigned char* from);
// The operands of a product are read from now on; how many transactions that takes.
void read_operands(Block& block, const Observer& by, const GroupProduct& product, Stamp stamp);
void count_operands(Block& block, const GroupProduct& product);

// The sums that a product adds to, with the thread's part; `posted` is the product if another
// thread of the warpgroup has issued it before.
std::shared_ptr<Sums> sums_of(Thread& me, const tsim_registers& d, const tsim_product& kind,
                              GroupProduct* posted, uint32_t line);
// The thread's factors in registers, until the product is done.
void lend_registers(Thread& me, GroupProduct& product, const tsim_registers& a, uint32_t line);
// The thread receives the sums of products before `end`, and its registers.
void receive(Thread& me, uint32_t end);

inline bool is_integer(int type) { return type == TSIM_I8 || type == TSIM_U8; }
inline uint32_t sum_bytes(const tsim_product& kind) {
  return uint32_t(kind.columns) / 2 * (kind.d_type == TSIM_F16 ? 2 : 4);
}

// d = or += a * b, of all that is posted.
void compute(Block& block, const GroupProduct& product);

// Whether an access of registers meets a product under way, and its line.
uint32_t line_of_product(const Thread& thread, const unsigned char* value);

// Registers of each thread of a warpgroup, as it has asked for them.
struct Budget {
  int count = 0;        // 0: as the launch gave them
  int lanes = 0;        // that have executed the latest change, if not all
  int asked = 0;        // negative if it gives some back
  uint32_t line = 0;
};
void check_budgets_at_exit(Block& block);

// What is wrong with a thread that exits, and with a block whose threads wait or have exited.
void check_products_at_exit(Block& block, Thread& thread);
bool report_partial_products(Block& block);
std::string product_awaited_by(Block& block, const Thread& thread);

}  // namespace tsim
