"""YAML as it is read: includes, overrides, variables, and texts that would cost much."""

import os
import resource
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankledger.pipeline.config import schema
from rankledger.pipeline.config.loader import load, merge
from rankledger.pipeline.config.plan import plan
from rankledger.pipeline.config.yaml import Origin, dotted
from rankledger.pipeline.support.errors import InputError
from tests.support.data_files import findings as refused

pytestmark = pytest.mark.usefixtures("folder")

A_TEXT = ", or quote it for a text: '{}'"


def write(**files: str) -> None:
    for name, text in files.items():
        path = Path(name.replace("__", "/") + ".yaml")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def findings(*overrides: str, path: str = "a.yaml", environ: dict[str, str] | None = None) -> list[str]:
    return refused(load, path, overrides, environ or {})


# ---- one file


def test_values_have_lines():
    write(a="# a comment\nname: x\nsuites:\n  search:\n    - ap\n    - rr\n")

    document = load("a.yaml")

    assert document.data == {"name": "x", "suites": {"search": ["ap", "rr"]}}
    assert {dotted(path): str(origin) for path, origin in document.origins.items()} == {
        "": "a.yaml:1",
        "name": "a.yaml:2",
        "suites": "a.yaml:3",
        "suites.search": "a.yaml:4",
        "suites.search[0]": "a.yaml:5",
        "suites.search[1]": "a.yaml:6",
    }


@pytest.mark.parametrize("n_letters", [1, 50_000])
def test_json_may_write_a_character_as_two_escapes(n_letters):
    write(a=f'{{"name": "{"x" * n_letters}", "\\ud83d\\ude00": "\\uD83D\\uDE00 team"}}')

    assert load("a.yaml").data["\U0001f600"] == "\U0001f600 team"


def test_scalars_are_read_by_the_safe_loader_but_dates_stay_text():
    write(a="i: 10_000\nf: 0.5\nb: yes\nn: ~\nd: 2026-01-01\nt: 2026-01-01 10:00:00\ns: '1'\n")

    assert load("a.yaml").data == {
        "i": 10_000,
        "f": 0.5,
        "b": True,
        "n": None,
        "d": "2026-01-01",
        "t": "2026-01-01 10:00:00",
        "s": "1",
    }


def test_a_byte_order_mark_is_skipped():
    Path("a.yaml").write_bytes(b"\xef\xbb\xbfname: x\r\n")

    assert load("a.yaml").data == {"name": "x"}


