"""The languages of the interface: `resources/translations/surtitle_<code>.qm`, made by `make translations`.

A language is there as soon as its file is; no code names one. English is what stands in the code.
"""

from __future__ import annotations

import logging
import re

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from engine.presets import resources

log = logging.getLogger(__name__)

ENGLISH = "en"
_installed: list[QTranslator] = []


def languages() -> dict[str, str]:
    """Code → the language's own name, English first."""
    found = {ENGLISH: "English"}
    for path in sorted((resources() / "translations").glob("surtitle_*.qm")):
        code = path.stem.removeprefix("surtitle_")
        name = QLocale(code).nativeLanguageName()
        found[code] = name[:1].upper() + name[1:] if name else code
    return found


def language_for(wanted: str) -> str:
    """The code to use for what the settings say ("" is the system's choice); English where there is no other."""
    there = languages()
    asked = [wanted] if wanted else QLocale.system().uiLanguages()
    for code in asked:
        code = code.replace("-", "_")
        for candidate in (code, code.split("_")[0]):
            if candidate in there:
                return candidate
    return ENGLISH


def use_language(wanted: str) -> str:
    """Switch the running program's interface; every widget hears of it as `QEvent.LanguageChange`. The code in use."""
    for translator in _installed:
        QCoreApplication.removeTranslator(translator)
        translator.deleteLater()
    _installed.clear()
    code = language_for(wanted)
    if code == ENGLISH:
        return code
    folders = {
        "qtbase": QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath),  # Qt's own buttons and menus
        "surtitle": str(resources() / "translations"),
    }
    for name, folder in folders.items():
        translator = QTranslator(QCoreApplication.instance())
        if translator.load(f"{name}_{code}", folder) and QCoreApplication.installTranslator(translator):
            _installed.append(translator)
        else:
            log.warning("The interface's %s texts for '%s' are not in %s.", name, code, folder)
    return code


def translate(context: str, text: str) -> str:
    """A text in the interface's language. `make translations` collects the literals of these calls."""
    return QCoreApplication.translate(context, text)


def fill(text: str, /, **values: object) -> str:
    """A translated text with its `{places}` filled; a translation with a slip in them costs no more than its beauty."""
    try:
        return text.format(**values)
    except (KeyError, IndexError, ValueError):
        log.warning("The places in the text %r are not those that the program fills.", text)
        return re.sub(r"{(\w+)[^}]*}", lambda match: str(values.get(match[1], "")), text)
