"""Builds the Debian package: `make deb`, or python packaging/deb/build.py --work DIR --output DIR.

The package holds the window with everything it imports, and of the engine a list: which files to download, with their
checksums. Only the translator's library, which exists as source alone, is compiled here and packed (for processors
with AVX2: a native build would run on this machine's kind only). It is bound to the system's Python, 3.11 on Debian 12,
whose ABI the compiled parts have.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import urllib.parse
import zipfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SYSTEM_PYTHON = "/usr/bin/python3"
LLAMA = re.search(r'"(llama-cpp-python==[^"]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CPU_FLAGS = ("avx", "avx2", "fma", "f16c", "bmi2")
# Parts of PySide6-Essentials that nothing here imports: QML and its libraries, and the developers' tools.
UNUSED = (
    *("Qt/qml", "Qt/metatypes", "Qt/libexec", "include", "typesystems", "scripts", "doc", "glue", "support/generator"),
    *(
        "assistant",
        "designer",
        "linguist",
        "lrelease",
        "lupdate",
        "qmlformat",
        "qmllint",
        "qmlls",
        "balsam",
        "balsamui",
    ),
    *("svgtoqml", "qsb", "Qt/lib/libQt6Designer*", "Qt/lib/libQt6Qml*", "Qt/lib/libQt6Quick*", "Qt/lib/libQt6Help*"),
    *("Qt/lib/libQt6Labs*", "Qt/lib/libQt6Test*", "Qt/lib/libQt6UiTools*", "Qt/lib/libQt6Sql*", "*.pyi"),
    *("libpyside6qml*", "QtQml*", "QtQuick*", "QtDesigner*", "QtHelp*", "QtTest*", "QtUiTools*", "QtSql*"),
    *(
        "Qt/plugins/designer",
        "Qt/plugins/qmltooling",
        "Qt/plugins/qmllint",
        "Qt/plugins/qmlls",
        "Qt/plugins/sqldrivers",
    ),
)


class BuildError(Exception):
    """One sentence: what is missing to build the package."""


@dataclass(frozen=True)
class Resolved:
    """One package that pip chose."""

    name: str
    version: str
    file: str
    sha256: str


def main() -> int:
    """Build; the path of the package is the last line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "packaging")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    try:
        print(build(args.work.resolve(), args.output.resolve()))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def build(work: Path, output: Path) -> Path:
    """The package's path. Raises `BuildError`."""
    check_machine()
    work.mkdir(parents=True, exist_ok=True)
    program = program_wheel(work / "program")
    llama = llama_wheel(work / "llama")
    say("resolving what window and engine need")
    window, engine = resolve(work, program, llama.parent)
    files = fetch(work / "wheels", [*window, *engine], (llama, program))
    tree = work / "root"
    shutil.rmtree(tree, ignore_errors=True)
    lib = tree / "usr" / "lib" / "surtitle"
    say("installing the window's packages")
    window_files = [files[package.file] for package in window]
    pip("install", "--no-deps", "--no-index", "--target", lib / "python", *window_files)
    prune(lib / "python" / "PySide6")
    shutil.rmtree(lib / "python" / "bin", ignore_errors=True)
    bundle(lib / "python" / "surtitle_engine", program, llama, engine, files)
    version = program.name.split("-")[1]
    desktop(tree, version)
    control(tree, version)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"surtitle_{version}_{deb_machine()}.deb"
    say("packing")
    part = path.with_suffix(".part")
    run("dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", tree, part)
    part.replace(path)
    return path


def check_machine() -> None:
    """Raises `BuildError` where no package can be built."""
    if shutil.which("dpkg-deb") is None:
        raise BuildError("A Debian package is built on Debian or Ubuntu: dpkg-deb is not here.")
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    asked = subprocess.run([SYSTEM_PYTHON, "-V"], capture_output=True, text=True, check=False)
    if f" {ours}." not in asked.stdout:
        raise BuildError(
            f"The package is bound to the system's Python ({asked.stdout.strip() or 'none'}), and this is {ours}:"
            f" make deb PYTHON={SYSTEM_PYTHON}."
        )


