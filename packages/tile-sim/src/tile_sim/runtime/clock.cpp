#include "clock.h"

#include <algorithm>
#include <cstring>

namespace tsim {

void Clock::start(int blocks, int threads) {
  const bool is_new = blocks != blocks_ || threads != threads_;
  blocks_ = blocks;
  threads_ = threads;
  stride_ = threads + AGENTS;
  now_ = 1;
  visit_ = 0;
  has_agents_ = false;
  std::memset(floors_, 0, size_t(blocks) * sizeof floors_[0]);
  std::memset(memos_, 0, sizeof memos_);
  for (uint32_t& version : floor_versions_) version = 1;
  if (is_new) {
    size_ = size_t(everybody());
    store_.clear();
    homes_.assign(size_, MAX_BLOCKS);
    for (int rank = 0; rank < blocks; ++rank) {
      std::fill_n(homes_.begin() + rank * stride_, threads, uint8_t(rank));
    }
    members_.resize(size_);
  }
  if (store_.empty()) store_.emplace_back();   // number 0 is none
  free_.clear();
  for (Known k = uint32_t(store_.size()) - 1; k > 0; --k) {
    store_[k].references = store_[k].visit = 0;
    free_.push_back(k);
  }
  for (size_t who = 0; who < size_; ++who) {
    members_[who] = Member{1, 0, nullptr, floors_[int(who) / stride_], {}};
  }
}

Known Clock::fresh() {
  if (free_.empty()) {
    free_.push_back(uint32_t(store_.size()));
    store_.emplace_back();
    store_.back().times.reset(new uint32_t[size_]);
  }
  const Known known = free_.back();
  free_.pop_back();
  store_[known].references = 1;
  std::memset(times(known), 0, size_ * sizeof(uint32_t));
  return known;
}

Known Clock::copy_of(Known known) {
  const Known copy = fresh();
  if (known) std::memcpy(times(copy), times(known), size_ * sizeof(uint32_t));
  return copy;
}

void Clock::drop(Known known) {
  if (known && --store_[known].references == 0) free_.push_back(known);
}

// Makes a vector one that nobody else sees.
void Clock::own(Known& known) {
  if (known && store_[known].references == 1) return;
  const Known copy = copy_of(known);
  drop(known);
  known = copy;
}

void Clock::join(Known into, Known from) {
  if (!from || from == into) return;
  const uint32_t* source = times(from);
  uint32_t* target = times(into);
  for (size_t i = 0; i < size_; ++i) target[i] = std::max(target[i], source[i]);
}

void Clock::assign(int me, Known known) {
  Member& member = members_[size_t(me)];
  keep(known);
  drop(member.known);
  member.known = known;
  member.times = known ? times(known) : nullptr;
}

// What any of some threads knows, as a new vector.
Known Clock::joined(int first, int count) {
  const Known sum = fresh();
  ++visit_;
  for (int who = first; who < first + count; ++who) {
    const Known known = members_[size_t(who)].known;
    if (!known || store_[known].visit == visit_) continue;
    store_[known].visit = visit_;
    join(sum, known);
  }
  return sum;
}

void Clock::meet_all(int rank) {
  const int first = thread(rank, 0);
  // The floor says nothing about other blocks and agents.
  const Known sum = blocks_ > 1 || has_agents_ ? joined(first, threads_) : 0;
  floors_[rank][rank] = ++now_;
  ++floor_versions_[rank];
  for (int who = first; who < first + threads_; ++who) {
    members_[size_t(who)].time = now_;
    assign(who, sum);
  }
  drop(sum);
}

void Clock::meet_lanes(int first, uint64_t lanes) {
  const int count = __builtin_popcountll(lanes);
  const Known one = members_[size_t(first + __builtin_ctzll(lanes))].known;
  bool is_one = one != 0;
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    is_one &= members_[size_t(first + __builtin_ctzll(rest))].known == one;
  }
  Known met = one;
  // Nobody else holds it: it may change in its place.
  const bool is_theirs = is_one && store_[one].references == uint32_t(count);
  if (is_theirs) {
    keep(met);
  } else {
    met = fresh();
    ++visit_;
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
      const Known known = members_[size_t(first + __builtin_ctzll(rest))].known;
      if (!known || store_[known].visit == visit_) continue;
      store_[known].visit = visit_;
      join(met, known);
    }
  }
  ++now_;
  uint32_t* t = times(met);
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    const int who = first + __builtin_ctzll(rest);
    Member& member = members_[size_t(who)];
    t[who] = std::max(t[who], member.time);
    member.time = now_;
    if (!is_theirs) assign(who, met);
  }
  drop(met);
}