def test_anchors_and_merge_keys():
    write(a="x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2, d: 2}\nz:\n  d: 3\n  <<: [*x, *y]\n  a: 3\nv: *x\n")

    document = load("a.yaml")

    assert document.data["z"] == {"a": 3, "b": 1, "c": 2, "d": 3}
    assert document.data["v"] == {"a": 1, "b": 1}
    lines = {key: document.origins["z", key].line for key in "abcd"}
    assert lines == {"a": 6, "b": 1, "c": 2, "d": 4}
    assert document.origins["z",].line == 3
    assert document.origins["v",].line == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nno: 2\n", "a.yaml:2: the key no is not text (YAML reads it as bool); quote it: 'no'"),
        ("a:\n  b:\n    1: 2\n", "a.yaml:3: a.b: the key 1 is not text (YAML reads it as int); quote it: '1'"),
        ("a:\n  ~: 2\n", "a.yaml:2: a: the key ~ is not text (YAML reads it as null); quote it: '~'"),
        ("? [a]\n: 2\n", "a.yaml:1: a key is text, not a list or a mapping; write a plain key"),
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", "a.yaml:4: a: duplicate key 'b' (first on line 2); keep one"),
        (
            "a: !!python/name:os.system x\n",
            "a.yaml:1: a: the tag !!python/name:os.system is not supported; write a plain value",
        ),
        ("a:\n- !set {x}\n", "a.yaml:2: a[0]: the tag !set is not supported; write a plain value"),
        ("a: !!int x\n", "a.yaml:1: a: 'x' cannot be read as !!int; quote it"),
        (f"a: 0x1{'0' * 5_000}\n", f"a.yaml:1: a: '0x1{'0' * 195}… cannot be read as !!int; quote it"),
        ("a: 017\n", "a.yaml:1: a: found 017, which YAML reads as 15 (octal); write 17 or 15" + A_TEXT.format("017")),
        (
            "a: -0_7\n",
            "a.yaml:1: a: found -0_7, which YAML reads as -7 (octal); write -7 or -7" + A_TEXT.format("-0_7"),
        ),
        ("a: 1:30\n", "a.yaml:1: a: found 1:30, which YAML reads as 90 (base 60); write 90" + A_TEXT.format("1:30")),
        (
            "- 1:30.5\n",
            "a.yaml:1: [0]: found 1:30.5, which YAML reads as 90.5 (base 60); write 90.5" + A_TEXT.format("1:30.5"),
        ),
        (
            "a: 2024_01\n",
            "a.yaml:1: a: found 2024_01, which YAML reads as 202401; write 202401" + A_TEXT.format("2024_01"),
        ),
        ('a: "\\ud83d"\n', "a.yaml:1: a: '\\ud83d' is half of a surrogate pair; write the character"),
        ("? !!str [a]\n: 2\n", "a.yaml:1: a key is text, not a list or a mapping; write a plain key"),
        ('a: "b\\udcff"\n', "a.yaml:1: a: 'b\\udcff' is half of a surrogate pair; write the character"),
        ('a: {"b\\udcff": 1}\n', "a.yaml:1: a: the key 'b\\udcff' contains half of a surrogate pair; write another"),
        ("a: &a\n  b: [*a]\n", "a.yaml:1: a.b[0]: an alias refers to the value that contains it; write the value out"),
        ("a:\n  <<: 1\n", "a.yaml:2: a: `<<` takes a mapping or a list of mappings"),
        ("a: *b\n", "a.yaml:1: is not valid YAML: found undefined alias 'b'"),
        ("a: 1\nb: [1, 2\nc: 3\n", "a.yaml:3: is not valid YAML: expected ',' or ']', but got ':'"),
        ("a: 1\n\tb: 2\n", "a.yaml:2: is not valid YAML: found character '\\t' that cannot start any token"),
        ("a: 1\nb: \x00\n", "a.yaml:2: the character '\\x00' is not allowed in YAML; remove it"),
        ("[" * 5000, "a.yaml:1: is nested more than 100 deep; shorten it"),
        ("a: 1\n---\nb: 2\n", "a.yaml:2: a second document begins here (`---`); keep one per file"),
        ("", "a.yaml:1: nothing found; write `key: value` lines, beginning with `name:`"),
        ("# nothing\n", "a.yaml:1: nothing found; write `key: value` lines, beginning with `name:`"),
        ("- a\n", "a.yaml:1: a list found; write `key: value` lines, beginning with `name:`"),
        ("a\n", "a.yaml:1: a single value found; write `key: value` lines, beginning with `name:`"),
    ],
)
def test_what_one_file_is_refused_for(text, message):
    write(a=text)

    assert findings() == [message]


def test_files_that_cannot_be_read():
    Path("folder").mkdir()
    Path("latin.yaml").write_bytes(b"name: caf\xe9\n")

    assert findings(path="nightly.yaml") == ["nightly.yaml: file not found; check the path"]
    assert findings(path="folder") == ["folder: is a folder, device, pipe or socket; name a regular file"]
    assert findings(path="latin.yaml") == ["latin.yaml: is not UTF-8 text (at byte 9); save it as UTF-8"]


def test_all_mistakes_of_all_files_come_at_once():
    write(
        base="no: 1\nb: !x 1\n", mid="extends: base.yaml\n", a="extends: [base.yaml, mid.yaml, gone.yaml]\na: 1\na: 2\n"
    )

    assert findings() == [
        "a.yaml:3: duplicate key 'a' (first on line 2); keep one",
        "base.yaml:1: the key no is not text (YAML reads it as bool); quote it: 'no'",
        "base.yaml:2: b: the tag !x is not supported; write a plain value",
        "a.yaml:1: extends: file not found: 'gone.yaml'; check the path",
    ]


