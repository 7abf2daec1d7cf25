/* Arguments of Python: what kind they are of, and the addresses and numbers in them. */
#ifndef TILE_READING_H
#define TILE_READING_H

#include "plans.h"

typedef struct {
    char *address;
    union { int64_t i; double d; } number;
} Value;

static int read_array(Array *array, int64_t mask, int64_t *key, char **address)
{
    int rank = array->rank;
    if (rank > MOST_DIMENSIONS) return 0;
    key[0] = 1 | rank << 8;
    key[1] = (intptr_t)array->element;
    key[2] = array->flags;
    key[3] = array->data ? (intptr_t)array->data & mask : -1;
    for (int k = 0; k < rank; k++) { /* an array of rank 0 has no lists */
        key[4 + k] = array->shape[k];
        key[4 + rank + k] = array->strides[k];
    }
    *address = array->data;
    return 4 + 2 * rank;
}

static int read_tensor(const Caller *c, Object *arg, int64_t mask, int64_t *key, char **address)
{
    Tensor t;
    Object *negated;
    if (c->libraries.describe(arg, &t)) {
        PyErr_Clear();
        return 0;
    }
    if (t.rank > MOST_DIMENSIONS || (t.rank && !t.strides)) return 0;
    negated = PyObject_Vectorcall(c->libraries.is_negated, &arg, 1, 0);
    if (!negated) {
        PyErr_Clear();
        return 0;
    }
    Py_DecRef(negated);
    if (negated == TRUE) return 0;
    t.data += t.offset;
    key[0] = 2 | t.rank << 8;
    key[1] = t.element;
    if ((t.element >> 8 & 0xff) <= 8) { /* several types of a byte have one number in DLPack */
        Object *element = PyObject_GetAttrString((Object *)arg, "dtype");
        if (!element) {
            PyErr_Clear();
            return 0;
        }
        key[1] = (intptr_t)element; /* types live as long as torch */
        Py_DecRef(element);
    }
    key[2] = (int64_t)t.device << 32 | (uint32_t)t.number;
    key[3] = t.data ? (intptr_t)t.data & mask : -1;
    for (int k = 0; k < t.rank; k++) {
        key[4 + k] = t.shape[k];
        key[4 + t.rank + k] = t.strides[k];
    }
    *address = t.data;
    return 4 + 2 * t.rank;
}

/* Return how many words of the key an argument takes, or 0 for what Python has to look at. */
static int read_object(const Caller *c, Object *arg, const Parameter *p, int64_t *key, char **address)
{
    const Libraries *known = &c->libraries;
    if (arg == NONE) {
        key[0] = 3;
        *address = 0;
        return 1;
    }
    if (arg->type == known->tensor || arg->type == known->parameter)
        return known->describe ? read_tensor(c, arg, p->mask, key, address) : 0;
    if (arg->type == known->array && known->array)
        return read_array((Array *)arg, p->array_mask, key, address);
    return 0;
}

/* Whether a parameter takes a float: infinities and NaN, and finite ones that fit. */
static int takes(const Parameter *p, double d)
{
    return (d >= -p->largest && d <= p->largest) || d - d != 0;
}

static int read_number(const Parameter *p, Object *arg, Value *value)
{
    if (p->kind == FLOAT) {
        if (arg->type == &PyFloat_Type) {
            value->number.d = PyFloat_AsDouble(arg);
            return takes(p, value->number.d);
        }
        if (arg->type != &PyLong_Type) return 0;
        value->number.d = PyLong_AsDouble(arg);
        if (value->number.d == -1.0 && PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        return takes(p, value->number.d);
    }
    if (p->kind == BOOL) {
        if (arg->type != &PyBool_Type) return 0;
        value->number.i = arg == TRUE;
        return 1;
    }
    if (arg->type != &PyLong_Type) return 0;
    int overflow = 0;
    value->number.i = PyLong_AsLongLongAndOverflow(arg, &overflow);
    return !overflow && value->number.i >= p->low && value->number.i <= p->high;
}

/* Fill key and values from the arguments; return the length of the key, or 0. */
static int read_all(const Caller *c, Object *const *args, intptr_t count, int64_t *key, Value *values)
{
    int words = 0, used;
    intptr_t given = 0;
    if (count != c->inputs) return 0;
    for (int k = 0; k < c->count; k++) {
        const Parameter *p = c->parameter + k;
        if (p->kind == OUTPUT) continue;
        Object *arg = args[given++];
        if (p->kind == TENSOR) {
            used = read_object(c, arg, p, key + words, &values[k].address);
            if (!used) return 0;
            words += used;
        } else {
            if (!read_number(p, arg, values + k)) return 0;
            if (p->keyed) key[words++] = values[k].number.i;
        }
    }
    key[words++] = 4; /* so that there is always a word */
    return words;
}

#endif
