"""Nothing is kept that no user can reach: not by a command, and not by the public functions."""

import ast
import importlib
from pathlib import Path

import pytest

import dbanon
from dbanon.anonymization.registry import ALGORITHMS, MASKING
from dbanon.cli import COMMANDS

PACKAGE = Path(dbanon.__file__).parent
# What nobody reaches, by the beginning of its name, and why it stays.
ALLOWED = {
    "dbanon.db.metadata.tables.": "Alembic reads them; statements name the tables",
    "dbanon.__main__._Unneeded.find_spec": "Python calls it",
    "dbanon.kernels.compilation._PartLibrary.set_env": "numba calls it",
    "dbanon.cli._Conversion.coerce": "Typer calls it",
}


def parsed(folder, prefix):
    """Return the syntax tree of each module below a folder by its name."""
    trees = {}
    for path in sorted(folder.rglob("*.py")):
        if "_bundled" not in path.parts:
            parts = [prefix, *path.relative_to(folder).with_suffix("").parts]
            name = ".".join(parts).removesuffix(".__init__")
            trees[name] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


def local_names(function):
    """Return the names that a function binds, and that mean no other thing within it."""
    nodes = list(ast.walk(function))
    stored = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    outer = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
    arguments = {n.arg for n in nodes if isinstance(n, ast.arg)}
    inner = {n.name for n in nodes[1:] if isinstance(n, ast.FunctionDef)}
    return (stored | arguments | inner) - outer


class Module:
    """What a module defines, what it imports, and what it does when it is imported."""

    def __init__(self, tree):
        self.defined, self.imported, self.statements = {}, {}, []
        self._read(tree.body)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.imported |= {a.asname or a.name: (node.module, a.name) for a in node.names}

    def _read(self, body):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.defined[node.name] = node
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = getattr(node, "targets", None) or [node.target]
                names = [n for target in targets for n in ast.walk(target)]
                stored = [n for n in names if isinstance(getattr(n, "ctx", None), ast.Store)]
                self.defined |= {n.id: node for n in stored if isinstance(n, ast.Name)}
                if any(isinstance(n, ast.Attribute | ast.Subscript) for n in stored):
                    self.statements.append(node)
            elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                self._read(node.body)
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                self.statements.append(node)


