/* What of a body is plain, as most is, and needs no closer look (read.py, redaction.py). */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

/* ---- headers ---- */

/* In the value of a header, in any case: what a token, a key or a cookie of a session has. */
static const char *const marks[] = {"eyj", "-----begin", "sess", "connect.sid=", NULL};
/* What credentials begin with. */
static const char *const schemes[] = {"basic", "bearer", "digest", "dpop", "negotiate", "ntlm", NULL};

static inline char
low(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter;
}

static int
begins_with_one(const char *text, const char *end, const char *const *words)
{
    for (; *words != NULL; words++) {
        const char *at = text, *word = *words;
        while (*word && at < end && low(*at) == *word) {
            at++;
            word++;
        }
        if (!*word) {
            return 1;
        }
    }
    return 0;
}

static int
may_be_secret(PyObject *value)
{
    if (!PyUnicode_IS_COMPACT_ASCII(value)) {
        return 1;
    }
    const char *at = (const char *)PyUnicode_1BYTE_DATA(value);
    const char *end = at + PyUnicode_GET_LENGTH(value);
    while (at < end && *at <= ' ') {
        at++;
    }
    if (begins_with_one(at, end, schemes)) {
        return 1;
    }
    for (; at < end; at++) {
        char letter = low(*at);
        if ((letter == 'e' || letter == '-' || letter == 's' || letter == 'c')
            && begins_with_one(at, end, marks)) {
            return 1;
        }
    }
    return 0;
}

static PyObject *
are_public(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (count != 3 || !PyDict_Check(args[0]) || !PyAnySet_Check(args[1]) || !PyAnySet_Check(args[2])) {
        return PyErr_Format(PyExc_TypeError, "are_public takes headers and two sets of names");
    }
    while (PyDict_Next(args[0], &at, &name, &value)) {
        if (!PyUnicode_CheckExact(value)) {
            Py_RETURN_FALSE;
        }
        int is_harmless = PySet_Contains(args[1], name);
        if (!is_harmless) {
            is_harmless = PySet_Contains(args[2], name);
            if (is_harmless == 1 && may_be_secret(value)) {
                Py_RETURN_FALSE;
            }
        }
        if (is_harmless != 1) {
            return is_harmless < 0 ? NULL : Py_NewRef(Py_False);
        }
    }
    Py_RETURN_TRUE;
}

/* ---- metadata ---- */

static PyObject *
is_plain(PyObject *Py_UNUSED(module), PyObject *object)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    if (!PyDict_Check(object)) {
        return PyErr_Format(PyExc_TypeError, "is_plain takes an object");
    }
    while (PyDict_Next(object, &at, &name, &value)) {
        if (PyDict_Check(value) || PyList_Check(value) || PyFloat_Check(value)) {
            Py_RETURN_FALSE;
        }
    }
    Py_RETURN_TRUE;
}

/* ---- amounts ---- */

#define MOST_DIGITS 12

static PyObject *
plain_amount(PyObject *Py_UNUSED(module), PyObject *text)
{
    Py_buffer view;
    if (PyObject_GetBuffer(text, &view, PyBUF_SIMPLE) < 0) {
        return NULL;
    }
    const char *begin = view.buf, *end = begin + view.len, *at = begin;
    long long hundredths = 0;
    while (at < end && *at >= '0' && *at <= '9' && at - begin < MOST_DIGITS) {
        hundredths = hundredths * 10 + (*at++ - '0');
    }
    int is_whole = at > begin && (*begin != '0' || at - begin == 1);
    hundredths *= 100;
    if (is_whole && at < end && *at == '.') {
        const char *point = at++;
        for (int worth = 10; at < end && *at >= '0' && *at <= '9' && at - point <= 2; worth /= 10) {
            hundredths += worth * (*at++ - '0');
        }
        is_whole = at > point + 1;
    }
    int is_it = is_whole && at == end;
    PyBuffer_Release(&view);
    /* Both are exact, so the quotient is the double nearest to what was written. */
    return is_it ? PyFloat_FromDouble((double)hundredths / 100.0) : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"are_public", (PyCFunction)(void (*)(void))are_public, METH_FASTCALL,
     "Whether headers are text, and certainly not confidential."},
    {"is_plain", is_plain, METH_O, "Whether an object has no object, array or fraction in it."},
    {"plain_amount", plain_amount, METH_O, "The amount, None for one that isn't written plainly."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_plain", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__plain(void)
{
    return PyModule_Create(&module);
}
