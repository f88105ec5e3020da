/* The text of a UUID of version 7 (identifiers.py). */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define RANDOM_BYTES 10
#define LENGTH 36

static PyObject *
write_identifier(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    char *random;
    Py_ssize_t size;
    if (count != 2) {
        return PyErr_Format(PyExc_TypeError, "write_identifier takes a time and random bytes");
    }
    unsigned long long time = PyLong_AsUnsignedLongLong(args[0]);
    if ((time == (unsigned long long)-1 && PyErr_Occurred())
        || PyBytes_AsStringAndSize(args[1], &random, &size) < 0) {
        return NULL;
    }
    if (size != RANDOM_BYTES) {
        return PyErr_Format(PyExc_ValueError, "of random bytes it takes %d", RANDOM_BYTES);
    }
    unsigned char bytes[16];
    for (int at = 0; at < 6; at++) {
        bytes[at] = (unsigned char)(time >> (40 - 8 * at));
    }
    memcpy(bytes + 6, random, RANDOM_BYTES);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    PyObject *text = PyUnicode_New(LENGTH, 127);
    if (text == NULL) {
        return NULL;
    }
    Py_UCS1 *to = PyUnicode_1BYTE_DATA(text);
    for (int at = 0; at < 16; at++) {
        if (at == 4 || at == 6 || at == 8 || at == 10) {
            *to++ = '-';
        }
        *to++ = (Py_UCS1)"0123456789abcdef"[bytes[at] >> 4];
        *to++ = (Py_UCS1)"0123456789abcdef"[bytes[at] & 15];
    }
    return text;
}

static PyMethodDef methods[] = {
    {"write_identifier", (PyCFunction)(void (*)(void))write_identifier, METH_FASTCALL,
     "A UUID of version 7 from milliseconds since the epoch and 10 random bytes."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_identifiers", NULL, 0, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__identifiers(void)
{
    return PyModule_Create(&module);
}