def program_wheel(folder: Path) -> Path:
    """The program itself, built from the checkout."""
    say("building the program's wheel")
    shutil.rmtree(folder, ignore_errors=True)
    pip("wheel", "--no-deps", "--wheel-dir", folder, ROOT)
    return next(folder.glob("surtitle-*.whl"))


def llama_wheel(folder: Path) -> Path:
    """The translator's library for any processor with `CPU_FLAGS`; kept from one build to the next."""
    assert LLAMA is not None
    version = LLAMA[1].partition("==")[2]
    found = list(folder.glob(f"llama_cpp_python-{version}-*.whl"))
    if found:
        return found[0]
    say(f"compiling {LLAMA[1]} (5 to 8 minutes on two cores, once)")
    switches = " ".join(f"-DGGML_{flag.upper()}=ON" for flag in CPU_FLAGS)
    env = {**os.environ, "CMAKE_ARGS": f"-DGGML_NATIVE=OFF {switches}"}
    pip(
        "wheel",
        "--no-deps",
        "--no-cache-dir",
        "--no-binary",
        "llama-cpp-python",
        "--wheel-dir",
        folder,
        LLAMA[1],
        env=env,
    )
    return next(folder.glob("llama_cpp_python-*.whl"))


def resolve(work: Path, program: Path, wheels: Path) -> tuple[list[Resolved], list[Resolved]]:
    """What the window needs, and what the engine of the `laptop` preset needs beside it."""
    everything = _report(work / "laptop.json", f"{program}[laptop]", "--find-links", wheels)
    pins = work / "pins.txt"
    pins.write_text("".join(f"{p.name}=={p.version}\n" for p in everything if p.name != "surtitle"), encoding="utf-8")
    window = _report(work / "window.json", program, "--constraint", pins)
    names = {package.name for package in window}
    return window, [package for package in everything if package.name not in names]


