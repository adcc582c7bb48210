"""Worked examples of the few-shot prompt: the same sentences in every language that it can write.

They are of the sort that people say in talks, and complete: broken-off ones among them make a small model break off
whole sentences as well.
"""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "en": (
        "Good morning, everyone, and thank you for coming today.",
        "So what did we learn from these two experiments?",
        "Last year the new bridge was closed for three months because of the rain.",
        "When I was a student, I worked in a small shop on Saturdays.",
    ),
    "de": (
        "Guten Morgen zusammen, und danke, dass Sie heute gekommen sind.",
        "Was haben wir also aus diesen beiden Experimenten gelernt?",
        "Letztes Jahr war die neue Brücke wegen des Regens drei Monate lang gesperrt.",
        "Als ich Student war, habe ich samstags in einem kleinen Laden gearbeitet.",
    ),
    "fr": (
        "Bonjour à tous, et merci d'être venus aujourd'hui.",
        "Alors, qu'avons-nous appris de ces deux expériences ?",
        "L'année dernière, le nouveau pont a été fermé pendant trois mois à cause de la pluie.",
        "Quand j'étais étudiant, je travaillais dans un petit magasin le samedi.",
    ),
    "es": (
        "Buenos días a todos y gracias por venir hoy.",
        "Entonces, ¿qué aprendimos de estos dos experimentos?",
        "El año pasado el nuevo puente estuvo cerrado tres meses a causa de la lluvia.",
        "Cuando era estudiante, trabajaba los sábados en una pequeña tienda.",
    ),
    "it": (
        "Buongiorno a tutti e grazie di essere venuti oggi.",
        "Allora, che cosa abbiamo imparato da questi due esperimenti?",
        "L'anno scorso il nuovo ponte è rimasto chiuso per tre mesi a causa della pioggia.",
        "Quando ero studente, il sabato lavoravo in un piccolo negozio.",
    ),
}
