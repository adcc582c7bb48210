"""Half sentences: how much of a translation a cut-off source supports.

A translation is cut behind its longest beginning all of whose words translate words inside the cut. Words that stand
for what has not been said (an article before its noun, a preposition) are taken away from its end, so that the model
learns to wait rather than to guess.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.finetune.align import Linked
from engine.finetune.rows import normalised

# Words at the end of a cut-off source that say nothing yet of how the sentence goes on.
_OPENING = frozenset(
    "a an the this that these those my your his her its our their of to in on at by for from with into about "
    "and or but so if as than when while because which who whose is are was were be been has have had do does "
    "did will would can could should may might must not very more most some any no every each".split()
)
# Words at the end of a cut-off translation whose form or place depends on what follows.
_DEPENDENT = {
    "de": frozenset(
        "der die das den dem des ein eine einen einem einer eines mein dein sein ihr unser euer meine deine seine "
        "ihre unsere kein keine keinen keinem keiner dieser diese dieses diesen diesem jeder jede jedes jeden "
        "jedem in im an am auf aus bei beim mit nach seit von vom zu zum zur durch für gegen ohne um über unter "
        "vor hinter zwischen neben und oder aber sehr so nicht welche welcher welches".split()
    ),
    "fr": frozenset(
        "le la les l un une des du de d à au aux en dans sur sous par pour avec sans chez vers entre mon ma mes "
        "ton ta tes son sa ses notre nos votre vos leur leurs ce cet cette ces et ou mais que qu qui dont ne n "
        "très si plus chaque quelques quel quelle".split()
    ),
    "es": frozenset(
        "el la los las un una unos unas lo de del a al en con por para sin sobre entre hacia desde hasta mi mis tu "
        "tus su sus nuestro nuestra nuestros nuestras este esta estos estas ese esa esos esas aquel aquella y e o "
        "u pero que no muy más cada algunos algunas qué".split()
    ),
    "it": frozenset(
        "il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli alle da dal "
        "dallo dalla dai dagli dalle in nel nello nella nei negli nelle con su sul sullo sulla sui sugli sulle per "
        "tra fra mio mia miei mie tuo tua suo sua suoi sue nostro nostra nostri nostre questo questa questi queste "
        "quel quella quei quegli quelle e ed o ma che non molto più ogni alcuni alcune".split()
    ),
}


def heard(source: Sequence[str], cut: int) -> int:
    """How many of the first `cut` source words count: those up to the last that does not wait for what follows."""
    while cut and normalised(source[cut - 1]) in _OPENING:
        cut -= 1
    return cut


def supported(pair: Linked, cut: int, language: str) -> int:
    """How many target words the first `cut` source words support; all of them for the whole source.

    A word without links belongs to what follows it: it is taken when a linked word behind it is.
    """
    if cut >= len(pair.source):
        return len(pair.target)
    limit = heard(pair.source, cut)
    kept = 0
    for at, links in enumerate(pair.links):
        if links and links[-1] >= limit:
            break
        if links:
            kept = at + 1
    while kept and _waits(pair.target[kept - 1], language):
        kept -= 1
    return kept


def _waits(word: str, language: str) -> bool:
    return normalised(word.replace("’", " ").replace("'", " ")) in _DEPENDENT[language]
