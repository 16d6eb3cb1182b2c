"""What is built is what is in the tree, and runs away from it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    if not (ROOT / "dbanon").is_dir():
        pytest.skip("the tests run away from the source tree")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, capture_output=True, check=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_sql_the_migrations_and_the_demo_data(wheel):
    expected = {
        **{f"dbanon/_bundled/{p.relative_to(ROOT)}": p for p in (ROOT / "sql").rglob("*.sql")},
        **{
            f"dbanon/_bundled/{p.relative_to(ROOT)}": p for p in (ROOT / "migrations").rglob("*.py")
        },
        **{str(p.relative_to(ROOT)): p for p in (ROOT / "dbanon").rglob("*") if p.is_file()},
    }
    expected = {name: path for name, path in expected.items() if "__pycache__" not in name}
    with zipfile.ZipFile(wheel) as archive:
        packed = {n: archive.read(n) for n in archive.namelist() if not n.startswith("dbanon-")}
    missing = [name for name, path in expected.items() if packed.get(name) != path.read_bytes()]
    assert missing == []


def test_an_installed_wheel_finds_its_files_away_from_the_tree(wheel, tmp_path):
    target = tmp_path / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        target,
        wheel,
    ]
    subprocess.run(pip, capture_output=True, check=True)
    code = "import dbanon, sys; sys.stdout.write(dbanon.__file__ + '\\n' + dbanon.init_sql())"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(target)},
    )
    file, _, script = run.stdout.partition("\n")
    assert Path(file).is_relative_to(target)
    assert "CREATE TABLE dbanon.release" in script
    assert "CREATE OR REPLACE FUNCTION dbanon.check_l_diversity" in script
