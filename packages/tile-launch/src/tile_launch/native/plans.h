/* What Python fills in, and what a caller remembers: a plan for each kind of arguments. */
#ifndef TILE_PLANS_H
#define TILE_PLANS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "objects.h"

/* What Python fills in; the same structures stand in native/c_structures.py ---------------------- */

enum { TENSOR, BOOL, INT, FLOAT, OUTPUT };
enum { ADDRESS, SCALAR, CONSTANT, STATUS };
enum { AS_INT, AS_FLOAT, AS_DOUBLE, AS_BOOL, AS_POINTER };
enum { PACKED, ROW, CUDA, HIP };

typedef struct {
    int32_t kind, keyed;    /* whether the number is part of what is remembered */
    int64_t low, high;      /* of integers */
    int64_t mask, array_mask;   /* of addresses of tensors and arrays: the bits that matter */
    double largest;         /* of floats: greater finite ones are refused, which Python does */
} Parameter;

typedef struct {
    int32_t kind, parameter, type, pad;
    int64_t value;
} Slot;

typedef struct {
    int32_t interface, slots;
    void *function, *handle;
    Slot *slot;
    uint64_t context;       /* of the device; 0 where there is none to compare */
    int32_t (*read_context)(uint64_t *);
    uint32_t grid[3], block[3], shared_bytes, attribute_count;
    void *attributes;
    Object *stream_of, *device;   /* stream_of(device) is called where it is there */
    Object *failed;         /* failed(kind, number) raises */
    int32_t output_count, changed_count;
    int32_t *output;        /* parameters in the order in which they are allocated */
    Object **maker;
    int32_t *returned;      /* positions among outputs, in the order in which they return */
    int32_t *changed;       /* parameters of torch tensors that the kernel writes */
    Object *keep;           /* whatever has to live as long as this */
} Plan;

typedef struct {
    const void *array;      /* numpy.ndarray, or null */
    const void *tensor, *parameter;   /* torch.Tensor and torch.nn.Parameter, or null */
    int (*describe)(void *, Tensor *);
    Object *is_negated, *is_inference, *bump;
} Libraries;

/* A caller ----------------------------------------------------------------------------------- */

enum { MOST_PARAMETERS = 64, MOST_SLOTS = 2 * MOST_PARAMETERS };
enum { MOST_DIMENSIONS = 8, WORDS = 5 + 2 * MOST_DIMENSIONS };
enum { TABLE = 1024, MOST_PLANS = 512 };

typedef struct Entry {
    uint64_t hash;
    int32_t words;
    int64_t *key;
    Plan plan;
} Entry;

typedef struct {
    int32_t count, inputs;
    Parameter *parameter;   /* all of the kernel, in order */
    Libraries libraries;
    Entry *table[TABLE];
    int32_t used;
    Entry *last;
} Caller;

static uint64_t hash_of(const int64_t *key, int words)
{
    uint64_t h = 0x9E3779B97F4A7C15u;
    for (int k = 0; k < words; k++) {
        h ^= (uint64_t)key[k];
        h *= 0xD6E8FEB86659FD93u;
        h ^= h >> 32;
    }
    return h;
}

static int is_for(const Entry *e, const int64_t *key, int words)
{
    return e && e->words == words && !memcmp(e->key, key, (size_t)words * sizeof(int64_t));
}

static Entry *find(Caller *c, const int64_t *key, int words)
{
    if (is_for(c->last, key, words)) return c->last;
    uint64_t h = hash_of(key, words);
    for (uint64_t at = h % TABLE; c->table[at]; at = (at + 1) % TABLE)
        if (c->table[at]->hash == h && is_for(c->table[at], key, words))
            return c->last = c->table[at];
    return 0;
}

/* Add a plan for a kind of arguments that has none; return whether there was memory for it. */
static int add(Caller *c, const int64_t *key, int words, const Plan *plan)
{
    Entry *e = calloc(1, sizeof *e);
    int64_t *copy = malloc((size_t)words * sizeof *key);
    if (!e || !copy) {
        free(e);
        free(copy);
        return 0;
    }
    e->hash = hash_of(key, words);
    e->words = words;
    e->key = memcpy(copy, key, (size_t)words * sizeof *key);
    e->plan = *plan;
    Py_IncRef(plan->keep);
    uint64_t at = e->hash % TABLE;
    while (c->table[at]) at = (at + 1) % TABLE;
    c->table[at] = e;
    c->used++;
    return 1;
}

/* Forget all plans. What they kept may run code when it goes, which may call and teach this
 * caller: it is empty before the first of them goes. */
static void forget_all(Caller *c)
{
    Entry *found[MOST_PLANS];
    int count = 0;
    for (int k = 0; k < TABLE; k++) {
        if (c->table[k]) found[count++] = c->table[k];
        c->table[k] = 0;
    }
    c->last = 0;
    c->used = 0;
    while (count) {
        Entry *e = found[--count];
        Object *keep = e->plan.keep;
        free(e->key);
        free(e);
        Py_DecRef(keep);
    }
}

#endif
