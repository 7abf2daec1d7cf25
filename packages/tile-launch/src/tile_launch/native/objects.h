/* What is used of Python, NumPy and DLPack, declared here: no header of theirs is needed.
 *
 * Of Python it is the stable interface; the fields of arrays are those of NumPy's public structure,
 * which Python compares with arrays before it uses this library; torch fills a DLTensor through the
 * functions that it publishes for that (DLPack 1.2).
 */
#ifndef TILE_OBJECTS_H
#define TILE_OBJECTS_H

#include <stdint.h>

/* Python ------------------------------------------------------------------------------------- */

typedef struct Object Object;
typedef struct {
    const char *name;
    Object *(*call)(Object *, Object *const *, intptr_t);
    int flags;
    const char *doc;
} Method;
enum { FASTCALL = 0x80 };

extern Object *PyCFunction_NewEx(Method *, Object *, Object *);
extern Object *PyCapsule_New(void *, const char *, void (*)(Object *));
extern void *PyCapsule_GetPointer(Object *, const char *);
extern Object *PyObject_Vectorcall(Object *, Object *const *, size_t, Object *);
extern Object *PyObject_GetAttrString(Object *, const char *);
extern Object *PyList_New(intptr_t);
extern int PyList_SetItem(Object *, intptr_t, Object *);
extern Object *PyTuple_New(intptr_t);
extern int PyTuple_SetItem(Object *, intptr_t, Object *);
extern Object *PyLong_FromLong(long);
extern long long PyLong_AsLongLongAndOverflow(Object *, int *);
extern unsigned long long PyLong_AsUnsignedLongLongMask(Object *);
extern double PyFloat_AsDouble(Object *);
extern double PyLong_AsDouble(Object *);
extern Object *PyErr_Occurred(void);
extern void PyErr_Clear(void);
extern Object *PyErr_NoMemory(void);
extern void PyErr_SetString(Object *, const char *);
extern void *PyEval_SaveThread(void);
extern void PyEval_RestoreThread(void *);
extern void Py_IncRef(Object *);
extern void Py_DecRef(Object *);
extern Object *PyExc_RuntimeError;
extern char PyLong_Type, PyFloat_Type, PyBool_Type, _Py_TrueStruct, _Py_NoneStruct,
    _Py_NotImplementedStruct;

#define TRUE ((Object *)&_Py_TrueStruct)
#define NONE ((Object *)&_Py_NoneStruct)
#define MISS ((Object *)&_Py_NotImplementedStruct)

struct Object {
    intptr_t references;
    const void *type;
};

/* NumPy -------------------------------------------------------------------------------------- */

/* PyArrayObject_fields */
typedef struct {
    Object head;
    char *data;
    int rank;
    intptr_t *shape, *strides;
    Object *base, *element;
    int flags;
} Array;

/* DLPack ------------------------------------------------------------------------------------- */

/* DLTensor */
typedef struct {
    char *data;
    int32_t device, number;
    int32_t rank;
    uint32_t element;
    int64_t *shape, *strides;
    uint64_t offset;
} Tensor;

#endif
