/* Whether an object of a JSON text may name a member twice (repeated_members.py).

One pass over the bytes. Names are compared by hash and then byte by byte within their own object.
What is rare is left to Python, which is told "maybe": an escape in a name, many names or levels. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define MOST_NAMES 512 /* of all objects that are open at once */
#define MOST_OF_ONE 64 /* each is compared with all before it */
#define MOST_LEVELS 64

typedef struct {
    uint32_t hash;
    uint32_t length;
    const char *text;
} Name;

/* The closing quote of the string that begins at `at`; NULL without one. */
static const char *
end_of_string(const char *at, const char *end, int *escaped)
{
    while ((at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *back = at;
        while (back[-1] == '\\') {
            back--;
        }
        /* The opening quote stands before any text, so this ends there at the latest. */
        if (((at - back) & 1) == 0) {
            return at;
        }
        *escaped = 1;
        at++;
    }
    return NULL;
}

static int
may_repeat(const char *at, const char *end)
{
    Name names[MOST_NAMES];
    int first[MOST_LEVELS]; /* the first name of each open object; -1 for an array */
    int count = 0, level = -1;
    while (at < end) {
        switch (*at++) {
        case '{':
        case '[':
            if (++level == MOST_LEVELS) {
                return 1;
            }
            first[level] = at[-1] == '{' ? count : -1;
            break;
        case '}':
        case ']':
            if (level < 0) {
                return 0; /* no JSON: whoever decodes it says so */
            }
            if (first[level] >= 0) {
                count = first[level];
            }
            level--;
            break;
        case '"': {
            const char *begin = at;
            int escaped = 0;
            const char *close = end_of_string(at, end, &escaped);
            if (close == NULL) {
                return 0;
            }
            at = close + 1;
            if (level < 0 || first[level] < 0) {
                break;
            }
            const char *next = at;
            while (next < end && (*next == ' ' || *next == '\n' || *next == '\r' || *next == '\t')) {
                next++;
            }
            if (next == end || *next != ':') {
                break;
            }
            at = next + 1;
            size_t length = (size_t)(close - begin);
            if (escaped || memchr(begin, '\\', length) != NULL || count == MOST_NAMES
                || count - first[level] == MOST_OF_ONE) {
                return 1;
            }
            uint32_t hash = 2166136261u;
            for (const char *each = begin; each < close; each++) {
                hash = (hash ^ (unsigned char)*each) * 16777619u;
            }
            for (int i = first[level]; i < count; i++) {
                if (names[i].hash == hash && names[i].length == length
                    && memcmp(names[i].text, begin, length) == 0) {
                    return 1;
                }
            }
            names[count++] = (Name){hash, (uint32_t)length, begin};
            break;
        }
        default:
            break;
        }
    }
    return 0;
}

static PyObject *
may_repeat_members(PyObject *Py_UNUSED(module), PyObject *body)
{
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(body, &text, &size) < 0) {
        return NULL;
    }
    return PyBool_FromLong(may_repeat(text, text + size));
}

static PyMethodDef methods[] = {
    {"may_repeat_members", may_repeat_members, METH_O,
     "Whether an object of a JSON text may name a member twice."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_members", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__members(void)
{
    return PyModule_Create(&module);
}