# ---- extends


def test_extends_merges_mappings_replaces_lists_and_takes_away_with_null():
    write(
        sub__base="a: {x: 1, y: 2, z: {p: 1}}\nl: [1, 2, 3]\ngone: {k: 1}\n",
        a="extends: sub/base.yaml\na: {y: 3, z: {q: 2}}\nl: [4]\ngone: null\nnew: null\n",
    )

    document = load("a.yaml")

    assert document.data == {"a": {"x": 1, "y": 3, "z": {"p": 1, "q": 2}}, "l": [4], "new": None}
    assert str(document.origins["a", "x"]) == "sub/base.yaml:1"
    assert str(document.origins["a", "y"]) == "a.yaml:2"
    assert ("gone", "k") not in document.origins
    assert ("l", 2) not in document.origins


def test_of_several_extended_files_the_later_wins():
    write(
        sub__top="v: top\nt: 1\n", sub__one="extends: top.yaml\nv: one\n", two="v: two\n",
        a="extends: [sub/one.yaml, two.yaml]\nw: a\n",
    )  # fmt: skip

    assert load("a.yaml").data == {"v": "two", "t": 1, "w": "a"}


def test_a_circle_of_extends_is_refused():
    write(a="extends: sub/b.yaml\n", sub__b="x: 1\nextends: ../a.yaml\n")

    assert findings() == [
        "sub/b.yaml:2: extends: extends itself: a.yaml -> sub/b.yaml -> sub/../a.yaml; remove one of them"
    ]


@pytest.mark.parametrize(("value", "found"), [("1", "1"), ("[x.yaml, 2]", "2"), ("''", "''"), ("{a: 1}", "{'a': 1}")])
def test_extends_takes_paths_only(value, found):
    write(a=f"extends: {value}\n", x="b: 1\n")

    assert findings() == [f"a.yaml:1: extends: takes a file's path or a list of them; found {found}"]


plain = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
mappings = st.recursive(
    st.fixed_dictionaries({}, optional={"m": plain, "n": plain}),
    lambda inner: st.fixed_dictionaries({}, optional={"m": plain, "n": plain, "a": inner, "b": inner}),
    max_leaves=8,
)


@given(mappings, mappings, mappings)
def test_merging_is_associative(one, two, three):
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


@given(mappings)
def test_merging_with_nothing_changes_nothing(one):
    assert merge(one, {}) == merge({}, one) == merge(one, one) == one


# ---- environment variables


def test_variables_are_expanded_and_the_raw_text_is_kept():
    text = "a: '${X}/${Y:-y}/${E:-e}'\nb: ['${Y:-${X}-{model}}']\nc: $$X $5 $${X}\n${X}: 1\nd: ${E}\n"
    write(a=text)

    document = load("a.yaml", environ={"X": "x", "E": "", "UNUSED": "u"})

    assert document.data == {"a": "x/y/e", "b": ["x-{model}"], "c": "$X $5 ${X}", "${X}": 1, "d": ""}
    assert document.raw == {
        "a": "${X}/${Y:-y}/${E:-e}",
        "b": ["${Y:-${X}-{model}}"],
        "c": "$$X $5 $${X}",
        "${X}": 1,
        "d": "${E}",
    }
    assert document.expansions == {"X": "x", "E": ""}
    assert load("a.yaml", environ=document.expansions) == document


def test_what_is_put_in_stays_text():
    write(a="commit: ${SHA}\n")

    assert load("a.yaml", environ={"SHA": "1234567"}).data == {"commit": "1234567"}


def test_variables_under_tracking_are_not_kept():
    write(a="tracking: {uri: 'http://${USER}:${PASSWORD}@host', timeout: '${X}'}\nx: ${X}\n")

    document = load("a.yaml", environ={"USER": "u", "PASSWORD": "p", "X": "x"})

    assert document.data["tracking"] == {"uri": "http://u:p@host", "timeout": "x"}
    assert document.expansions == {"X": "x"}


