"""Writes results of promptfoo, whose provider is a few lines of JavaScript, into `tests/golden/scores/promptfoo`."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "scores" / "promptfoo"
PROVIDER = """// Gives the answers of its config, one for each repeat; `fail` is an error.
module.exports = class {
  constructor({ config }) { this.config = config; }
  id() { return 'answers'; }
  async callApi(prompt, { vars, repeatIndex }) {
    const answer = this.config[vars.question][repeatIndex];
    if (answer === 'fail') throw new Error('the provider failed');
    return { output: prompt.startsWith('Please') ? answer + ' please' : answer };
  }
};
"""
ASSERTIONS = [
    {
        "type": "javascript",
        "metric": "right",
        "value": "output.split(' ')[0] === String(2 * Number(context.vars.question[0]))",
    },
    {"type": "javascript", "metric": "brief", "value": "1 / output.length"},
]
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
}


def run(name, models, prompts, tests, repeats=1):
    config = {
        "prompts": [{"label": label, "raw": raw} for label, raw in prompts.items()],
        "providers": [{"id": "file://answers.cjs", "label": label, "config": given} for label, given in models.items()],
        "defaultTest": {"assert": ASSERTIONS},
        "tests": tests,
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "answers.cjs").write_text(PROVIDER)
        (folder / "config.json").write_text(json.dumps(config))
        options = ["--no-cache", "--no-table", "--no-write", "--max-concurrency", "1", "--repeat", str(repeats)]
        done = subprocess.run(
            ["promptfoo", "eval", "-c", "config.json", "-o", "results.json", *options],
            cwd=folder,
            env=os.environ | QUIET | {"PROMPTFOO_CONFIG_DIR": str(folder / "home")},
        )
        assert done.returncode in (0, 100), "100 says that tests failed"
        made = json.loads((folder / "results.json").read_text())
    (FOLDER / f"{name}.json").write_text(json.dumps(without_large_parts(made), indent=2) + "\n")


def without_large_parts(made):
    for prompt in made["results"]["prompts"]:
        del prompt["metrics"]
    for result in made["results"]["results"]:
        for holder, key in ((result, "tokenUsage"), (result, "gradingResult"), (result.get("response"), "tokenUsage")):
            (holder or {}).pop(key, None)
        if result.get("error"):
            result["error"] = result["error"].partition("\n")[0]
    del made["results"]["stats"]
    return made


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    one, two, three = "1 + 1?", "2 + 2?", "3 + 3?"
    run(
        "models",
        {
            "small": {one: ["2"], two: ["4"], three: ["7 please"]},
            "large": {one: ["2 please"], two: ["4"], three: ["fail"]},
        },
        {"plain": "{{question}}"},
        [
            {"description": "first", "vars": {"question": one}, "metadata": {"topic": "ones"}},
            {"vars": {"question": [two, three]}},
        ],
    )
    run(
        "repeats",
        {"twice": {one: ["2", "3"], two: ["4", "4"]}},
        {"plain": "{{question}}", "polite": "Please: {{question}}"},
        [{"vars": {"question": [one, two]}}],
        repeats=2,
    )