// What the threads of a block know by its floors, for others that have other ones.
void Clock::add_floors(Release& into, int rank) {
  if (blocks_ == 1 || into.floors[rank] == floor_versions_[rank]) return;
  into.floors[rank] = floor_versions_[rank];
  const uint32_t floor = floors_[rank][rank];
  if (!floor) return;
  uint32_t* t = times(into.sum) + thread(rank, 0);
  for (int i = 0; i < threads_; ++i) t[i] = std::max(t[i], floor - 1);
}

bool Clock::knows_of(int me, int rank) const {
  const uint32_t* known = members_[size_t(me)].times;
  if (!known) return false;
  const uint32_t* first = known + thread(rank, 0);
  return std::any_of(first, first + threads_, [](uint32_t time) { return time != 0; });
}

void Clock::release(int me, Release& into) {
  Member& member = members_[size_t(me)];
  own(into.sum);
  if (member.known != into.latest) {
    join(into.sum, member.known);
    keep(member.known);
    drop(into.latest);
    into.latest = member.known;
  }
  add_floors(into, rank_of(me));
  uint32_t& time = times(into.sum)[me];
  time = std::max(time, member.time);
  member.time = ++now_;
}

void Clock::forget(Release& release) {
  drop(release.sum);
  drop(release.latest);
  release = Release();
}

void Clock::remember(Memo& memo, Known a, Known b, uint32_t time, Known result) {
  keep(a);
  keep(result);
  if (!time) keep(b);
  drop(memo.a);
  drop(memo.result);
  if (!memo.time) drop(memo.b);
  memo = Memo{a, b, result, time};
}

void Clock::acquire(int me, Known from) {
  const Known known = members_[size_t(me)].known;
  if (!from || from == known) return;
  if (!known) {
    assign(me, from);
    return;
  }
  Memo& memo = memos_[(known * 7 + from) % MEMOS];
  if (memo.a != known || memo.b != from || memo.time) {
    const Known sum = copy_of(known);
    join(sum, from);
    remember(memo, known, from, 0, sum);
    drop(sum);
  }
  assign(me, memo.result);
}

void Clock::learn(int me, int who, uint32_t time) {
  const Known known = members_[size_t(me)].known;
  if (known && times(known)[who] >= time) return;
  Memo& memo = memos_[(known * 7 + uint32_t(who)) % MEMOS];
  if (memo.a != known || memo.b != uint32_t(who) || memo.time != time) {
    const Known sum = copy_of(known);
    times(sum)[who] = time;
    remember(memo, known, uint32_t(who), time, sum);
    drop(sum);
  }
  assign(me, memo.result);
}

void Clock::learn(Release& into, int who, uint32_t time) {
  own(into.sum);
  uint32_t& latest = times(into.sum)[who];
  latest = std::max(latest, time);
}

void Clock::add(Release& into, Known from) {
  own(into.sum);
  join(into.sum, from);
}

void Clock::fence(int me) {
  Member& member = members_[size_t(me)];
  Fences& fences = member.fences;
  member.time = ++now_;
  fences.times[fences.count++ % Fences::KEPT] = now_;
  keep(member.known);
  drop(fences.known);
  fences.known = member.known;
  fences.floor = floors_[rank_of(me)][rank_of(me)];
}

uint32_t Clock::fence_after(Stamp s) const {
  const Fences& fences = members_[stamp_who(s)].fences;
  const uint32_t kept = std::min<uint32_t>(fences.count, Fences::KEPT);
  for (uint32_t i = fences.count - kept; i < fences.count; ++i) {
    const uint32_t time = fences.times[i % Fences::KEPT];
    if (time > stamp_time(s)) return time;
  }
  return 0;
}

bool Clock::was_fenced_by(int me, Stamp s) const {
  const Fences& fences = members_[size_t(me)].fences;
  const size_t who = stamp_who(s);
  if (!fences.count) return false;
  if (homes_[who] == rank_of(me) && stamp_time(s) < fences.floor) return true;
  return fences.known && stamp_time(s) <= store_[fences.known].times[who];
}

}  // namespace tsim