def test_unset_and_malformed_variables_are_refused_together():
    write(base="a: ${GONE}\nb: [1, '${B}']\n", a="extends: base.yaml\na: 1\nc: ${not a name}\n")

    assert findings() == [
        "base.yaml:2: b[1]: ${B} is not set in the environment; set it, or write ${B:-default}",
        "a.yaml:3: c: invalid `${`; write ${NAME} or ${NAME:-default}, or $${ for the text itself",
    ]


# ---- --set


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("n=2", {"n": 2, "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}]}),
        ("n='2'", {"n": "2", "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}]}),
        ("n=a=b: c", {"n": {"a=b": "c"}, "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}]}),
        ("n=", {"m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}]}),
        ("m={y: [2]}", {"n": 1, "m": {"y": [2]}, "l": [1, {"k": 2}]}),
        ("m.x=", {"n": 1, "m": {"trec.8": 1}, "l": [1, {"k": 2}]}),
        ('m."trec.8"=2', {"n": 1, "m": {"x": 1, "trec.8": 2}, "l": [1, {"k": 2}]}),
        ("m.'trec.8'=2", {"n": 1, "m": {"x": 1, "trec.8": 2}, "l": [1, {"k": 2}]}),
        ("l.0=${X}", {"n": 1, "m": {"x": 1, "trec.8": 1}, "l": ["x", {"k": 2}]}),
        ("l[1].k=3", {"n": 1, "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 3}]}),
        ("new.*.deep=3", {"n": 1, "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}], "new": {"*": {"deep": 3}}}),
        ("new=", {"n": 1, "m": {"x": 1, "trec.8": 1}, "l": [1, {"k": 2}], "new": None}),
    ],
)
def test_overrides_set_one_key_whole(override, expected):
    write(a="n: 1\nm: {x: 1, trec.8: 1}\nl: [1, {k: 2}]\n")

    assert load("a.yaml", [override], {"X": "x"}).data == expected


def test_overrides_say_where_they_came_from():
    write(sub__a="x: {p: q}\n")

    document = load("sub/a.yaml", ["x.y.z=[1]", "x.y.z[0]=2"])

    assert document.origins["x", "y"] == document.origins["x", "y", "z"] == Origin("override x.y.z", None)
    assert document.origins["x", "y", "z", 0] == Origin("override x.y.z[0]", None)
    assert document.origins["x", "p"] == Origin("sub/a.yaml", 1)
    assert document.origins["x", "p"].directory == Path("sub")
    assert document.origins["x", "y"].directory == Path()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("n", 'override n: is not key.path=value (quote a name that contains dots: "trec.8")'),
        ("a..b=secret", 'override a..b: is not key.path=value (quote a name that contains dots: "trec.8")'),
        ("n.x=1", "override n.x: n is a plain value without keys; set the value itself"),
        ("l.2=1", "override l.2: l has the items 0 to 1, found '2'; write one of them, or set the whole list"),
        ("l.x=1", "override l.x: l has the items 0 to 1, found 'x'; write one of them, or set the whole list"),
        ("n=[1", "override n: is not valid YAML: expected ',' or ']', but got '<stream end>'"),
        ("n={no: 1}", "override n: the key no is not text (YAML reads it as bool); quote it: 'no'"),
        ("n={a: !x 1}", "override n.a: the tag !x is not supported; write a plain value"),
        ("extends=b.yaml", "override extends: `extends` cannot be overridden; write a file that extends both"),
        ("n=${X}", "override n: ${X} is not set in the environment; set it, or write ${X:-default}"),
    ],
)
def test_overrides_that_are_refused(override, message):
    write(a="n: 1\nl: [1, 2]\n")

    assert findings(override) == [message]


def test_all_wrong_overrides_come_at_once():
    write(a="n: ${X}\n")

    assert [line.split(":")[0] for line in findings("m", "n.x=1", "l=${Y}")] == [
        "override m",
        "override n.x",
        "a.yaml",
        "override l",
    ]


@given(st.text(max_size=8))
def test_a_dotted_path_is_one_line(name):
    assert len(dotted(("models", name, 0)).splitlines()) == 1


# ---- defaults


def test_defaults_stand_under_each_entry():
    write(
        a="defaults:\n  model:\n    params: {k: 1, b: 2}\n    owner: me\n"
        "models:\n  x:\n  y: {params: {k: 3, b: null}, owner: null}\n"
    )

    document = load("a.yaml")

    assert document.data["models"] == {"x": {"params": {"k": 1, "b": 2}, "owner": "me"}, "y": {"params": {"k": 3}}}
    assert document.raw["models"] == {"x": None, "y": {"params": {"k": 3, "b": None}, "owner": None}}
    assert document.origin(("models", "x", "params", "k")).line == 3
    assert document.origin(("models", "x")).line == 6
    assert document.origin(("models", "y", "params", "k")).line == 7


def test_defaults_replace_files_whole_and_keep_to_the_kind():
    write(
        a="defaults:\n"
        "  dataset: {judgments: {path: q, format: trec}, queries: {path: t, format: csv},\n"
        "    relevant: 2, subtopics: true}\n"
        "  model: {outputs: {d: 1, e: 2}}\n"
        "datasets: {d: {judgments: {path: r}, queries: t2}, e: {ratings: r}, f: {scores: {a: higher}}}\n"
        "models: {m: {outputs: {d: 3}}, n: {outputs: x}, o: {outputs: {path: x}}}\n"
    )

    data = load("a.yaml").data

    assert data["datasets"] == {
        "d": {"judgments": {"path": "r"}, "queries": "t2", "relevant": 2, "subtopics": True},
        "e": {"queries": {"path": "t", "format": "csv"}, "relevant": 2, "ratings": "r"},
        "f": {"queries": {"path": "t", "format": "csv"}, "scores": {"a": "higher"}},
    }
    assert data["models"] == {
        "m": {"outputs": {"d": 3, "e": 2}},
        "n": {"outputs": "x"},
        "o": {"outputs": {"path": "x"}},
    }


def test_findings_are_sorted_and_what_is_wrong_in_a_default_is_said_once():
    write(a="models: {x: {}, y: {}, z: {owner: 2, team: 3}}\ndefaults: {model: {owner: 1}}\n")
    document = load("a.yaml")

    wrong = [(("models", name, "owner"), "wrong") for name in "xyz"] + [(("models", "z", "team"), "wrong")]

    assert refused(document.refuse, wrong) == [
        "a.yaml:1: models.z.owner: wrong",
        "a.yaml:1: models.z.team: wrong",
        "a.yaml:2: defaults.model.owner: wrong",
    ]
    document.refuse([])


CONFIG = "name: x\ndatasets: {d: {judgments: j}}\nmodels: {m: {outputs: o}}\nsuites: {s: [ap]}\n"
MANY = "keys and values"
DEEP = "is nested more than 100 deep; shorten it"
NOT_PLAIN = "is a folder, device, pipe or socket; name a regular file"


def refusal(text: str | None = None, *overrides: str) -> str:
    if text is not None:
        Path("a.yaml").write_text(text, encoding="utf-8")
    begin = time.process_time()
    with pytest.raises(InputError) as error:
        plan(schema.load("a.yaml", overrides, {}))
    assert time.process_time() - begin < 10
    return str(error.value)


def billion_laughs() -> str:
    lines = [f"x{i}: &x{i} [{','.join([f'*x{i - 1}'] * 9)}]" for i in range(1, 30)]
    return "\n".join(["x0: &x0 [a]", *lines])


def doubling_merges() -> str:
    lines = [f"x{i}: &x{i} {{<<: [*x{i - 1}, *x{i - 1}], k{i}: 1}}" for i in range(1, 60)]
    return "\n".join(["x0: &x0 {a: 1}", *lines])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (billion_laughs, MANY),
        (doubling_merges, MANY),
        (lambda: "[" + "a," * 4_900_000, MANY),
        (lambda: "[" * 9_000_000, DEEP),
        (lambda: "- " * 4_000_000, DEEP),
        (lambda: "? " * 4_000_000, DEEP),
        (lambda: "x0: &x0 [1]\n" + "".join(f"x{i}: &x{i} [*x{i - 1}]\n" for i in range(1, 500)), DEEP),
        (lambda: "x0: &x0 {a: 1}\n" + "".join(f"x{i}: &x{i} {{<<: *x{i - 1}}}\n" for i in range(1, 500)), DEEP),
        (lambda: "a: " + "b" * 11_000_000, "larger than 10 MB"),
    ],
    ids=["laughs", "merges", "nodes", "flow", "block", "keys", "aliases", "merged", "size"],
)
def test_a_bomb_of_yaml_is_refused_at_once(text: Callable[[], str], message: str):
    assert message in refusal(text())


def test_a_refusal_takes_little_memory():
    Path("a.yaml").write_text("[" + "a," * 4_900_000, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refusal()

    unit = 1 if sys.platform == "darwin" else 1024
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 200e6


def test_models_times_datasets_are_bounded():
    datasets, models = (", ".join(f"{letter}{i}: " for i in range(1000)) for letter in "dm")
    defaults = "defaults: {dataset: {judgments: j}, model: {outputs: '{dataset}{model}'}}"

    assert "1,000 models on 1,000 datasets are more than 100,000 evaluations" in refusal(
        f"name: x\n{defaults}\ndatasets: {{{datasets}}}\nmodels: {{{models}}}\nsuites: {{s: [ap]}}\n"
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: os.mkfifo("odd"),
        lambda: socket.socket(socket.AF_UNIX).bind("odd"),
        lambda: Path("odd").symlink_to("/dev/zero"),
        lambda: Path("odd").mkdir(),
    ],
    ids=["fifo", "socket", "device", "folder"],
)
def test_what_is_no_plain_file_is_never_opened(make: Callable[[], None]):
    make()

    assert refusal("extends: odd\n" + CONFIG) == f"odd: {NOT_PLAIN}"
    Path("a.yaml").unlink()
    Path("odd").rename("a.yaml")
    assert refusal() == f"a.yaml: {NOT_PLAIN}"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://example.org/a.yaml", "file not found"),
        ('"a\\0b"', "takes a file's path"),
        ("x" * 100_000, "file not found"),
        ("link.yaml", "extends itself"),
        ("loop.yaml", "cannot be read"),
    ],
    ids=["url", "zero byte", "long", "itself", "loop of links"],
)
def test_what_cannot_be_extended(name, message):
    Path("link.yaml").symlink_to("a.yaml")
    Path("loop.yaml").symlink_to("loop.yaml")

    found = refusal(f"extends: {name}\n{CONFIG}")
    assert message in found
    assert len(found) < 400


@pytest.mark.parametrize(
    "override",
    [f"suites.s[{'9' * 6000}]=1", "name=[" + "a," * 1_000_000 + "]", "\udcff=1", "name=\0"],
    ids=["place", "bomb", "surrogate", "zero byte"],
)
def test_overrides_made_to_harm_are_refused(override):
    found = refusal(CONFIG, override)

    assert "\n" not in found
    assert len(found) < 800


def test_many_findings_that_say_the_same_are_one_line():
    models = "".join(f"  m{i}: {{outptus: o}}\n" for i in range(900))
    text = CONFIG.replace("models: {m: {outputs: o}}\n", f"models:\n{models}")

    assert refusal(text) == (
        "a.yaml:4: models.m0.outptus: unknown key 'outptus'; did you mean 'outputs'? (and 899 more like it)"
    )
    assert refusal("a: 1\n" * 10_000).endswith("keep one (and 9,998 more like it)")


def test_many_findings_are_cut_with_their_number():
    lines = refusal(CONFIG + "".join(f"k{i}: 1\n" for i in range(5_000))).splitlines()

    assert len(lines) == 51
    assert lines[-1] == "and 4,950 more errors; fix these first"


@pytest.mark.parametrize("setting", ["seed", "bootstrap.resamples", "bootstrap.confidence", "conventions.depth"])
@pytest.mark.parametrize(
    "number", [".nan", ".inf", "-.inf", "-1.0e+308", "1.0e+400", f"-1{'0' * 4000}", "[1]", "0.5e-1x"]
)
def test_numbers_that_no_setting_takes(setting, number):
    assert setting in refusal(CONFIG, f"{setting}={number}")
