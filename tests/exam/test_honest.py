"""Honest notebooks: what passes its test in plain Python passes sealed, in whatever style it is written, and what fails fails.

Each exercise has an author's answer, a test of it, other right answers and wrong ones. All of them are first run in this process,
answer and test in one namespace, as nbgrader would; then in one examination, where the two meet only through the channel.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
from decimal import Decimal

import pytest
from written_cells import answer, assignment, handed_in, judge, locked

from graders.exam.pair import Conditions
from graders.exam.plan import seal
from graders.exam.session import examine
from graders.kernels.nursery import Limits, Zygote, best_level
from graders.runs import Ended, Run

SET_UP = """
import functools, itertools, math
from collections import Counter, defaultdict, deque, namedtuple, OrderedDict
import dataclasses
import numpy as np
import jax
import jax.numpy as jnp
"""


@dataclasses.dataclass
class Exercise:
    """A test, the author's answer, and what students may write instead."""

    author: str
    test: str
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()


EXERCISES = {
    "evens": Exercise(
        "evens = [0, 2, 4]",
        "assert list(evens) == [0, 2, 4]",
        (
            "evens = range(0, 5, 2)",
            "evens = (0, 2, 4)",
            "evens = np.arange(0, 5, 2)",
            "evens = deque([0, 2, 4])",
            "evens = map(lambda n: 2 * n, range(3))",
            "evens = filter(lambda n: n % 2 == 0, range(5))",
            "evens = (n for n in range(5) if n % 2 == 0)",
            "evens = {0: 'a', 2: 'b', 4: 'c'}.keys()",
            "evens = dict(a=0, b=2, c=4).values()",
            "evens = jnp.arange(3) * 2",
            "evens = itertools.islice(itertools.count(0, 2), 3)",
            "class Evens:\n    def __iter__(self):\n        yield from (0, 2, 4)\nevens = Evens()",
            "class Evens:\n    def __len__(self): return 3\n    def __getitem__(self, i):\n        if i > 2: raise IndexError\n        return 2 * i\nevens = Evens()",
            "class Evens(list): pass\nevens = Evens([0, 2, 4])",
            "evens = bytearray([0, 2, 4])",
            "evens = memoryview(bytes([0, 2, 4]))",
            "import array\nevens = array.array('i', [0, 2, 4])",
        ),
        ("evens = [0, 2]", "evens = {0: 1}", "evens = iter([4, 2, 0])"),
    ),
    "words": Exercise(
        "def count(text):\n    return dict(Counter(text.split()))",
        "assert dict(count('a b a')) == {'a': 2, 'b': 1}\nassert count('')  == {}\nassert sum(count('x y').values()) == 2",
        (
            "def count(text):\n    return Counter(text.split())",
            "def count(text):\n    found = defaultdict(int)\n    for word in text.split(): found[word] += 1\n    return found",
            "def count(text):\n    return OrderedDict((w, text.split().count(w)) for w in text.split())",
            "class Count:\n    def __call__(self, text):\n        return {w: text.split().count(w) for w in set(text.split())}\ncount = Count()",
            "count = lambda text: {str(np.str_(w)): int(n) for w, n in zip(*np.unique(text.split() or np.array([], str), return_counts=True))}",
        ),
        (
            "def count(text):\n    return {}",
            "def count(text):\n    return Counter(text)",
            "def count(text):\n    Counter(text)",
        ),
    ),
    "callables": Exercise(
        "def scale(x, factor=2.0):\n    return x * factor",
        "assert scale(3.0) == 6.0\nassert scale(3.0, 4.0) == 12.0\nassert scale(3.0, factor=0.5) == 1.5\nassert callable(scale)\n"
        "assert float(jax.jit(scale)(3.0)) == 6.0\nassert float(jax.grad(scale)(3.0, 5.0)) == 5.0\n"
        "assert jax.vmap(scale)(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]",
        (
            "scale = lambda x, factor=2.0: factor * x",
            "scale = functools.partial(lambda factor, x: x * factor, 2.0) if False else (lambda x, *, factor=2.0, **_: x * factor)\n"
            "inner = scale\nscale = lambda x, *rest, **more: inner(x, **(dict(factor=rest[0]) if rest else more))",
            "@jax.jit\ndef scale(x, factor=2.0):\n    return x * factor",
            "@functools.wraps(max)\ndef scale(x, factor=2.0):\n    return jnp.multiply(x, factor)",
            "class Scaler:\n    def __init__(self, factor): self.factor = factor\n    def __call__(self, x, factor=None):\n        return x * (self.factor if factor is None else factor)\nscale = Scaler(2.0)",
            "class Scaler:\n    factor = 2.0\n    def go(self, x, factor=None):\n        return x * (self.factor if factor is None else factor)\nscale = Scaler().go",
            "class Tools:\n    @staticmethod\n    def scale(x, factor=2.0): return x * factor\nscale = Tools.scale",
            "class Tools:\n    @classmethod\n    def scale(cls, x, factor=2.0): return x * factor\nscale = Tools.scale",
            "@jax.custom_jvp\ndef product(x, factor):\n    return x * factor\nproduct.defjvps(lambda t, out, x, f: t * f, lambda t, out, x, f: t * x)\nscale = lambda x, factor=2.0: product(x, factor)",
            "@dataclasses.dataclass(frozen=True)\nclass Scale:\n    default: float = 2.0\n    def __call__(self, x, factor=None): return x * (self.default if factor is None else factor)\nscale = Scale()",
            "def make():\n    calls = []\n    def scale(x, factor=2.0):\n        calls.append(x)\n        return x * factor\n    return scale\nscale = make()",
            "@functools.lru_cache(maxsize=None)\ndef cached(f): return f\nscale = cached(lambda x, factor=2.0: x * factor)",
            "scale = np.vectorize(lambda x, factor=2.0: x * factor, otypes=[float]) if False else (lambda x, factor=2.0: jnp.asarray(x) * factor)",
        ),
        (
            "def scale(x, factor=2.0):\n    return x + factor",
            "scale = 6.0",
            "def scale(x):\n    return 2.0 * x",
            "def scale(x, factor=2.0):\n    return float(x) * factor",
        ),
    ),
    "classes": Exercise(
        "class Account:\n    def __init__(self, start=0):\n        self.balance = start\n        self.log = []\n"
        "    def pay(self, amount):\n        if amount <= 0: raise ValueError('amount must be positive')\n        self.balance += amount\n        self.log.append(amount)\n        return self",
        "one = Account(5)\none.pay(10).pay(1)\nassert one.balance == 16\nassert list(one.log) == [10, 1]\nassert Account().balance == 0\n"
        "assert isinstance(one, Account)\none.balance = 3\none.pay(4)\nassert one.balance == 7\n"
        "try:\n    one.pay(-1)\nexcept ValueError as error:\n    assert 'positive' in str(error)\nelse:\n    raise AssertionError('negative')\nassert one.balance == 7\nassert not hasattr(one, 'missing')",
        (
            "@dataclasses.dataclass\nclass Account:\n    balance: int = 0\n    log: list = dataclasses.field(default_factory=list)\n"
            "    def pay(self, amount):\n        if amount <= 0: raise ValueError('must be positive')\n        self.balance += amount\n        self.log.append(amount)\n        return self",
            "class Account:\n    __slots__ = ('_balance', '_log')\n    def __init__(self, start=0):\n        self._balance, self._log = start, ()\n"
            "    balance = property(lambda self: self._balance, lambda self, value: setattr(self, '_balance', value))\n    log = property(lambda self: self._log)\n"
            "    def pay(self, amount):\n        if not amount > 0: raise ValueError(f'{amount} is not positive')\n        self._balance += amount\n        self._log += (amount,)\n        return self",
            "class Base:\n    def __init__(self, start=0):\n        self.balance = start\n        self.log = deque()\nclass NotPositive(ValueError): pass\n"
            "class Account(Base):\n    def pay(self, amount):\n        if amount <= 0: raise NotPositive('only positive amounts')\n        self.balance += amount\n        self.log.append(amount)\n        return self",
        ),
        (
            "class Account:\n    def __init__(self, start=0):\n        self.balance = start\n        self.log = []\n    def pay(self, amount):\n        self.balance += amount\n        self.log.append(amount)\n        return self",
            "class Account:\n    log = []\n    def __init__(self, start=0):\n        self.balance = start\n    def pay(self, amount):\n        if amount <= 0: raise KeyError('positive')\n        self.balance += amount\n        self.log.append(amount)\n        return self",
        ),
    ),
    "in place": Exercise(
        "def double(values):\n    for i in range(len(values)): values[i] *= 2",
        "given = [1, 2]\nassert double(given) is None\nassert given == [2, 4]\nwide = np.arange(3)\ndouble(wide)\nassert wide.tolist() == [0, 2, 4]",
        (
            "def double(values):\n    values[:] = [2 * v for v in values]",
            "def double(values):\n    for i, v in enumerate(list(values)):\n        values[i] = v + v",
        ),
        (
            "def double(values):\n    return [2 * v for v in values]",
            "def double(values):\n    values = [2 * v for v in values]",
        ),
    ),
    "decorator": Exercise(
        "def twice(f):\n    @functools.wraps(f)\n    def inner(x):\n        return f(f(x))\n    return inner",
        "assert twice(lambda x: x + 3)(1) == 7\nassert twice(twice(lambda x: 2 * x))(1) == 16\nassert float(jax.grad(twice(lambda x: x * x))(2.0)) == 32.0\n"
        "def named(x): return x\nassert twice(named)(4) == 4",
        (
            "twice = lambda f: lambda x: f(f(x))",
            "def twice(f):\n    return functools.partial(lambda g, x: g(g(x)), f)",
            "class twice:\n    def __init__(self, f):\n        self.f = f\n    def __call__(self, x):\n        return self.f(self.f(x))",
            "def twice(f):\n    return lambda x: functools.reduce(lambda value, g: g(value), [f, f], x)",
        ),
        ("def twice(f):\n    return f", "def twice(f):\n    return lambda x: 2 * f(x)"),
    ),
    "derivative": Exercise(
        "def slope(f, x):\n    return jax.grad(f)(x)",
        "assert abs(float(slope(jnp.sin, 0.3)) - math.cos(0.3)) < 1e-3\nassert abs(float(slope(lambda x: x ** 3, 2.0)) - 12.0) < 1e-2",
        (
            "def slope(f, x):\n    return jax.jvp(f, (x,), (1.0,))[1]",
            "def slope(f, x):\n    return jax.jit(jax.grad(f))(x)",
            "def slope(f, x):\n    h = 1e-3\n    return (f(x + h) - f(x - h)) / (2 * h)",
            "slope = lambda f, x: jax.jacfwd(f)(jnp.float32(x))",
            "def slope(f, x):\n    return jax.vmap(jax.grad(f))(jnp.array([x]))[0]",
            "def slope(f, x):\n    value, pull = jax.vjp(f, x)\n    return pull(jnp.ones_like(value))[0]",
        ),
        ("def slope(f, x):\n    return f(x)", "def slope(f, x):\n    return jax.grad(f)(x) * 2"),
    ),
    "lazy": Exercise(
        "def squares():\n    n = 0\n    while True:\n        yield n * n\n        n += 1",
        "found = squares()\nassert [next(found) for _ in range(4)] == [0, 1, 4, 9]\nassert next(iter(squares())) == 0\n"
        "assert [s for s, _ in zip(squares(), range(3))] == [0, 1, 4]",
        (
            "squares = lambda: (n * n for n in itertools.count())",
            "def squares():\n    return map(lambda n: n * n, itertools.count())",
            "class squares:\n    def __init__(self): self.n = -1\n    def __iter__(self): return self\n    def __next__(self):\n        self.n += 1\n        return self.n ** 2",
        ),
        (
            "def squares():\n    yield from (0, 1, 4)",
            "def squares():\n    return [0, 1, 4, 9]",
            "def squares():\n    n = 1\n    while True:\n        yield n * n\n        n += 1",
        ),
    ),
    "state": Exercise(
        "total = 0\ndef add(n):\n    global total\n    total += n\n    return total",
        "before = total\nassert add(3) == before + 3\nassert total == before + 3\nadd(-3)\nassert total == before",
        ("total = np.int64(0)\ndef add(n):\n    global total\n    total = total + n\n    return int(total)",),
        ("total = 0\ndef add(n):\n    return total + n", "total = 0\ndef add(n):\n    total = n\n    return total"),
    ),
    "ledger": Exercise(
        "rows = []\ndef record(label, value):\n    rows.append({'label': label, 'value': value})",
        "count = len(rows)\nrecord('one', 1)\nrecord('two', (2, [3]))\nassert len(rows) == count + 2\nassert rows[-1] == {'label': 'two', 'value': (2, [3])}\nrows[-1]['label'] = 'three'\nassert rows[-1]['label'] == 'three'",
        (
            "rows = []\ndef record(label, value):\n    global rows\n    rows = rows + [dict(label=label, value=value)]",
            "rows = deque()\nrecord = lambda label, value: rows.append({'value': value, 'label': label})",
        ),
        ("rows = []\ndef record(label, value):\n    rows = [{'label': label, 'value': value}]",),
    ),
    "tree": Exercise(
        "def step(params, grads, rate):\n    return jax.tree.map(lambda p, g: p - rate * g, params, grads)",
        "params = {'w': jnp.ones((2, 2)), 'b': [jnp.zeros(2), 1.0]}\nnew = step(params, params, 0.5)\n"
        "assert jax.tree.structure(new) == jax.tree.structure(params)\nassert float(new['w'].sum()) == 2.0\nassert float(new['b'][1]) == 0.5\n"
        "assert float(jax.jit(step)(params, params, 0.5)['w'][0, 0]) == 0.5",
        (
            "def step(params, grads, rate):\n    leaves, tree = jax.tree.flatten(params)\n    return jax.tree.unflatten(tree, [p - rate * g for p, g in zip(leaves, jax.tree.leaves(grads))])",
            "step = jax.jit(lambda params, grads, rate: jax.tree_util.tree_map(lambda p, g: p - g * rate, params, grads))",
        ),
        (
            "def step(params, grads, rate):\n    return jax.tree.map(lambda p, g: p + rate * g, params, grads)",
            "def step(params, grads, rate):\n    return params",
        ),
    ),
    "named tuple": Exercise(
        "State = namedtuple('State', 'position velocity')\ndef move(state, dt):\n    return State(state.position + dt * state.velocity, state.velocity)",
        "start = State(jnp.zeros(2), jnp.ones(2))\nafter = move(start, 0.5)\nassert after.position.tolist() == [0.5, 0.5]\nassert after[1].tolist() == [1.0, 1.0]\n"
        "assert jax.jit(move)(start, 2.0).position.tolist() == [2.0, 2.0]\nposition, velocity = move(start, 1.0)\nassert position.tolist() == [1.0, 1.0]",
        (
            "from typing import NamedTuple\nclass State(NamedTuple):\n    position: jax.Array\n    velocity: jax.Array\ndef move(state, dt):\n    return state._replace(position=state.position + dt * state.velocity)",
        ),
        ("State = namedtuple('State', 'position velocity')\ndef move(state, dt):\n    return state",),
    ),
    "random": Exercise(
        "def sample(key, n):\n    return jax.random.normal(key, (n,))",
        "key = jax.random.key(0)\nassert sample(key, 3).shape == (3,)\nassert jnp.array_equal(sample(key, 3), jax.random.normal(key, (3,)))\n"
        "assert not jnp.array_equal(sample(jax.random.key(1), 3), sample(key, 3))\nassert jnp.array_equal(jax.jit(sample, static_argnums=1)(key, 3), sample(key, 3))",
        (
            "sample = jax.jit(lambda key, n: jax.random.normal(key, (n,)), static_argnames='n')",
            "sample = functools.partial(lambda shape, key, n: jax.random.normal(key, shape(n)), lambda n: (n,))",
        ),
        (
            "def sample(key, n):\n    return jax.random.uniform(key, (n,))",
            "def sample(key, n):\n    return np.random.normal(size=n)",
        ),
    ),
    "rng": Exercise(
        "def shuffle(rng, n):\n    return rng.permutation(n)",
        "found = shuffle(np.random.default_rng(3), 5)\nassert sorted(found) == [0, 1, 2, 3, 4]\nassert list(found) == list(np.random.default_rng(3).permutation(5))",
        ("def shuffle(rng, n):\n    return rng.permutation(np.arange(n)).tolist()",),
        ("def shuffle(rng, n):\n    return list(range(n))",),
    ),
    "exceptions": Exercise(
        "def safe(f, x):\n    try:\n        return f(x)\n    except ZeroDivisionError:\n        return None\n    except (KeyError, ValueError) as error:\n        return type(error).__name__",
        "def missing(x): return {}[x]\nassert safe(lambda x: 1 / x, 0) is None\nassert safe(lambda x: 1 / x, 2) == 0.5\nassert safe(missing, 'k') == 'KeyError'\n"
        "assert safe(lambda x: int('x'), 0) == 'ValueError'\ntry:\n    safe(lambda x: [][x], 3)\nexcept IndexError:\n    pass\nelse:\n    raise AssertionError('swallowed')",
        (
            "def safe(f, x):\n    try:\n        return f(x)\n    except ArithmeticError:\n        return\n    except Exception as e:\n        if isinstance(e, (KeyError, ValueError)):\n            return e.__class__.__name__\n        raise",
        ),
        ("def safe(f, x):\n    try:\n        return f(x)\n    except Exception:\n        return None",),
    ),
    "text": Exercise(
        "def shout(text):\n    return text.upper() + '!'",
        "assert shout('é') == 'É!'\nassert shout('') == '!'\nassert isinstance(shout('a'), str)\nassert 'A' in shout('a') and len(shout('ab')) == 3",
        (
            "shout = '{}!'.format\nbase = shout\nshout = lambda text: base(text.upper())",
            "class Loud(str): pass\ndef shout(text): return Loud(text.upper() + '!')",
            "def shout(text): return np.str_(text.upper() + '!')",
        ),
        (
            "def shout(text): return text + '!'",
            "def shout(text): return (text.upper() + '!').encode()",
            "def shout(text): print(text.upper() + '!')",
        ),
    ),
    "static": Exercise(
        "@functools.partial(jax.jit, static_argnames=('n',))\ndef power(x, n):\n    for _ in range(n - 1):\n        x = x * x\n    return x",
        "assert float(power(jnp.float32(2.0), 3)) == 16.0\nassert float(power(2.0, n=1)) == 2.0\nassert jax.vmap(lambda x: power(x, 2))(jnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]",
        (
            "def power(x, n):\n    return x ** (2 ** (n - 1))",
            "def power(x, n):\n    return jax.lax.fori_loop(0, n - 1, lambda i, v: v * v, x)",
        ),
        (
            "def power(x, n):\n    return x * n",
            "@jax.jit\ndef power(x, n):\n    for _ in range(n - 1):\n        x = x * x\n    return x",
        ),
    ),
    "donated": Exercise(
        "state = jnp.arange(4.0)\nupdate = jax.jit(lambda s: s + 1, donate_argnums=0)\nstate = update(state)",
        "assert state.tolist() == [1.0, 2.0, 3.0, 4.0]\nassert update(jnp.zeros(2)).tolist() == [1.0, 1.0]",
        ("old = jnp.arange(4.0)\nupdate = jax.jit(lambda s: s + 1, donate_argnums=(0,))\nstate = update(old)",),
        ("state = jnp.arange(4.0)\nupdate = jax.jit(lambda s: s + 1, donate_argnums=0)\nupdate(state)",),
    ),
    "warned": Exercise(
        "def root(x):\n    return np.sqrt(x)",
        "assert np.isnan(root(-1.0))\nassert root(4.0) == 2.0",
        (
            "import warnings\ndef root(x):\n    warnings.warn('about to take a root')\n    with np.errstate(all='ignore'):\n        return np.power(x, 0.5)",
            "import sys\ndef root(x):\n    print('root of', x, file=sys.stderr)\n    return np.float64(x) ** 0.5",
        ),
        ("def root(x):\n    return math.sqrt(x)",),
    ),
    "keywords": Exercise(
        "def loss(pred, target, *, op='mean', self=0.0):\n    return getattr(jnp, op)((pred - target) ** 2) + self",
        "assert float(loss(jnp.ones(2), target=jnp.zeros(2))) == 1.0\nassert float(loss(pred=jnp.ones(2), target=jnp.zeros(2), op='sum', self=1.0)) == 3.0\n"
        "assert jax.grad(loss)(jnp.ones(2), target=jnp.zeros(2)).tolist() == [1.0, 1.0]",
        (
            "def loss(pred, target, **options):\n    named = {'mean': jnp.mean, 'sum': jnp.sum}[options.pop('op', 'mean')]\n    return named(jnp.square(pred - target)) + options.get('self', 0)",
        ),
        ("def loss(pred, target, op='mean', self=0.0):\n    return jnp.abs(pred - target).mean() + self",),
    ),
    "big": Exercise(
        "def factorial(n):\n    return math.factorial(n)",
        "assert factorial(0) == 1\nassert factorial(30) == 265252859812191058636308480000000\nassert factorial(100) % 101 == 100",
        (
            "def factorial(n):\n    return functools.reduce(lambda a, b: a * b, range(1, n + 1), 1)",
            "def factorial(n):\n    return n * factorial(n - 1) if n else 1",
        ),
        (
            "def factorial(n):\n    return float(math.factorial(n))",
            "def factorial(n):\n    return int(np.prod(np.arange(1, n + 1)))",
        ),
    ),
    "printing": Exercise(
        "def greet(name):\n    print('Hello', name)\n    return len(name)",
        "assert [greet(name) for name in ('Ada', 'Bob')] == [3, 3]",
        (
            "def greet(name):\n    for _ in range(2000): print('Hello', name)\n    jax.debug.print('{}', 1)\n    return len(name)",
        ),
        ("def greet(name):\n    return print('Hello', name)",),
    ),
    "debugged": Exercise(
        "def norm(x):\n    return jnp.sqrt(jnp.sum(x * x))",
        "assert float(jax.jit(norm)(jnp.array([3.0, 4.0]))) == 5.0\nassert np.allclose(jax.grad(norm)(jnp.array([3.0, 4.0])), [0.6, 0.8])",
        (
            "def norm(x):\n    jax.debug.print('x = {x}', x=x)\n    print('tracing', x)\n    return jnp.linalg.norm(x)",
            "@jax.jit\ndef norm(x):\n    total = jax.lax.scan(lambda s, v: (s + v * v, None), 0.0, x)[0]\n    jax.debug.print('{}', total, ordered=True)\n    return total ** 0.5",
        ),
        ("def norm(x):\n    return jnp.sum(x * x)",),
    ),
    "matrix": Exercise(
        "def solve(a, b):\n    return jnp.linalg.solve(a, b)",
        "a = jnp.array([[2.0, 0.0], [0.0, 4.0]])\nfor f in (solve, jax.jit(solve)):\n    assert np.allclose(f(a, jnp.array([2.0, 4.0])), [1.0, 1.0])\nassert np.allclose(jax.grad(lambda b: solve(a, b).sum())(jnp.ones(2)), [0.5, 0.25])",
        (
            "def solve(a, b):\n    return jnp.linalg.inv(a) @ b",
            "def solve(a, b):\n    q, r = jnp.linalg.qr(a)\n    return jax.scipy.linalg.solve_triangular(r, q.T @ b)",
            "def solve(a, b):\n    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b)",
        ),
        ("def solve(a, b):\n    return a @ b",),
    ),
    "objects in containers": Exercise(
        "class Shape:\n    def __init__(self, area): self.area = area\nshapes = [Shape(2), Shape(1)]",
        "assert [s.area for s in sorted(shapes, key=lambda s: s.area)] == [1, 2]\nassert all(isinstance(s, Shape) for s in shapes)\nassert sum(s.area for s in shapes) == 3\nassert shapes.index(shapes[1]) == 1\nassert len({id(s) for s in shapes}) == 2",
        (
            "@dataclasses.dataclass\nclass Shape:\n    area: float\nshapes = [Shape(2), Shape(1)]",
            "class Shape:\n    @property\n    def area(self): return self._a\ndef make(a):\n    s = Shape()\n    s._a = a\n    return s\nshapes = [make(2), make(1)]",
        ),
        ("class Shape:\n    def __init__(self, area): self.area = area\nshapes = [Shape(2), Shape(2)]",),
    ),
    "recursive": Exercise(
        "def flatten(value):\n    return [one for item in value for one in flatten(item)] if isinstance(value, list) else [value]",
        "deep = [1]\nfor n in range(2, 40): deep = [n, deep]\nassert sorted(flatten(deep)) == list(range(1, 40))\nassert flatten([]) == []",
        (
            "def flatten(value):\n    out, waiting = [], [value]\n    while waiting:\n        one = waiting.pop()\n        waiting.extend(one) if isinstance(one, list) else out.append(one)\n    return out",
        ),
        ("def flatten(value):\n    return value",),
    ),
    "exact": Exercise(
        "def half(n):\n    return n / 2",
        "assert half(3) == 1.5\nassert abs(half(1) - 0.5) < 1e-9\nassert half(4) + 1 == 3",
        (
            "from fractions import Fraction\ndef half(n):\n    return Fraction(n, 2)",
            "def half(n):\n    return np.float64(n) * 0.5",
            "def half(n):\n    return jnp.float32(n) / 2",
        ),
        ("def half(n):\n    return n // 2",),
    ),
    "mixed keys": Exercise(
        "def swap(table):\n    return {value: key for key, value in table.items()}",
        "assert swap({1: 'a', 'b': 2, None: (3,)}) == {'a': 1, 2: 'b', (3,): None}\nassert swap({}) == {}",
        ("def swap(table):\n    return dict(zip(table.values(), table.keys()))",),
        ("def swap(table):\n    return table",),
    ),
    "unread": Exercise(
        "table = np.array([(1, 2.0)], dtype=[('a', int), ('b', float)])\nanswer_ = 42",
        "assert answer_ == 42\nassert table['a'][0] == 1\nassert table['b'].tolist() == [2.0]",
        ("table = {'a': np.array([1]), 'b': np.array([2.0])}\nanswer_ = np.int8(42)",),
        ("table = None\nanswer_ = 42",),
    ),
}


