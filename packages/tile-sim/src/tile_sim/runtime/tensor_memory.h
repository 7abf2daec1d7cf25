// The memory of the matrix unit, in which products that one thread starts have their sums.
//
// Products run one after the other, as late as the arrival that tells of them. Until then nobody
// may look at their sums. What threads do there is ordered by barriers only between fences: one
// before those at which threads meet, one behind.
//
// Two blocks of a cluster are a pair: a product of both has 128 rows in the memory of each, and takes
// half of the columns of its second operand from the shared memory of each.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "clock.h"
#include "tile_sim/device_abi.h"
#include "wgmma_operand.h"

namespace tsim {

struct Block;
struct Thread;
struct BulkCopy;

struct TensorProduct {
  Matrix a, b;       // without an end, the first one is in tensor memory, from a column on
  uint32_t a_column;
  tsim_product kind;
  uint32_t rows;
  uint32_t column;
  uint32_t line;
  // With scales, of which each row takes one; or a copy of `a` to columns that are scales.
  bool is_scaled = false, is_copy = false;
  tsim_scales scales = {};
  Block* other = nullptr;      // of the pair

  uint32_t n() const { return uint32_t(kind.columns); }
  // The right half of the sums of 64 rows is in the lanes below.
  uint32_t columns() const { return rows == 64 ? n() / 2 : n(); }
  // What products that follow each other on the same sums have in common.
  uint64_t shape() const {
    const uint32_t all = other ? 2 * rows : rows;
    return uint64_t(column) << 32 | all << 16 | n() << 4 | uint32_t(kind.d_type);
  }
};

class TensorMemory {
 public:
  static constexpr uint32_t LANES = 128, COLUMNS = 512, QUARTERS = 4, WARPS = 32;

  void start();

  // Columns that a warp has taken, and lanes that have called for it.
  uint32_t first = 0, columns = 0, line = 0;
  int warp = -1;
  bool is_pair = false;                // the other block of the pair has taken as many
  Stamp taken = 0;
  static constexpr uint32_t ALL = ~0u;
  uint32_t taken_by = 0, freed_by = 0;

  std::vector<float> cells;            // by lane, then by column
  std::vector<uint8_t> is_written;
  std::vector<Stamp> writes;           // by quarter of the lanes, then by column
  std::vector<Stamp> reads;            // by warp, then by column
  Stamp factor_reads[COLUMNS];         // by products
  uint32_t under_way[COLUMNS];         // products that have not been computed
  uint32_t product_line[COLUMNS];
  int issuer[COLUMNS];                 // of the latest product
  uint64_t shape[COLUMNS];             // its own
  std::deque<TensorProduct> products;
  uint64_t issued = 0, computed = 0;
  // By thread: how many were issued with its latest one, and when that was.
  struct Latest {
    uint64_t position = 0;
    uint32_t time = 0;
  };
  std::unordered_map<int, Latest> own;
  int agent = 0;
};

// Whoever meets others must have fenced what it did in tensor memory; what it does next is behind.
void leave_tensor_memory(Thread& me, uint32_t line);
void meet_tensor_memory(Thread& me, uint32_t line);

// All products before an arrival are done.
void complete_products(const BulkCopy& arrival);

// The other block of a pair: ranks 0 and 1 are one, 2 and 3 the next.
Block& other_of_pair(const Block& block, uint32_t line);

// Who uses tensor memory has a fence behind where it met others.
void check_fenced(const Thread& me, uint32_t line);
// Columns from an address on that the block has taken.
uint32_t own_columns(const TensorMemory& memory, uint32_t address, uint32_t count, uint32_t line);
// Columns are those of one block, or of a pair of which the other block has taken its own.
void check_group(const TensorMemory& memory, int blocks, const char* what, uint32_t line);
void check_taken(const Block& block, const Block& other, uint32_t line);
// Whoever did something there is known to be done with it.
void check_known(const Block& block, Stamp earlier, const char* what, uint32_t column, uint32_t line);
// Threads may not touch sums of products that nobody has been told are done.
void check_complete(const TensorMemory& memory, uint32_t column, uint32_t line);
// Others have stopped to read and write a column.
void check_columns_left(const Block& owner, uint32_t column, uint32_t line);
void report_tensor(uint32_t line, uint32_t other_line, const std::string& message);
[[noreturn]] void abandon_tensor(uint32_t line, uint32_t other_line, const std::string& message);

// Scales of 128 rows in shared memory: so many rows of so many bytes, four for each row of sums; and
// the columns that have them then.
constexpr uint32_t SCALE_ROWS = 32, SCALE_BYTES = 16, SCALE_COLUMNS = 4;
uint32_t scale_columns(uint32_t rows);
bool has_scaled_product(const tsim_product& kind, const tsim_scales& scales);
// That of a row's group, of those that a product takes.
float scale_at(const TensorMemory& memory, const tsim_scales& scales, uint32_t column, uint32_t row,
               uint32_t group);
void read_scales(Block& block, uint32_t column, uint32_t count, Stamp stamp, uint32_t line);
void copy_scales(Block& block, const TensorProduct& copy);

// What is wrong with a block whose threads have exited.
void check_tensor_memory_at_exit(Block& block);

}  // namespace tsim
