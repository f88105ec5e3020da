/* One group's elements in order of event time, as in run.py: a run is one block; a long run has
   several, each with its partial aggregates, so that a read looks into the elements of two blocks.

   Keys and values are texts, numbers and tuples of them: comparing, hashing or freeing one runs no
   Python code that could change a run, and none can be part of a reference cycle. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#define SHARED 256 /* equal values among this many last elements are one object */

/* ---- runs: an array of times, followed by one of values (VALUED), followed by one of the values'
   hashes (HASHED, for series with `distinct` windows) ---- */

enum { BARE, VALUED, HASHED };

typedef struct {
    uint32_t length, room;
    int64_t times[];
} Run;

static inline PyObject **values_of(Run *run) { return (PyObject **)(run->times + run->room); }

static inline uint32_t *hashes_of(Run *run) { return (uint32_t *)(values_of(run) + run->room); }

/* Odd, and secret: known ones would let whoever pays choose numbers that all have one hash. */
static uint64_t multipliers[2];

static inline uint64_t mixed(uint64_t hash) {
    hash *= multipliers[0];
    return (hash ^ hash >> 32) * multipliers[1];
}

/* The hash of a group or value; -1 with an error set. Parts of a tuple are mixed one by one, as Python
   joins theirs in a way that is known. */
static inline int short_hash(PyObject *object, uint32_t *hash) {
    uint64_t found = 0;
    int several = PyTuple_CheckExact(object);
    Py_ssize_t count = several ? PyTuple_GET_SIZE(object) : 1;
    for (Py_ssize_t at = 0; at < count; at++) {
        Py_hash_t part = PyObject_Hash(several ? PyTuple_GET_ITEM(object, at) : object);
        if (part == -1) return -1;
        found = mixed((found ^ found >> 32) + (uint64_t)part);
    }
    *hash = (uint32_t)(found >> 32);
    return 0;
}

