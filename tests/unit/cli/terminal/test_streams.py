import io
import sys

from dbanon.cli.terminal import console


def test_output_is_utf_8_in_any_locale(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with console.lasting() as out:
        out.write("Tromsø \u2500 \udc80")
        out.flush()
    assert "Tromsø ─ \\udc80" == raw.getvalue().decode("utf-8")
