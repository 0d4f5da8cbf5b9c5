"""The lexicon of the French fragment: what `fragment` builds sentences from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Noun:
    """A noun: French and English singular and plural, grammatical gender, and what it means."""

    french: tuple[str, str]
    gender: str
    english: tuple[str, str]
    kind: str


@dataclass(frozen=True)
class Adjective:
    """An adjective: French (m sg, f sg, m pl, f pl), English, what it can describe.

    `before_vowel` is the masculine singular before a vowel, if it is another one.
    """

    french: tuple[str, str, str, str]
    english: str
    kinds: str
    before_vowel: str = ""


@dataclass(frozen=True)
class Verb:
    """A verb: French third person (sg, pl) and participle, English (base, third person, past).

    `objects` are the kinds of nouns it takes; none for an intransitive verb.
    """

    french: tuple[str, str]
    participle: str
    english: tuple[str, str, str]
    objects: str = ""


def _nouns(kind: str, *rows: str) -> list[Noun]:
    """Read "singular plural gender singular plural"."""
    made = []
    for row in rows:
        one, many, gender, english, plural = row.split()
        made.append(Noun((one, many), gender, (english, plural), kind))
    return made


def _adjectives(kinds: str, *rows: str) -> list[Adjective]:
    """Read "m f mpl fpl english", with "/form" after the m for the one before a vowel."""
    made = []
    for row in rows:
        m, f, mpl, fpl, english = row.split()
        m, _, before_vowel = m.partition("/")
        made.append(Adjective((m, f, mpl, fpl), english, kinds, before_vowel))
    return made


def _verbs(objects: str, *rows: str) -> list[Verb]:
    """Read "singular plural participle base third-person past"."""
    made = []
    for row in rows:
        one, many, participle, *english = row.split()
        made.append(Verb((one, many), participle, tuple(english), objects))
    return made


# Kinds: p person, a animal, t thing, f food, l place.
NOUNS = [
    *_nouns(
        "p",
        "garçon garçons m boy boys",
        "fille filles f girl girls",
        "homme hommes m man men",
        "femme femmes f woman women",
        "enfant enfants m child children",
        "roi rois m king kings",
        "reine reines f queen queens",
        "voisin voisins m neighbour neighbours",
        "actrice actrices f actress actresses",
        "ouvrier ouvriers m worker workers",
    ),
    *_nouns(
        "a",
        "chat chats m cat cats",
        "chien chiens m dog dogs",
        "oiseau oiseaux m bird birds",
        "souris souris f mouse mice",
        "chèvre chèvres f goat goats",
    ),
    *_nouns(
        "t",
        "livre livres m book books",
        "lettre lettres f letter letters",
        "fleur fleurs f flower flowers",
        "couteau couteaux m knife knives",
        "chaise chaises f chair chairs",
        "parapluie parapluies m umbrella umbrellas",
        "horloge horloges f clock clocks",
    ),
    *_nouns(
        "f",
        "pomme pommes f apple apples",
        "orange oranges f orange oranges",
        "œuf œufs m egg eggs",
        "gâteau gâteaux m cake cakes",
    ),
    *_nouns(
        "l",
        "maison maisons f house houses",
        "jardin jardins m garden gardens",
        "école écoles f school schools",
        "ville villes f town towns",
        "île îles f island islands",
        "forêt forêts f forest forests",
    ),
]

AFTER = [  # adjectives that follow their noun
    *_adjectives("tf", "rouge rouge rouges rouges red", "vert verte verts vertes green"),
    *_adjectives("tl", "noir noire noirs noires black", "blanc blanche blancs blanches white"),
    *_adjectives("t", "lourd lourde lourds lourdes heavy", "utile utile utiles utiles useful"),
    *_adjectives("tf", "rond ronde ronds rondes round", "cher chère chers chères expensive"),
    *_adjectives("f", "froid froide froids froides cold"),
    *_adjectives("l", "vide vide vides vides empty"),
    *_adjectives("patl", "étrange étrange étranges étranges odd"),
    *_adjectives("pl", "célèbre célèbre célèbres célèbres famous"),
    *_adjectives("pa", "heureux heureuse heureux heureuses happy"),
    *_adjectives("pa", "fatigué fatiguée fatigués fatiguées tired"),
]
BEFORE = [  # adjectives that come first, as in English
    *_adjectives("patfl", "petit petite petits petites little", "grand grande grands grandes big"),
    *_adjectives("patl", "beau/bel belle beaux belles beautiful"),
    *_adjectives("patl", "vieux/vieil vieille vieux vieilles old"),
    *_adjectives("pa", "jeune jeune jeunes jeunes young"),
    *_adjectives("pf", "mauvais mauvaise mauvais mauvaises bad"),
]

TRANSITIVE = [
    *_verbs("patfl", "voit voient vu see sees saw", "cherche cherchent cherché seek seeks sought"),
    *_verbs("patfl", "trouve trouvent trouvé find finds found"),
    *_verbs("patfl", "peint peignent peint paint paints painted"),
    *_verbs("patfl", "dessine dessinent dessiné draw draws drew"),
    *_verbs("patfl", "aime aiment aimé like likes liked"),
    *_verbs("patfl", "oublie oublient oublié forget forgets forgot"),
    *_verbs("pat", "lave lavent lavé wash washes washed"),
    *_verbs("patf", "cache cachent caché hide hides hid"),
    *_verbs("patf", "perd perdent perdu lose loses lost"),
    *_verbs("tf", "prend prennent pris take takes took", "vend vendent vendu sell sells sold"),
    *_verbs("f", "mange mangent mangé eat eats ate"),
]
INTRANSITIVE = [
    *_verbs("", "dort dorment dormi sleep sleeps slept", "chante chantent chanté sing sings sang"),
    *_verbs("", "court courent couru run runs ran", "nage nagent nagé swim swims swam"),
    *_verbs("", "danse dansent dansé dance dances danced"),
    *_verbs("", "attend attendent attendu wait waits waited"),
    *_verbs("", "rêve rêvent rêvé dream dreams dreamt"),
]
# Preposition, English, and the kinds of nouns after it.
PREPOSITIONS = [
    ("dans", "in", "l"),
    ("derrière", "behind", "l"),
    ("vers", "towards", "l"),
    ("avec", "with", "pa"),
    ("sans", "without", "pa"),
    ("pour", "for", "p"),
]
PRONOUNS = [("il", "he", "m", 0), ("elle", "she", "f", 0), ("ils", "they", "m", 1)]
PRONOUNS += [("elles", "they", "f", 1)]