static Run *run_with_room(uint32_t room, int valued) {
    size_t each = sizeof(int64_t) + (valued ? sizeof(PyObject *) : 0)
        + (valued == HASHED ? sizeof(uint32_t) : 0);
    Run *run = PyMem_Malloc(sizeof(Run) + room * each);
    if (run == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    run->length = 0;
    run->room = room;
    return run;
}

/* A run of another size with the elements from `from` on; takes over their references. */
static Run *run_moved(Run *run, uint32_t from, uint32_t room, int valued) {
    uint32_t count = run->length - from;
    Run *moved = run_with_room(room, valued);
    if (moved == NULL) return NULL;
    memcpy(moved->times, run->times + from, count * sizeof(int64_t));
    if (valued) memcpy(values_of(moved), values_of(run) + from, count * sizeof(PyObject *));
    if (valued == HASHED) memcpy(hashes_of(moved), hashes_of(run) + from, count * sizeof(uint32_t));
    moved->length = count;
    return moved;
}

static uint32_t later_than(const int64_t *times, uint32_t length, int64_t at) {
    uint32_t low = 0, high = length;
    while (low < high) {
        uint32_t middle = (low + high) >> 1;
        if (at < times[middle]) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* An equal value among the last `SHARED` elements, else the given one; NULL with an error. */
static PyObject *shared_value(Run *run, PyObject *value, uint32_t hash) {
    const uint32_t *hashes = hashes_of(run);
    for (uint32_t at = run->length > SHARED ? run->length - SHARED : 0; at < run->length; at++) {
        if (hashes[at] != hash) continue;
        PyObject *found = values_of(run)[at];
        int same = PyObject_RichCompareBool(found, value, Py_EQ);
        if (same < 0) return NULL;
        if (same) return found;
    }
    return value;
}

static Run *run_insert_at(Run *run, int valued, uint32_t at, int64_t time, PyObject *value, uint32_t hash) {
    uint32_t length = run->length;
    if (length == run->room) {
        Run *bigger = run_moved(run, 0, length < 4 ? 4 : length + length / 2, valued);
        if (bigger == NULL) return NULL;
        PyMem_Free(run);
        run = bigger;
    }
    memmove(run->times + at + 1, run->times + at, (length - at) * sizeof(int64_t));
    run->times[at] = time;
    if (valued) {
        PyObject **values = values_of(run);
        memmove(values + at + 1, values + at, (length - at) * sizeof(PyObject *));
        values[at] = Py_NewRef(value);
    }
    if (valued == HASHED) {
        uint32_t *hashes = hashes_of(run);
        memmove(hashes + at + 1, hashes + at, (length - at) * sizeof(uint32_t));
        hashes[at] = hash;
    }
    run->length++;
    return run;
}

static Run *run_insert(Run *run, int valued, int64_t time, PyObject *value) {
    uint32_t length = run->length, hash = 0;
    if (valued == HASHED) {
        if (short_hash(value, &hash) < 0) return NULL;
        value = shared_value(run, value, hash);
        if (value == NULL) return NULL;
    }
    uint32_t at = length && time < run->times[length - 1] ? later_than(run->times, length, time) : length;
    return run_insert_at(run, valued, at, time, value, hash);
}

static void run_cut(Run *run, int valued, uint32_t from, uint32_t to) {
    uint32_t left = run->length - to;
    if (from == to) return;
    memmove(run->times + from, run->times + to, left * sizeof(int64_t));
    if (valued) {
        PyObject **values = values_of(run);
        for (uint32_t at = from; at < to; at++) Py_DECREF(values[at]);
        memmove(values + from, values + to, left * sizeof(PyObject *));
    }
    if (valued == HASHED) {
        uint32_t *hashes = hashes_of(run);
        memmove(hashes + from, hashes + to, left * sizeof(uint32_t));
    }
    run->length -= to - from;
}

static void run_free(Run *run, int valued) {
    run_cut(run, valued, 0, run->length);
    PyMem_Free(run);
}

typedef struct {
    PyObject *value;
    uint32_t hash;
} Hashed;

static int compare_hashes(const void *one, const void *other) {
    uint32_t first = ((const Hashed *)one)->hash, second = ((const Hashed *)other)->hash;
    return (first > second) - (first < second);
}

/* Puts the elements from `from` to before `to`, which are of one time, in the order of their hashes. */
static int run_sort_equal(Run *run, int valued, uint32_t from, uint32_t to) {
    PyObject **values = values_of(run);
    Hashed *hashed = PyMem_Malloc((to - from) * sizeof *hashed);
    int failed = 0;
    if (hashed == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (uint32_t at = from; at < to && !failed; at++) {
        hashed[at - from].value = values[at];
        failed = short_hash(values[at], &hashed[at - from].hash);
    }
    if (!failed) {
        qsort(hashed, to - from, sizeof *hashed, compare_hashes);
        for (uint32_t at = from; at < to; at++) {
            values[at] = hashed[at - from].value;
            if (valued == HASHED) hashes_of(run)[at] = hashed[at - from].hash;
        }
    }
    PyMem_Free(hashed);
    return failed;
}

/* Puts elements of one time in the order of their hashes, as a long run has them. */
static int run_sort(Run *run, int valued) {
    for (uint32_t from = 0, to; from < run->length; from = to) {
        for (to = from + 1; to < run->length && run->times[to] == run->times[from];) to++;
        if (to > from + 1 && run_sort_equal(run, valued, from, to) < 0) return -1;
    }
    return 0;
}

/* Removes one element of that time and value: 1, 0 when there is none, -1 with an error. */
static int run_remove(Run *run, int valued, int64_t time, PyObject *value) {
    for (uint32_t at = later_than(run->times, run->length, time);
         at > 0 && run->times[at - 1] == time; at--) {
        int same = !valued || PyObject_RichCompareBool(values_of(run)[at - 1], value, Py_EQ);
        if (same < 0) return -1;
        if (same) {
            run_cut(run, valued, at - 1, at);
            return 1;
        }
    }
    return 0;
}

/* ---- parts: partial aggregates of values, as 64-bit integers ---- */

enum { TOTAL, LEAST, GREATEST, TRUTH, PART_KINDS };
enum { HAS_FALSE = 1, HAS_TRUE = 2, HAS_NONE = 4 };

/* The part of two parts; 0 when it does not fit into 64 bits. */
static inline int part_of_both(int kind, int64_t one, int64_t other, int64_t *both) {
    if (kind == TOTAL) return !__builtin_add_overflow(one, other, both);
    if (kind == TRUTH) *both = one | other;
    else *both = (kind == LEAST) == (one < other) ? one : other;
    return 1;
}

static int part_of_one(int kind, PyObject *value, int64_t *part) {
    int overflow = 0;
    if (kind == TRUTH) {
        *part = value == Py_True ? HAS_TRUE : value == Py_False ? HAS_FALSE : HAS_NONE;
        return value == Py_None || PyBool_Check(value);
    }
    if (!PyLong_CheckExact(value)) return 0;
    *part = PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
}

/* The part of one or more values; 0 when it does not fit into 64 bits. */
static int part_of(int kind, PyObject **values, uint32_t count, int64_t *part) {
    int64_t one;
    if (!part_of_one(kind, values[0], part)) return 0;
    for (uint32_t at = 1; at < count; at++)
        if (!part_of_one(kind, values[at], &one) || !part_of_both(kind, *part, one, part)) return 0;
    return 1;
}

/* ---- long runs: elements of one time are in the order of their values' hashes, so that one of many is
   found by halves ---- */

typedef struct {
    int64_t *values; /* by block; NULL until this part is first read */
    uint8_t *known;
} Parts;

typedef struct Distinct Distinct;

typedef struct {
    Run **blocks;    /* in order of time, none empty */
    int64_t *firsts; /* lower bounds of the times in each block */
    uint32_t *lengths;
    uint32_t count, room, most; /* blocks, room for blocks, the most elements of a block */
    Py_ssize_t size;
    int64_t latest; /* upper bound of all times */
    Parts parts[PART_KINDS];
    Distinct *distinct; /* NULL until a `distinct` window is read */
} LongRun;

static LongRun *long_new(uint32_t most) {
    LongRun *run = PyMem_Calloc(1, sizeof(LongRun));
    if (run == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    run->most = most < 4 ? 4 : most;
    run->latest = INT64_MIN;
    return run;
}

/* Frees all but `distinct`. */
static void long_free(LongRun *run, int valued) {
    for (uint32_t at = 0; at < run->count; at++) run_free(run->blocks[at], valued);
    for (int kind = 0; kind < PART_KINDS; kind++) {
        PyMem_Free(run->parts[kind].values);
        PyMem_Free(run->parts[kind].known);
    }
    PyMem_Free(run->blocks);
    PyMem_Free(run->firsts);
    PyMem_Free(run->lengths);
    PyMem_Free(run);
}

static int resized(void *column, size_t size) {
    void *bigger = PyMem_Realloc(*(void **)column, size);
    if (bigger == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *(void **)column = bigger;
    return 0;
}

#define OPEN_UP(column, at, count) \
    memmove((column) + (at) + 1, (column) + (at), ((count) - (at)) * sizeof *(column))
#define CLOSE_UP(column, from, to, count) \
    memmove((column) + (from), (column) + (to), ((count) - (to)) * sizeof *(column))

static int long_make_room(LongRun *run) {
    if (run->count < run->room) return 0;
    uint32_t room = run->room ? run->room * 2 : 4;
    if (resized(&run->blocks, room * sizeof *run->blocks) < 0) return -1;
    if (resized(&run->firsts, room * sizeof *run->firsts) < 0) return -1;
    if (resized(&run->lengths, room * sizeof *run->lengths) < 0) return -1;
    for (int kind = 0; kind < PART_KINDS; kind++) {
        Parts *parts = run->parts + kind;
        if (parts->values == NULL) continue;
        if (resized(&parts->values, room * sizeof *parts->values) < 0) return -1;
        if (resized(&parts->known, room * sizeof *parts->known) < 0) return -1;
    }
    run->room = room;
    return 0;
}

/* Inserts a block at `at`. */
static int long_open(LongRun *run, uint32_t at, Run *block, int64_t first) {
    if (long_make_room(run) < 0) return -1;
    OPEN_UP(run->blocks, at, run->count);
    OPEN_UP(run->firsts, at, run->count);
    OPEN_UP(run->lengths, at, run->count);
    for (int kind = 0; kind < PART_KINDS; kind++) {
        Parts *parts = run->parts + kind;
        if (parts->values == NULL) continue;
        OPEN_UP(parts->values, at, run->count);
        OPEN_UP(parts->known, at, run->count);
        parts->known[at] = 0;
    }
    run->blocks[at] = block;
    run->firsts[at] = first;
    run->lengths[at] = block->length;
    run->count++;
    return 0;
}

static void long_close(LongRun *run, uint32_t at) {
    PyMem_Free(run->blocks[at]);
    CLOSE_UP(run->blocks, at, at + 1, run->count);
    CLOSE_UP(run->firsts, at, at + 1, run->count);
    CLOSE_UP(run->lengths, at, at + 1, run->count);
    for (int kind = 0; kind < PART_KINDS; kind++) {
        Parts *parts = run->parts + kind;
        if (parts->values == NULL) continue;
        CLOSE_UP(parts->values, at, at + 1, run->count);
        CLOSE_UP(parts->known, at, at + 1, run->count);
    }
    run->count--;
}

static void long_forget_parts(LongRun *run, uint32_t at) {
    for (int kind = 0; kind < PART_KINDS; kind++)
        if (run->parts[kind].values != NULL) run->parts[kind].known[at] = 0;
}

/* The index of the block that a time belongs to; the run must not be empty. */
static inline uint32_t long_block(LongRun *run, int64_t time) {
    uint32_t at = later_than(run->firsts, run->count, time);
    return at ? at - 1 : 0;
}

/* Whether the element at `at` comes behind a new one of this time and hash: 1 or 0, -1 with an error. */
static inline int comes_behind(Run *run, int valued, uint32_t at, int64_t time, uint32_t hash) {
    uint32_t other;
    if (!valued || run->times[at] != time) return run->times[at] > time;
    if (short_hash(values_of(run)[at], &other) < 0) return -1;
    return other > hash;
}

typedef struct {
    uint32_t block, at;
} Place;

/* Where an element of this time and hash is inserted, behind its equals; the run must not be empty. -1
   with an error. */
static int long_find(LongRun *run, int valued, int64_t time, uint32_t hash, Place *found) {
    /* Blocks whose lower bound is this time begin with one of its elements, or have none. */
    uint32_t low = later_than(run->firsts, run->count, time - 1), high = later_than(run->firsts, run->count, time);
    if (low == 0) low = 1;
    while (low < high) {
        uint32_t middle = (low + high) >> 1;
        int behind = comes_behind(run->blocks[middle], valued, 0, time, hash);
        if (behind < 0) return -1;
        if (behind) high = middle;
        else low = middle + 1;
    }
    found->block = low - 1;
    Run *block = run->blocks[found->block];
    low = later_than(block->times, block->length, time - 1);
    high = later_than(block->times, block->length, time);
    while (low < high) {
        uint32_t middle = (low + high) >> 1;
        int behind = comes_behind(block, valued, middle, time, hash);
        if (behind < 0) return -1;
        if (behind) high = middle;
        else low = middle + 1;
    }
    found->at = low;
    return 0;
}

/* Splits the full block of a place for an element of this time, and sets where that goes then. At the
   end of the run a new block begins instead, so that runs that grow in order have full blocks. */
static int long_divide(LongRun *run, int valued, Place *place, int64_t time) {
    uint32_t at = place->block;
    Run *block = run->blocks[at];
    uint32_t half = block->length / 2;
    if (at == run->count - 1 && place->at == block->length) {
        Run *later = run_with_room(run->most < 16 ? run->most : 16, valued);
        if (later == NULL) return -1;
        if (long_open(run, at + 1, later, time) < 0) {
            PyMem_Free(later);
            return -1;
        }
        *place = (Place){at + 1, 0};
        return 0;
    }
    Run *later = run_moved(block, half, run->most, valued);
    if (later == NULL) return -1;
    if (long_open(run, at + 1, later, later->times[0]) < 0) {
        PyMem_Free(later);
        return -1;
    }
    block->length = run->lengths[at] = half;
    long_forget_parts(run, at);
    if (place->at > half) *place = (Place){at + 1, place->at - half};
    return 0;
}

static int long_insert(LongRun *run, int valued, int64_t time, PyObject *value) {
    if (run->count == 0) {
        Run *first = run_with_room(4, valued);
        if (first == NULL) return -1;
        if (long_open(run, 0, first, time) < 0) {
            PyMem_Free(first);
            return -1;
        }
    }
    Place place = {run->count - 1, run->lengths[run->count - 1]};
    if (run->size && time <= run->latest) {
        uint32_t hash = 0;
        if (valued && short_hash(value, &hash) < 0) return -1;
        int behind = comes_behind(run->blocks[place.block], valued, place.at - 1, time, hash);
        if (behind < 0 || (behind && long_find(run, valued, time, hash, &place) < 0)) return -1;
    }
    if (run->lengths[place.block] >= run->most && long_divide(run, valued, &place, time) < 0) return -1;
    uint32_t at = place.block;
    Run *block = run_insert_at(run->blocks[at], valued, place.at, time, value, 0);
    if (block == NULL) return -1;
    run->blocks[at] = block;
    run->lengths[at] = block->length;
    if (time < run->firsts[at]) run->firsts[at] = time;
    if (time > run->latest) run->latest = time;
    run->size++;
    for (int kind = 0; kind < PART_KINDS; kind++) {
        Parts *parts = run->parts + kind;
        int64_t one;
        if (parts->values == NULL || !parts->known[at]) continue;
        parts->known[at] = part_of_one(kind, value, &one)
            && part_of_both(kind, parts->values[at], one, parts->values + at);
    }
    return 0;
}

/* Removes one element of that time and value: 1, 0 when there is none, -1 with an error. */
static int long_remove(LongRun *run, int valued, int64_t time, PyObject *value) {
    uint32_t hash = 0, other = 0;
    Place place;
    if (run->count == 0) return 0;
    if (valued && short_hash(value, &hash) < 0) return -1;
    if (long_find(run, valued, time, hash, &place) < 0) return -1;
    for (uint32_t at = place.block, behind = place.at;; behind = run->lengths[--at]) {
        Run *block = run->blocks[at];
        for (; behind > 0; behind--) {
            if (block->times[behind - 1] != time) return 0;
            if (valued && short_hash(values_of(block)[behind - 1], &other) < 0) return -1;
            if (other != hash) return 0;
            int same = !valued || PyObject_RichCompareBool(values_of(block)[behind - 1], value, Py_EQ);
            if (same < 0) return -1;
            if (!same) continue;
            run_cut(block, valued, behind - 1, behind);
            run->size--;
            run->lengths[at]--;
            long_forget_parts(run, at);
            if (run->lengths[at] == 0) long_close(run, at);
            return 1;
        }
        if (at == 0) return 0;
    }
}

/* The number of the first block's elements that are not later than `horizon`. */
static uint32_t long_over(LongRun *run, int64_t horizon) {
    if (run->count == 0 || run->firsts[0] > horizon) return 0;
    return later_than(run->blocks[0]->times, run->lengths[0], horizon);
}

/* Removes the first `gone` elements of the first block. */
static void long_cut(LongRun *run, int valued, uint32_t gone) {
    Run *block = run->blocks[0];
    run_cut(block, valued, 0, gone);
    run->size -= gone;
    run->lengths[0] = block->length;
    long_forget_parts(run, 0);
    if (block->length == 0) long_close(run, 0);
    else run->firsts[0] = block->times[0];
}

/* Removes all elements not later than `horizon`; returns how many. */
static Py_ssize_t long_drop(LongRun *run, int valued, int64_t horizon) {
    Py_ssize_t before = run->size;
    uint32_t gone;
    while ((gone = long_over(run, horizon))) long_cut(run, valued, gone);
    return before - run->size;
}

/* The number of elements not later than `at`. */
static Py_ssize_t long_rank(LongRun *run, int64_t at) {
    if (run->count == 0 || at < run->firsts[0]) return 0;
    if (at >= run->latest) return run->size;
    uint32_t block = long_block(run, at);
    Py_ssize_t rank = later_than(run->blocks[block]->times, run->lengths[block], at);
    if (block <= run->count / 2) {
        for (uint32_t before = 0; before < block; before++) rank += run->lengths[before];
        return rank;
    }
    Py_ssize_t behind = 0;
    for (uint32_t later = block; later < run->count; later++) behind += run->lengths[later];
    return run->size - behind + rank;
}

static int long_ask(LongRun *run, int kind) {
    Parts *parts = run->parts + kind;
    if (parts->values != NULL) return 0;
    int64_t *values = PyMem_Calloc(run->room, sizeof *values);
    uint8_t *known = PyMem_Calloc(run->room, sizeof *known);
    if (values == NULL || known == NULL) {
        PyMem_Free(values);
        PyMem_Free(known);
        PyErr_NoMemory();
        return -1;
    }
    parts->values = values;
    parts->known = known;
    return 0;
}

/* The number of elements in (since, at], and their part if there are any; -1 when it does not fit
   into 64 bits, or with an error set. */
static Py_ssize_t long_fold(LongRun *run, int kind, int64_t since, int64_t at, int64_t *found) {
    if (run->count == 0 || at < run->firsts[0]) return 0;
    if (long_ask(run, kind) < 0) return -1;
    Parts *parts = run->parts + kind;
    uint32_t low = long_block(run, since), high = long_block(run, at);
    Py_ssize_t counted = 0;
    for (uint32_t block = low; block <= high; block++) {
        uint32_t length = run->lengths[block], from = 0, to = length;
        int64_t part;
        if (block == low) from = later_than(run->blocks[block]->times, length, since);
        if (block == high) to = later_than(run->blocks[block]->times, length, at);
        if (from >= to) continue;
        if (from == 0 && to == length) {
            if (!parts->known[block]) {
                if (!part_of(kind, values_of(run->blocks[block]), length, parts->values + block))
                    return -1;
                parts->known[block] = 1;
            }
            part = parts->values[block];
        } else if (!part_of(kind, values_of(run->blocks[block]) + from, to - from, &part)) {
            return -1;
        }
        if (counted && !part_of_both(kind, *found, part, found)) return -1;
        if (!counted) *found = part;
        counted += to - from;
    }
    return counted;
}

/* The latest time not after `at`, and the earliest not before it: 0 when there is none. */
static int run_latest(Run *run, int64_t at, int64_t *found) {
    uint32_t index = later_than(run->times, run->length, at);
    if (index) *found = run->times[index - 1];
    return index > 0;
}

static int run_earliest(Run *run, int64_t at, int64_t *found) {
    uint32_t index = later_than(run->times, run->length, at - 1);
    if (index < run->length) *found = run->times[index];
    return index < run->length;
}

static int long_latest(LongRun *run, int64_t at, int64_t *found) {
    if (run->count == 0 || at < run->firsts[0]) return 0;
    for (uint32_t block = long_block(run, at) + 1; block > 0; block--)
        if (run_latest(run->blocks[block - 1], at, found)) return 1;
    return 0;
}

static int long_earliest(LongRun *run, int64_t at, int64_t *found) {
    if (run->count == 0) return 0;
    for (uint32_t block = long_block(run, at - 1); block < run->count; block++)
        if (run_earliest(run->blocks[block], at, found)) return 1;
    return 0;
}
