"""Where the studio listens, and how the browser learns of its address."""

import socket
import subprocess
import sys
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dbanon.cli import main
from dbanon.domain.errors import ConfigError
from dbanon.studio import serving
from dbanon.studio.gate import Access


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "the studio listens on one address"),  # noqa: S104 - refused
        (("--host", "::"), "the studio listens on one address"),
        (("--host", "studio.example"), "the studio listens on 127.0.0.1 alone"),
        (("--host", "studio.example", "--allow-remote"), "the studio listens on 127.0.0.1 alone"),
        (("--tls-cert", "cert.pem"), "TLS needs a certificate and its key"),
        (("--tls-cert", "no.pem", "--tls-key", "no.pem"), "there is no file no.pem"),
    ],
)
def test_another_address_is_refused_unless_it_is_allowed_and_has_tls(
    monkeypatch, capsys, words, told
):
    monkeypatch.setattr(serving, "serve", lambda *_, **__: pytest.fail("it was served"))
    monkeypatch.setattr(sys, "argv", ["dbanon", "studio", "--no-browser", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert 1 == ended.value.code
    shown = capsys.readouterr().err
    assert told in shown
    assert "--allow-remote --host NAME --tls-cert FILE --tls-key FILE" in shown


def test_a_port_that_is_taken_is_an_error_with_the_next_command():
    with socket.socket() as taken:
        taken.bind((serving.LOCAL, 0))
        taken.listen()
        with pytest.raises(ConfigError, match=r"cannot listen on 127\.0\.0\.1") as refused:
            serving.bound(serving.LOCAL, taken.getsockname()[1])
    assert "--port 0" in refused.value.hint


def test_the_browser_gets_the_address_by_a_file_that_others_cannot_read(monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    access = Access("http://127.0.0.1:8765")
    serving.show(access)
    (address,) = opened
    assert access.token not in address
    file = Path(urlsplit(address).path)
    assert access.address in file.read_text("utf-8").replace("&amp;", "&")
    assert 0 == file.parent.stat().st_mode & 0o077
    file.unlink()
    file.parent.rmdir()


WITHOUT = """
import sys
sys.modules |= dict.fromkeys(["starlette", "uvicorn", "jinja2"])  # None: as if not installed
from dbanon.cli import main
sys.argv = ["dbanon", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        (["--version"], 0, "dbanon"),
        (["--help"], 0, "studio"),
        (["studio", "--help"], 0, "--demo"),
        (["studio"], 1, "pip install 'dbanon[studio]'"),
        (["studio", "--demo"], 1, "pip install 'dbanon[studio]'"),
    ],
)
def test_without_the_extra_only_the_studio_itself_is_refused(words, code, shown):
    command = [sys.executable, "-c", WITHOUT, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert code == done.returncode
    assert shown in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_is_on_no_other_server(monkeypatch, capsys):
    words = ["dbanon", "studio", "--no-browser", "--demo", "--dsn", "dbname=mine"]
    monkeypatch.setattr(serving, "serve", lambda *_, **__: pytest.fail("it was served"))
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert 2 == ended.value.code
    assert "--demo uses the embedded server" in " ".join(capsys.readouterr().err.split())
