"""Steps of kernels, which other kernels call and Python cannot, made callable for tests."""

from dbanon.kernels.compilation import kernel

CALL = "def {name}(*arguments):\n    return step(*arguments)\n"


def called(step):
    """Return a kernel that calls a step, or what makes its arrays, with the same arguments.

    It passes for a kernel of the step's module, so that it is kept with that module's code and
    compiled again when that changes. A closure would not be found again in the cache.
    """
    function = step.py_func
    name = f"call{function.__name__}"
    module = {"__name__": function.__module__, "step": step}
    exec(compile(CALL.format(name=name), __file__, "exec"), module)  # noqa: S102
    return kernel(module[name])
