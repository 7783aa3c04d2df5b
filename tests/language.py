"""Counts of broken language rules and their limits: `make language`, or with a rule's name, its places.

Form and mood of docstrings are ruff's part. These rules are about names and sentences.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMITS = {  # they only fall
    "class docstring": 7,
    "summary": 3,
    "loose reference": 39,
    "loose word": 127,
    "function name": 211,
    "class name": 138,
    "local name": 332,
    "guide sentence": 9,
}
MEANINGS = {
    "class docstring": "starts with What, How or another word that is no noun",
    "summary": "has a semicolon",
    "loose reference": "`that of`, `as it is`, `comes to`, `whoever` in a docstring: name the thing",
    "loose word": "`figure`, `least`, `beside`, `alone`, `place` in a docstring: value, minimum, next to, only, index",
    "function name": "starts or ends with a preposition, or is a bare participle: use verb and noun",
    "class name": "is one vague word, or is used twice",
    "local name": "says a state such as `found` or `own`, not what the variable holds",
    "guide sentence": "has a semicolon, or a colon before a lower-case word",
}
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
NOT_A_NOUN = re.compile(
    r"(What|How|Whether|Why|Where|Which|Who|Whose|When|Whatever|As|By|Of|On|In|At|For|From|With|Without|Over|Under|"
    r"Beside|If|Until|Before|After|One|Some|All|Any|Every|Each|Both|Either|Those|These|It|Its|They|None|Nothing)\b"
)
REFERENCES = re.compile(
    r"\b(that|those) (of|by|on|in|with|without|from)\b|\bas (it|they) (is|are|was|were|has|have|had|does|do|did)\b|"
    r"\b(comes?|came) (to|of)\b|\bstands?\b|\b(said|known|told|asked) of\b|\b(whoever|whatever|somebody|anew)\b"
)
WORDS = re.compile(r"\b(figures?|(?<!at )least|greatest|fewest|beside|alone|places?|remarks?)\b")
PREPOSITIONS = "of|at|in|by|on|for|among|beside|between|below|above|under|over"
FUNCTIONS = re.compile(
    rf"_?({PREPOSITIONS})|_?({PREPOSITIONS}|before|after)_\w+|\w+_({PREPOSITIONS})|"
    r"_?[a-z]+(ed|wn|ept|uilt|eft|ost|eant|aken|iven|ritten|hosen|rawn|idden)"
)
VERBS = re.compile("need|embed|seed|feed|exceed|proceed|red|down|own|most|post|cost|host")
LOCALS = re.compile(
    "found|own|known|wanted|asked|said|meant|ours|theirs|here|where|at|of|one|same|whole|most|least|greatest|beside|"
    "apart|taken|told|gone|given|left"
)
CLASSES = re.compile(  # one word that the glossary knows
    "Evaluation|Measure|Metric|Model|Dataset|Gate|Record|Config|Manifest|Report|Scores?|Estimate|Comparison|Query|"
    "Slice|Verdict|Alert|Plan|Terms|Profile|Conventions|Bootstrap|Table|Row|Column|Cell|Section|Page|Site|History|"
    "Chart|Interval|Format|Source|Reference|Receipt|Environment|Explanation|Execution|Tracking|Suite|Document|Budget"
)


def find_violations() -> dict[str, list[str]]:
    """Return the places of the checkout that break a rule, by rule."""
    places: dict[str, list[str]] = {rule: [] for rule in LIMITS}
    classes = defaultdict(list)
    for top in ("metrics", "pipeline"):
        for path in sorted((ROOT / top).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
            for rule, line, text in check_nodes(nodes):
                places[rule].append(f"{name}:{line} {text}")
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    classes[node.name.lstrip("_")].append(f"{name}:{node.lineno} {node.name}")
    places["class name"] += [place for twice in classes.values() if len(twice) > 1 for place in twice[1:]]
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        places["guide sentence"] += [f"{name} {sentence}" for sentence in check_guide(path.read_text("utf-8"))]
    return places


def check_nodes(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, int, str]]:
    """Yield the rule, line and text of each violation in the nodes of a module."""
    for node in nodes:
        if isinstance(node, ast.ClassDef):
            is_vague = len(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", node.name)) == 1
            if is_vague and not CLASSES.fullmatch(node.name.lstrip("_")):
                yield "class name", node.lineno, node.name
        elif isinstance(node, FUNCTION) and FUNCTIONS.fullmatch(node.name) and not _is_property(node):
            if not VERBS.fullmatch(node.name.strip("_")):
                yield "function name", node.lineno, node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and LOCALS.fullmatch(node.id):
            yield "local name", node.lineno, node.id
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTION) and (text := ast.get_docstring(node)):
            yield from ((rule, getattr(node, "lineno", 1), summary) for rule, summary in _check_docstring(node, text))


def _check_docstring(node: ast.AST, text: str) -> Iterator[tuple[str, str]]:
    summary = " ".join(text.split("\n\n")[0].split())
    is_function = isinstance(node, FUNCTION) and not _is_property(node)
    rules = {
        "class docstring": not is_function and NOT_A_NOUN.match(summary),
        "summary": ";" in summary,
        "loose reference": REFERENCES.search(text),
        "loose word": WORDS.search(text),
    }
    yield from ((rule, summary) for rule, is_broken in rules.items() if is_broken)


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(ast.unparse(decorator).endswith("property") for decorator in node.decorator_list)


def check_guide(text: str) -> Iterator[str]:
    """Yield the sentences of a page, without code and generated parts, that a semicolon or colon cuts."""
    text = re.sub(r"```.*?```|<!-- (?:generated|simulated).*?<!-- end -->", "", text, flags=re.DOTALL)
    prose = "\n".join(line for line in text.splitlines() if not line.startswith(("|", "#", "![")))
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )", prose):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", " ".join(paragraph.split())):
            if ";" in sentence or re.search(r"\w: [a-z]", sentence):
                yield sentence


def main(rules: list[str]) -> int:
    """Print each rule's count next to its limit, or the places of the rules that are named."""
    places = find_violations()
    for rule in rules:
        print(*places[rule], sep="\n")
    for rule, broken in places.items() if not rules else ():
        print(f"{len(broken):6,} {LIMITS[rule]:6,}  {rule} {MEANINGS[rule]}{'  ABOVE' * (len(broken) > LIMITS[rule])}")
    return int(any(len(broken) > LIMITS[rule] for rule, broken in places.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
