"""Runs the jobs of a GitHub workflow, or of a GitLab pipeline, on this machine; what actions do is played by copying files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
SHIMS = ("pytest", "mkdocs")


def machine(folder: Path) -> dict[str, str]:
    """Make a machine with nothing but Python: a new environment, into which pip installs for real, without an index; give its variables."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    # What pip would fetch from the index is that of the tests' own environment.
    (own / "fetched.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    for name in SHIMS:
        shim = folder / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {name} "$@"\n')
        shim.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "GITHUB_", "CI", "PYTEST_", "PYTHON"))}
    offline = {"PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    offline["PIP_NO_COMPILE"] = "1"  # a job imports a part of what is installed
    path = os.pathsep.join((f"{folder}/bin", "/usr/local/bin", "/usr/bin", "/bin"))
    return {**kept, **offline, "PATH": path, "NO_MKDOCS_2_WARNING": "1", "PIP_ROOT_USER_ACTION": "ignore", "VIRTUAL_ENV": str(folder)}


def clone(project: Path, into: Path, submodules: str = "") -> Path:
    """Check a project out anew, with its submodules where they are asked for (`recursive`)."""
    more = ["-c", "protocol.file.allow=always", "clone", *(["--recurse-submodules"] if submodules == "recursive" else [])]
    subprocess.run(["git", *more, "--quiet", str(project), str(into)], check=True)
    return into


@dataclass
class Run:
    """One run of a workflow or a pipeline."""

    project: Path
    """Repository that is checked out."""
    folder: Path
    """Where its machines work."""
    environment: Mapping[str, str]
    """Variables of each machine."""
    context: Mapping[str, str] = field(default_factory=dict)
    """Values of expressions: `github.ref`."""
    only: tuple[str, ...] = ()
    """Jobs that run, whatever others say that are skipped; all of them where none is named."""
    said: dict[str, str] = field(default_factory=dict)
    """Output of each job that ran."""
    results: dict[str, str] = field(default_factory=dict)
    """`success`, `failure` or `skipped`, by job."""
    published: Path | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    """Of jobs, by what a job that needs them calls each."""

    @property
    def temporary(self) -> Path:
        """Folder for what lives no longer than a job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    @property
    def log(self) -> str:
        """What all jobs said."""
        return "\n".join(f"{name}: {self.results.get(name)}\n{text}" for name, text in self.said.items())

    def shell(self, job: str, commands: str, root: Path, environment: Mapping[str, str]) -> bool:
        """Run commands as a runner does."""
        words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", commands]
        done = subprocess.run(words, cwd=root, env=environment, check=False, capture_output=True, text=True, timeout=300)
        self.said[job] = self.said.get(job, "") + f"$ {commands}\n{done.stdout}{done.stderr}"
        return done.returncode == 0

    # GitHub

    def workflow(self, text: str) -> None:
        """Run the jobs of a workflow, in their order."""
        document = yaml.safe_load(text)
        below = document.get("defaults", {}).get("run", {}).get("working-directory", ".")
        for name, job in document["jobs"].items():
            needs = job.get("needs", [])
            needs = [needs] if isinstance(needs, str) else needs
            always = all(self.results[need] == "success" for need in needs)
            if not (name in self.only if self.only else self.holds(job["if"]) if "if" in job else always):
                self.results[name] = "skipped"
                continue
            variables = {**document.get("env", {}), **job.get("env", {})}
            self.results[name] = self._job(name, job["steps"], below, {**variables, **self.environment})
            self.outputs |= {f"needs.{name}.outputs.{key}": self.told(value) for key, value in job.get("outputs", {}).items()}

    def _job(self, name: str, steps: list[dict[str, Any]], below: str, environment: dict[str, str]) -> str:
        root = self.folder / name
        root.mkdir(parents=True)
        paths = self.folder / f"{name}.path"
        paths.touch()
        result = "success"
        for step in steps:
            if not (self.holds(step["if"]) if "if" in step else result == "success"):
                continue
            if "uses" in step:
                action = step["uses"].partition("@")[0]
                ACTIONS[action](self, root, {key: self.told(value) for key, value in step.get("with", {}).items()})
                continue
            added = ":".join(paths.read_text().split())
            variables = {
                **environment,
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_PATH": str(paths),
                "PATH": f"{added}:{environment['PATH']}" if added else environment["PATH"],
            }
            if not self.shell(name, step["run"], root / below, variables):
                result = "failure"
        return result

    def told(self, value: Any) -> Any:
        """Put what is known into a value, in the place of its name."""
        known = {"github.run_attempt": "1", **self.outputs}
        return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda match: known.get(match[1], match[0]), value) if isinstance(value, str) else value

    def holds(self, expression: str) -> bool:
        """Evaluate a condition."""
        text = expression.removeprefix("${{").removesuffix("}}").replace("&&", " and ").replace("!cancelled()", "True")
        known = {**self.context, **{f"needs.{name}.result": result for name, result in self.results.items()}}
        names = r"\b(?:github|vars|needs)(?:\.\w+)+"
        return bool(eval(re.sub(names, lambda match: repr(known.get(match[0], "")), text).strip()))

    # GitLab

    def is_due(self, document: Mapping[str, Any], name: str, branch: str) -> bool:
        """Say whether a job belongs to the pipeline of a branch, or to that of a merge request where none is named."""
        variables = {**_variables(document, name, branch), **self.context}
        return "rules" not in document[name] or any(_matches(rule["if"], variables) for rule in document[name]["rules"])

    def pipeline(self, text: str, branch: str) -> None:
        """Run the jobs of a pipeline that belong to a branch, or to a merge request where none is named, in their order."""
        document = yaml.safe_load(text)
        for name, job in document.items():
            if name.startswith("."):
                continue
            if not (name in self.only if self.only else self.is_due(document, name, branch)):
                self.results[name] = "skipped"
                continue
            variables = _variables(document, name, branch)
            root = clone(self.project, self.folder / name, variables.get("GIT_SUBMODULE_STRATEGY", ""))
            for need in job.get("needs", ()):
                kept = self.folder / f"{need['job']}.artifacts"
                if kept.is_dir():  # each file comes to where it was
                    shutil.copytree(kept, root, dirs_exist_ok=True)
            environment = {**variables, **self.environment, "CI_PROJECT_DIR": str(root)}
            is_good = self.shell(name, "\n".join(job["script"]), root, environment)
            self.shell(name, "\n".join(job.get("after_script", ["true"])), root, environment)
            self.results[name] = "success" if is_good else "failure"
            kept = self.folder / f"{name}.artifacts"
            kept.mkdir()
            for path in job.get("artifacts", {}).get("paths", ()):
                if (root / path).is_file():
                    (kept / path).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(root / path, kept / path)
                elif (root / path).is_dir():
                    shutil.copytree(root / path, kept / path)
                    self.published = kept / path if name == "pages" else self.published


def _variables(document: Mapping[str, Any], name: str, branch: str) -> dict[str, str]:
    job = document[name]
    base = document[job["extends"]] if "extends" in job else {}
    return {"CI_COMMIT_BRANCH": branch, "CI_DEFAULT_BRANCH": "main", **base.get("variables", {}), **job.get("variables", {})}


def _matches(rule: str, variables: Mapping[str, str]) -> bool:
    text = re.sub(r"\$(\w+)", lambda match: repr(variables.get(match[1], "")), rule).replace("&&", " and ")
    return bool(eval(text))


def _check_out(run: Run, root: Path, options: Mapping[str, Any]) -> None:
    clone(run.project, root, options.get("submodules", ""))


def _nothing(_run: Run, _root: Path, _options: Mapping[str, Any]) -> None:
    """Do nothing: Python is there, and no earlier run has left a cache."""


def _upload(run: Run, root: Path, options: Mapping[str, Any]) -> None:
    path = root / options["path"].replace("${{ runner.temp }}", str(run.temporary))
    hidden = any(part.startswith(".") for part in Path(options["path"]).parts)
    if path.is_file() and (not hidden or options.get("include-hidden-files")):
        target = run.folder / "artifacts" / options["name"]
        target.mkdir(parents=True)
        shutil.copy(path, target)


def _download(run: Run, root: Path, options: Mapping[str, Any]) -> None:
    for path in (run.folder / "artifacts").glob(options["pattern"]):
        shutil.copytree(path, root / options["path"] / path.name)


def _publish(run: Run, _root: Path, options: Mapping[str, Any]) -> None:
    """Unpack what is handed to Pages."""
    run.published = run.folder / "published"
    with tarfile.open(run.folder / "artifacts" / options["artifact_name"] / "artifact.tar") as packed:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(run.published)


ACTIONS = {
    "actions/checkout": _check_out,
    "actions/setup-python": _nothing,
    "actions/cache/restore": _nothing,
    "actions/cache/save": _nothing,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
    "actions/deploy-pages": _publish,
}
"""What each action does, as far as the steps after it see; a workflow may use no other."""
