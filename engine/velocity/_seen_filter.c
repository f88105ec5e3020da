/* Which groups a file may have (first_seen_file.py): a Bloom filter that grows.

   A group is given by its series' number and its hash of 16 bytes. It is in one block of 512 bits, as
   five of them, of one layer; each layer has room for twice as many groups as the one before. Where
   there can be no further layer, the last one fills up, and more and more groups that were never added
   are found. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define HASH 16
#define WORDS 8
#define BITS 5
#define ROOM 32     /* groups to a block, of 16 bits each */
#define FIRST 2048  /* blocks of the first layer: 128 KB */
#define LAYERS 11   /* 256 MB in all, for 134,000,000 groups */

typedef struct {
    uint64_t words[WORDS];
} Block;

typedef struct {
    PyObject_HEAD
    Block *layers[LAYERS];
    int count;
    uint64_t held; /* groups in the last layer */
} SeenFilter;

/* Where a group is in every layer, and its bits there, nine of the number for each. */
typedef struct {
    uint64_t place, bits;
} Spot;

static inline Spot spot_of(uint64_t series, const unsigned char *hash) {
    Spot spot;
    memcpy(&spot.place, hash, sizeof spot.place);
    memcpy(&spot.bits, hash + sizeof spot.place, sizeof spot.bits);
    spot.place = (spot.place ^ series) * 0x9e3779b97f4a7c15ULL;
    spot.place ^= spot.place >> 32;
    return spot;
}

static inline uint64_t blocks_of(int layer) { return (uint64_t)FIRST << layer; }

static inline Block *block_of(SeenFilter *self, int layer, Spot spot) {
    return self->layers[layer] + (spot.place & (blocks_of(layer) - 1));
}

static int has(SeenFilter *self, Spot spot) {
    for (int layer = self->count - 1; layer >= 0; layer--) {
        const Block *block = block_of(self, layer, spot);
        uint64_t bits = spot.bits, all = 1;
        for (int each = 0; each < BITS; each++, bits >>= 9)
            all &= block->words[bits >> 6 & (WORDS - 1)] >> (bits & 63);
        if (all) return 1;
    }
    return 0;
}

/* 0 without memory for it. */
static int add_layer(SeenFilter *self) {
    Block *layer = PyMem_RawCalloc(blocks_of(self->count), sizeof(Block));
    if (layer == NULL) return 0;
    self->layers[self->count++] = layer;
    self->held = 0;
    return 1;
}

static PyObject *add(SeenFilter *self, PyObject *args) {
    unsigned long long series;
    Py_buffer hashes;
    if (!PyArg_ParseTuple(args, "Ky*", &series, &hashes)) return NULL;
    const unsigned char *hash = hashes.buf, *end = hash + hashes.len / HASH * HASH;
    for (; hash < end; hash += HASH) {
        Spot spot = spot_of(series, hash);
        if (has(self, spot)) continue;
        if (self->held >= ROOM * blocks_of(self->count - 1) && self->count < LAYERS) add_layer(self);
        Block *block = block_of(self, self->count - 1, spot);
        uint64_t bits = spot.bits;
        for (int each = 0; each < BITS; each++, bits >>= 9)
            block->words[bits >> 6 & (WORDS - 1)] |= 1ULL << (bits & 63);
        self->held++;
    }
    PyBuffer_Release(&hashes);
    Py_RETURN_NONE;
}

static PyObject *may_have(SeenFilter *self, PyObject *args) {
    unsigned long long series;
    const char *hash;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "Ky#", &series, &hash, &size)) return NULL;
    if (size != HASH) {
        PyErr_SetString(PyExc_ValueError, "a group's hash has 16 bytes");
        return NULL;
    }
    return PyBool_FromLong(has(self, spot_of(series, (const unsigned char *)hash)));
}

static PyObject *get_size(SeenFilter *self, void *Py_UNUSED(closure)) {
    uint64_t blocks = 0;
    for (int layer = 0; layer < self->count; layer++) blocks += blocks_of(layer);
    return PyLong_FromUnsignedLongLong(blocks * sizeof(Block));
}

static int filter_init(PyObject *object, PyObject *args, PyObject *kwargs) {
    static char *names[] = {NULL};
    SeenFilter *self = (SeenFilter *)object;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "", names)) return -1;
    if (self->count == 0 && !add_layer(self)) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void filter_dealloc(PyObject *object) {
    SeenFilter *self = (SeenFilter *)object;
    for (int layer = 0; layer < self->count; layer++) PyMem_RawFree(self->layers[layer]);
    Py_TYPE(object)->tp_free(object);
}

static PyMethodDef filter_methods[] = {
    {"add", (PyCFunction)add, METH_VARARGS, "Add groups of a series: their hashes, one behind another."},
    {"may_have", (PyCFunction)may_have, METH_VARARGS,
     "Whether a group of a series, given by its hash, may have been added; False if it certainly was not."},
    {NULL},
};

static PyGetSetDef filter_getset[] = {
    {"size", (getter)get_size, NULL, "The bytes that it takes.", NULL},
    {NULL},
};

static PyTypeObject FilterType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "tollkeeper.engine.velocity._seen_filter.SeenFilter",
    .tp_basicsize = sizeof(SeenFilter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = PyType_GenericNew,
    .tp_init = filter_init,
    .tp_dealloc = filter_dealloc,
    .tp_methods = filter_methods,
    .tp_getset = filter_getset,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tollkeeper.engine.velocity._seen_filter",
    .m_doc = "Which groups a file may have, in C.",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__seen_filter(void) {
    if (PyType_Ready(&FilterType) < 0) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL || PyModule_AddObjectRef(module, "SeenFilter", (PyObject *)&FilterType) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