class Walk:
    """Follows names from the roots through definitions, and attributes to methods of that name."""

    def __init__(self, trees):
        self.modules = {name: Module(tree) for name, tree in trees.items()}
        self.reached, self.attributes, self.imported = set(), set(), set()
        self.methods, self._heirs = {}, set()
        self._waiting = []

    def follow(self, roots):
        for root in roots:
            self._reach(*root)
        while self._waiting:
            while self._waiting:
                self._visit(*self._waiting.pop())
            for key in self.methods.keys() - self.reached:
                if key[2] in self.attributes or self._is_called_by_others(*key):
                    self.reached.add(key)
                    self._waiting.append((self.methods[key], key[0], frozenset()))

    def load(self, name):
        """Follow what a module does when it is imported."""
        if name in self.imported or name not in self.modules:
            return
        self.imported.add(name)
        self.load(name.rpartition(".")[0])
        module = self.modules[name]
        self._waiting += [(node, name, frozenset()) for node in module.statements]
        for key, node in module.defined.items():
            # such as @app.command(), by which an object of the module learns of a function
            decorators = map(ast.unparse, getattr(node, "decorator_list", ()))
            learnt = any(text.partition(".")[0] in module.defined for text in decorators)
            if learnt or key.startswith("__"):
                self._reach(name, key)

    def resolve(self, module, name):
        """Return the module and the name of a definition, None as the name of a module."""
        if f"{module}.{name}" in self.modules and name not in self.modules[module].defined:
            return f"{module}.{name}", None
        if name in self.modules[module].defined:
            return module, name
        origin, original = self.modules[module].imported.get(name, (None, None))
        return self.resolve(origin, original) if origin in self.modules else None

    def _reach(self, module, name):
        self.load(module)
        if name is not None and (module, name) not in self.reached:
            self.reached.add((module, name))
            self._waiting.append((self.modules[module].defined[name], module, frozenset()))

    def _visit(self, node, module, local):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            self._visit_function(node, module, local)
        elif isinstance(node, ast.ClassDef):
            self._visit_class(node, module, local)
        elif isinstance(node, ast.Name):
            if node.id not in local and isinstance(node.ctx, ast.Load):
                self._reach(*(self.resolve(module, node.id) or (module, None)))
        else:
            if isinstance(node, ast.Attribute):
                self._visit_attribute(node, module, local)
            for child in ast.iter_child_nodes(node):
                self._visit(child, module, local)

    def _visit_function(self, node, module, local):
        """Decorators, defaults and annotations are of the outer scope."""
        inner = local | local_names(node)
        body = node.body if isinstance(node.body, list) else [node.body]
        for child in ast.iter_child_nodes(node):
            self._visit(child, module, inner if child in body else local)

    def _visit_class(self, node, module, local):
        if node.bases:
            self._heirs.add((module, node.name))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef) and not child.name.startswith("__"):
                self.methods[module, node.name, child.name] = child
            else:
                self._visit(child, module, local)

    def _visit_attribute(self, node, module, local):
        self.attributes.add(node.attr)
        names = [node.attr]
        while isinstance(node.value, ast.Attribute):
            node = node.value
            names.append(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id not in local:
            found = self.resolve(module, node.value.id)
            while found and found[1] is None and names:  # a module: what is meant is within it
                found = self.resolve(found[0], names.pop())
                self._reach(*(found or (module, None)))

    def _is_called_by_others(self, module, owner, name):
        """Tell whether a class of another library has a method of that name, and calls it."""
        if (module, owner) not in self._heirs:
            return False
        bases = getattr(importlib.import_module(module), owner).__mro__
        return any(not b.__module__.startswith("dbanon") and hasattr(b, name) for b in bases)


@pytest.fixture(scope="module")
def walk():
    trees = parsed(PACKAGE, "dbanon")
    migrations = PACKAGE.parent / "migrations"
    revisions = parsed(migrations, "migrations") if migrations.is_dir() else {}
    walk = Walk({**trees, **revisions})
    public = {walk.modules["dbanon"].imported[name] for name in dbanon.__all__}
    called = {(name, key) for name in revisions for key in walk.modules[name].defined}
    places = (place.split(":") for place, _ in COMMANDS.values())
    commands = {(f"dbanon.cli.{module}", name) for module, name in places}
    listed = [place.split(":") for each in (ALGORITHMS, MASKING) for place in each.places.values()]
    named = {(f"dbanon.anonymization.{module}", name) for module, name in listed}
    walk.follow({("dbanon.__main__", "main")} | commands | public | called | named)
    return walk


def test_every_function_class_and_constant_can_be_reached(walk):
    unreached = {
        f"{name}.{key}"
        for name, module in walk.modules.items()
        for key in module.defined
        if (name, key) not in walk.reached
    }
    unreached |= {".".join(key) for key in walk.methods.keys() - walk.reached}
    allowed = {name for name in unreached if name.startswith(tuple(ALLOWED))}
    assert set() == unreached - allowed
    unneeded = [start for start in ALLOWED if not any(n.startswith(start) for n in allowed)]
    assert [] == unneeded


def test_what_is_not_reached_is_found():
    source = """
from dbanon.b import used, Thing
def main():
    helper = Thing()
    return used(helper.method())
def forgotten(): return helper()
def helper(): return forgotten()
"""
    other = """
LEFT = 1
KEPT = 2
class Thing:
    def method(self): return KEPT
    def other(self): return LEFT
def used(forgotten): return forgotten
"""
    trees = {"dbanon": "", "dbanon.a": source, "dbanon.b": other}
    walk = Walk({name: ast.parse(text) for name, text in trees.items()})
    walk.follow([("dbanon.a", "main")])
    names = {".".join(key) for key in walk.reached}
    reached = {"dbanon.a.main", "dbanon.b.used", "dbanon.b.Thing", "dbanon.b.Thing.method"}
    assert reached | {"dbanon.b.KEPT"} == names
    assert {("dbanon.b", "Thing", "other")} == walk.methods.keys() - walk.reached