def variants() -> dict[str, tuple[Exercise, str, bool]]:
    """Every text that a student may write: exercise, text, and whether it is right."""
    found = {}
    for name, one in EXERCISES.items():
        for number, text in enumerate((one.author, *one.right)):
            found[f"{name}, right {number}"] = (one, text, True)
        for number, text in enumerate(one.wrong):
            found[f"{name}, wrong {number}"] = (one, text, False)
    return found


VARIANTS = variants()


def in_one_process(one: Exercise, text: str) -> bool:
    """Whether the test passes behind this answer in plain Python."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        pytest.warns() if False else contextlib.nullcontext(),
    ):
        exec(SET_UP, namespace)
        exec(text, namespace)
        try:
            exec(one.test, namespace)
        except Exception:
            return False
    return True


@pytest.fixture(scope="module")
def run(zygote: Zygote) -> Run:
    """One examination in which every variant is an exercise."""
    cells = [locked("set-up", SET_UP)]
    answers = {}
    for name, (one, text, _) in VARIANTS.items():
        cells += [answer(name, one.author), judge(f"{name} test", one.test)]
        answers[name] = text
    given = assignment(cells)
    conditions = Conditions(best_level(), Limits(memory_bytes=2 * 2**30), 20, 300, 200_000)
    return examine(seal(given, handed_in(given, answers)), conditions, zygote)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.filterwarnings("ignore")
def test_sealed_and_plain_agree(run: Run, name: str) -> None:
    """A variant passes or fails sealed as it does in one process, which is as its author meant it."""
    one, text, right = VARIANTS[name]
    found = next(test for test in run.tests if test.id == f"{name} test")
    assert in_one_process(one, text) is right
    assert (found.ended is Ended.ok) is right, found
    assert found.ended in (Ended.ok, Ended.error)


def test_no_answer_harms_another(run: Run) -> None:
    """All variants together need one candidate: none of them ended it."""
    assert run.restarts == 0
    assert sum((test.number or Decimal(0) for test in run.tests), Decimal(0)) == 0