def _report(path: Path, *words: object) -> list[Resolved]:
    pip("install", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", path, *words)
    rows = json.loads(path.read_text(encoding="utf-8"))["install"]
    return [
        Resolved(
            row["metadata"]["name"],
            row["metadata"]["version"],
            urllib.parse.unquote(row["download_info"]["url"].rsplit("/", 1)[-1]),
            row["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for row in rows
    ]


def fetch(folder: Path, packages: list[Resolved], here: tuple[Path, ...]) -> dict[str, Path]:
    """File name → file, each as it was resolved."""
    folder.mkdir(exist_ok=True)
    files = {path.name: path for path in here}
    needed = []
    for package in packages:
        path = files.setdefault(package.file, folder / package.file)
        if not path.is_file() or sha256(path) != package.sha256:
            needed.append(f"{package.name}=={package.version} --hash=sha256:{package.sha256}\n")
    if needed:
        say(f"downloading {len(needed)} packages")
        (folder / "needed.txt").write_text("".join(needed), encoding="utf-8")
        pip("download", "--no-deps", "--only-binary", ":all:", "--dest", folder, "-r", folder / "needed.txt")
    return files


def prune(qt: Path) -> None:
    """Leave out the parts of Qt that are not used."""
    for pattern in UNUSED:
        for path in qt.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def bundle(folder: Path, program: Path, llama: Path, engine: list[Resolved], files: dict[str, Path]) -> None:
    """The list of the engine's packages, what is packed of them, and pip to install them with."""
    (folder / "wheels").mkdir(parents=True)
    shutil.copy2(llama, folder / "wheels")
    shutil.copy2(program, folder)
    shutil.copy2(ROOT / "packaging" / "setup-gpu.sh", folder)
    pip("install", "--no-deps", "--target", folder / "pip", "pip")
    shutil.rmtree(folder / "pip" / "bin", ignore_errors=True)
    rows = []
    for package in engine:
        path = files[package.file]
        with zipfile.ZipFile(path) as wheel:
            unpacked = sum(entry.file_size for entry in wheel.infolist())
        rows.append(
            {
                "requirement": f"{package.name}=={package.version}",
                "file": path.name,
                "sha256": sha256(path),
                "size": path.stat().st_size,
                "unpacked": unpacked,
            }
        )
    data = {
        "version": program.name.split("-")[1],
        "python": f"cp{sys.version_info[0]}{sys.version_info[1]}",
        "machine": platform.machine(),
        "cpu_flags": CPU_FLAGS,
        "later_bytes": joined_bytes(),
        "wheels": rows,
    }
    (folder / "packages.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def joined_bytes() -> int:
    """Bytes that the models take in the user's cache: those that are put together there when they are loaded first, and
    as much again for the file that is prepared from them, which is smaller.
    """
    sys.path.insert(0, str(ROOT))
    from engine.packaged import PACKAGED

    return 2 * sum(model.size for model in PACKAGED.values() if model.joined and model.extra == "laptop")


def desktop(tree: Path, version: str) -> None:
    """Command, desktop entry, icon, AppStream data, licences."""
    share = tree / "usr" / "share"
    put(HERE / "surtitle.sh", tree / "usr" / "bin" / "surtitle", 0o755)
    put(HERE / "surtitle.desktop", share / "applications" / "surtitle.desktop")
    put(
        ROOT / "resources" / "icons" / "surtitle.svg",
        share / "icons" / "hicolor" / "scalable" / "apps" / "surtitle.svg",
    )
    for name in ("LICENSE", "CHANGELOG.md", "resources/NOTICES.md"):
        put(ROOT / name, share / "doc" / "surtitle" / Path(name).name)
    put(HERE / "copyright", share / "doc" / "surtitle" / "copyright")
    text = (HERE / "surtitle.metainfo.xml.in").read_text(encoding="utf-8")
    when = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    place = share / "metainfo" / "surtitle.metainfo.xml"
    place.parent.mkdir(parents=True)
    place.write_text(text.replace("@VERSION@", version).replace("@DATE@", when), encoding="utf-8")


def control(tree: Path, version: str) -> None:
    """What dpkg must know."""
    ours = sys.version_info
    depends = [
        f"python3 (>= {ours[0]}.{ours[1]})",
        f"python3 (<< {ours[0]}.{ours[1] + 1})",
        "ca-certificates",
        *libraries(),
    ]
    size = sum(path.lstat().st_size for path in tree.rglob("*") if not path.is_dir()) // 1024
    debian = tree / "DEBIAN"
    debian.mkdir()
    (debian / "control").write_text(
        f"Package: surtitle\nVersion: {version}\nArchitecture: {deb_machine()}\nSection: sound\nPriority: optional\n"
        f"Maintainer: The Surtitle authors <surtitle@localhost>\nInstalled-Size: {size}\n"
        f"Depends: {', '.join(depends)}\nSuggests: pulseaudio-utils, obs-studio\n"
        "Description: live translated subtitles on your own machine\n"
        " You speak; the translation appears while you speak. Text that is shown as\n"
        " stable never changes again. Nothing that is said leaves the machine.\n .\n"
        " The recogniser and the translator are downloaded on the first start.\n",
        encoding="utf-8",
    )
    put(HERE / "prerm", debian / "prerm", 0o755)


def libraries() -> list[str]:
    """System libraries as `packaging/system-packages.sh` names them for running the program."""
    text = (ROOT / "packaging" / "system-packages.sh").read_text(encoding="utf-8")
    listed = text.partition("wanted=(")[2].partition("\n)")[0]
    return [names.replace("|", " | ") for names in re.findall(r'^ *"([^:"]+):', listed, re.MULTILINE)]


# ---------------------------------------------------------------- small things


def deb_machine() -> str:
    """The architecture, as dpkg calls it."""
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def put(source: Path, place: Path, mode: int = 0o644) -> None:
    """Copy a file, making its folder."""
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    place.chmod(mode)


def sha256(path: Path) -> str:
    """Checksum of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pip(command: str, *words: object, env: dict[str, str] | None = None) -> None:
    """Run pip quietly. Raises `BuildError`."""
    run(sys.executable, "-m", "pip", command, "--quiet", "--disable-pip-version-check", *words, env=env)


def run(*words: object, env: dict[str, str] | None = None) -> None:
    """Run a program whose words are shown when it fails. Raises `BuildError`."""
    done = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, check=False
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise BuildError(f"`{' '.join(map(str, words[:5]))} …` failed; what it said stands above.")


def say(text: str) -> None:
    """Progress."""
    print(f"surtitle: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
