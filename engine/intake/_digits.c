/* Whether a JSON text may hold a card number (redaction.py, which looks closer where it may).

What is looked for: of digits, a run of twelve, or two groups of four with a dot, a line or a slash
between. Separators that writers put into a number are passed over wherever they are. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define SHORTEST 12
#define GROUP 4

enum { OTHER, DIGIT, BETWEEN, PASSED };

static unsigned char plain[256], escaped[256];

static void
fill_tables(void)
{
    for (int digit = '0'; digit <= '9'; digit++) {
        plain[digit] = DIGIT;
    }
    plain['.'] = plain['_'] = plain['/'] = BETWEEN;
    /* A space, one that does not break (two bytes), a hyphen, and what an escape begins with. */
    plain[' '] = plain[0xc2] = plain[0xa0] = plain['-'] = plain['\\'] = PASSED;
    memcpy(escaped, plain, sizeof plain);
    for (const char *each = "uadefADEF"; *each; each++) {
        escaped[(unsigned char)*each] = DIGIT;
    }
}

static int
has_unicode_escape(const char *at, const char *end)
{
    while ((at = memchr(at, '\\', (size_t)(end - at))) != NULL && ++at < end) {
        if (*at == 'u') {
            return 1;
        }
    }
    return 0;
}

/* Whether a number is in the bytes from `at` up to the first that no number has; there `at` is then. */
static int
is_in_stretch(const char **at, const char *end, const unsigned char *kinds)
{
    int run = 0, before = 0; /* digits in a row, and how many stood in front of the separator before them */
    for (; *at < end; ++*at) {
        switch (kinds[(unsigned char)**at]) {
        case DIGIT:
            if (++run == SHORTEST || (run == GROUP && before >= GROUP)) {
                return 1;
            }
            break;
        case BETWEEN:
            before = run;
            run = 0;
            break;
        case PASSED:
            break;
        default:
            return 0;
        }
    }
    return 0;
}

static int
may_hold(const char *begin, const char *end)
{
    const unsigned char *kinds = has_unicode_escape(begin, end) ? escaped : plain;
    /* Of so many bytes in a row, which a number has at least, one is looked at. */
    const int step = 2 * GROUP + 1;
    const char *at = begin;
    while (end - at >= step) {
        at += step - 1;
        if (kinds[(unsigned char)*at] == OTHER) {
            at++;
            continue;
        }
        while (at > begin && kinds[(unsigned char)at[-1]] != OTHER) {
            at--;
        }
        if (is_in_stretch(&at, end, kinds)) {
            return 1;
        }
    }
    return 0;
}

static PyObject *
may_hold_number(PyObject *Py_UNUSED(module), PyObject *body)
{
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(body, &text, &size) < 0) {
        return NULL;
    }
    return PyBool_FromLong(may_hold(text, text + size));
}

static PyMethodDef methods[] = {
    {"may_hold_number", may_hold_number, METH_O, "Whether a JSON text may hold a card number."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_digits", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__digits(void)
{
    fill_tables();
    return PyModule_Create(&module);
}
