"""How a record's page looks: to axe-core, on a narrow window, on paper, and where every name means harm."""

import pytest

from tests.support import sample_evaluations

LOOKS = [(width, scheme) for width in (1440, 375) for scheme in ("light", "dark")]
_LENGTHEN = """
    const table = document.querySelector("[data-name='definitions'] table"), body = table.tBodies[0];
    const row = body.rows[body.rows.length - 1];
    table.tHead.rows[0].cells[0].textContent = "theheads";
    for (let n = 0; n < arguments[0]; n++) {
        const added = row.cloneNode(true);
        added.cells[0].textContent = `row${n}begins`;
        added.cells[1].textContent = `${"Some words. ".repeat(40)} row${n}ends`;
        body.append(added);
    }
"""
_OPEN = "document.querySelectorAll('details').forEach(details => { details.open = true; })"


@pytest.mark.parametrize(
    ("name", "looks"), [("various", LOOKS[::3]), ("hostile", LOOKS[::3]), ("quickstart", LOOKS[1:3])]
)
def test_accessible(opened, name, looks, request):
    page = opened(request.getfixturevalue(name))
    page.driver.execute_script(_OPEN)
    page.driver.execute_script("choose({intervals: '1', reasons: 'all'})")
    for width, scheme in looks:
        page.see(width, scheme)
        assert page.violations() == []
        assert page.overhang() == 0


def test_axe_sees_what_is_wrong(opened, quickstart):
    page = opened(quickstart)
    page.driver.execute_script("""
        document.querySelectorAll("h2").forEach(head => { head.style.color = "#ddd"; });
        document.querySelectorAll("label").forEach(label => label.remove());
    """)
    found = {finding.split()[1].rstrip(":") for finding in page.violations()}

    assert {"color-contrast", "select-name"} <= found


def test_bars_are_seen_in_forced_colours(opened, quickstart):
    page = opened(quickstart)
    forced = {"features": [{"name": "forced-colors", "value": "active"}]}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", forced)
    bar, text, ground = page.driver.execute_script("""
        const cell = document.querySelector("td.b");
        const text = getComputedStyle(document.body);
        return [getComputedStyle(cell, "::before").backgroundColor, text.color, text.backgroundColor];
    """)

    assert bar == text != ground


def test_the_head_stays_in_view(opened, various):
    page = opened(various)
    page.click(text="Differences")
    head, section = page.driver.execute_script("""
        const box = selector => document.querySelector(selector).getBoundingClientRect();
        return [[box("header").top, box("header").bottom], box("#differences").top];
    """)

    assert head[0] == 0
    assert head[1] <= section < head[1] + 60


def test_a_wide_table_keeps_its_models_and_fades(opened, quickstart):
    page = opened(quickstart)
    page.see(375)
    name = "document.querySelector('#leaderboard tbody tr:not(.head) th').getBoundingClientRect().left"
    before = page.driver.execute_script(f"return {name}")
    for place, fades in ((0, True), (100, True), (10_000, False)):
        page.driver.execute_script("document.querySelector('#leaderboard .scroll').scrollLeft = arguments[0]", place)
        page.wait("its end", lambda fades=fades: bool(page.all("#leaderboard .table.cut")) is fades)
        assert page.driver.execute_script(f"return {name}") == before


def test_print(opened, quickstart):
    page = opened(quickstart)
    page.driver.execute_script(_LENGTHEN, 60)
    page.driver.execute_script(_OPEN)
    printed = ["".join(sheet.split()) for sheet in page.printed()]  # long words are broken
    sheets = [sheet for sheet in printed if "begins" in sheet]

    assert len(sheets) >= 5
    assert all("theheads" in sheet for sheet in sheets)
    for number in range(60):
        (sheet,) = [sheet for sheet in sheets if f"row{number}begins" in sheet]
        assert f"row{number}ends" in sheet


def test_print_shows_what_is_open(opened, various):
    page = opened(various)
    for section, words in (("quality", "What the outputs on"), ("queries", "rank before")):
        assert words not in "".join(page.printed())
        page.driver.execute_script(_OPEN.replace("'details'", f"'#{section} details'"))
        tables = [text for text in page.texts(f"#{section} table") if words in text]
        assert "".join(page.printed()).count(words) >= len(tables) > 0


def test_hostile_names_are_text(opened, hostile):
    page = opened(hostile)
    page.driver.execute_script(_OPEN)
    text = page.driver.execute_script("return document.body.textContent")
    code = "return [...document.querySelectorAll('body *')].map(element => element.localName)"
    elements = {*page.driver.execute_script(code)}

    assert elements & {"script", "img", "em", "i", "u", "s", "gate", "k", "v", "iframe", "object"} == set()
    assert page.all("[onload], [onerror], [onclick], a[href^='javascript']") == []
    for name in (
        sample_evaluations.HOSTILE["script"],
        sample_evaluations.HOSTILE["image"],
        sample_evaluations.HOSTILE["template"],
    ):
        assert name in text
    for query in sample_evaluations.HOSTILE_QUERIES[:3]:
        assert query in text
    assert "\u202e" not in text
    assert "\\u202e" in text
    assert "49" not in page.texts("#verdict td bdi")
    assert max(map(len, page.texts("bdi", "textContent"))) <= 700  # of 10,000 letters, the beginning


def test_hostile_names_break_no_layout(opened, hostile):
    page = opened(hostile)
    page.see(375)
    page.driver.execute_script(_OPEN)
    code = """
        const scrolls = element => element.closest(".scroll, pre, svg") !== null;
        return [...document.querySelectorAll("main *")]
            .filter(e => e.getClientRects().length && !scrolls(e) && e.getBoundingClientRect().right > innerWidth + 1)
            .map(element => element.outerHTML.slice(0, 200));
    """
    assert page.driver.execute_script(code) == []
    assert page.overhang() == 0
