"""The words of the film reviews, as tables.

In templates {s} is a subject, {be} and {has} its verb, {a} an adjective, {n} a noun with its article, {q} a quality.
A template's key, before the bar, names the negator or intensifier, with which combinations may be held out.
"""

GOOD = """
brilliant wonderful superb excellent impressive delightful memorable charming clever gripping original witty
beautiful lovely perfect exciting
"""
BAD = """
terrible awful dull boring dreadful clumsy tedious predictable lifeless forgettable annoying shallow
silly irritating horrible disappointing
"""
GOOD_NOUNS = "masterpiece triumph delight success gem joy pleasure treat"
BAD_NOUNS = "disappointment failure disaster mess bore catastrophe flop letdown"
GOOD_QUALITIES = "charm wit warmth depth suspense imagination energy style"
BAD_QUALITIES = "kitsch nonsense padding sentimentality stupidity repetition noise vulgarity"
# Base form and past tense.
LIKING = "love/loved enjoy/enjoyed admire/admired like/liked"
DISLIKING = "hate/hated dislike/disliked regret/regretted despise/despised"

ASPECTS = """
plot story script dialogue acting camera_work music soundtrack ending beginning direction pacing humor villain editing
screenplay set_design lead_actor leading_actress narrator photography casting atmosphere finale
"""
PLURAL_ASPECTS = "characters jokes costumes special_effects supporting_actors fight_scenes love_scenes twists songs"
WHOLES = "film movie film_as_a_whole movie_as_a_whole picture whole_thing result"

# Forms that leave the adjective's meaning as it is, and forms that turn it round.
PLAIN_CLAIMS = """
plain | {s} {be} {a}
really | {s} {be} really {a}
truly | {s} {be} truly {a}
always | {s} {be} always {a}
nothing but | {s} {be} nothing but {a}
nothing short of | {s} {be} nothing short of {a}
not only | {s} {be} not only {a} but also {b}
I would call | I would call {s} {a}
"""
TURNED_CLAIMS = """
not | {s} {be} not {a}
never | {s} {be} never {a}
hardly | {s} {be} hardly {a}
far from | {s} {be} far from {a}
anything but | {s} {be} anything but {a}
I would not call | I would not call {s} {a}
nobody would call | nobody would call {s} {a}
"""
PLAIN_NOUNS = """
plain | {s} is {n}
really | {s} really is {n}
truly | {s} is truly {n}
nothing but | {s} is nothing but {n}
nothing short of | {s} is nothing short of {n}
everybody would call | everybody would call {s} {n}
"""
TURNED_NOUNS = """
not | {s} is not {n}
not exactly | {s} is not exactly {n}
hardly | {s} is hardly {n}
anything but | {s} is anything but {n}
far from | {s} is far from {n}
nobody would call | nobody would call {s} {n}
"""
PLAIN_QUALITIES = """
a lot | {s} {has} a lot of {q}
plenty | {s} {has} plenty of {q}
full of | {s} {be} full of {q}
there is | there is a lot of {q} in {s}
"""
TURNED_QUALITIES = """
lacks any | {s} {lack} any {q}
no | {s} {has} no {q}
free of | {s} {be} free of {q}
there is no | there is no {q} in {s}
"""
PLAIN_FEELINGS = """
plain | I {past} {s}
always | I {past} {s} all the time
really | I really {past} {s}
"""
TURNED_FEELINGS = """
did not | I did not {base} {s}
never | I never {past} {s}
hardly | I hardly {past} {s}
could not | I could not {base} {s}
"""

# Who says something, and the pronoun {p} in the writer's answer.
CRITICS = """
my brother/he|my sister/she|my father/he|my mother/she|my neighbor/he|my colleague/she|my teacher/he|my uncle/he
my aunt/she|the critic of the newspaper/she|the man beside me/he|my best friend/she|my cousin/he|my boss/she
"""
AGREEMENTS = """
{p} is right|{p} is not wrong|I agree|I cannot disagree|I see it the same way|{p} knows what {p} is talking about
"""
DISAGREEMENTS = """
{p} is wrong|{p} is not right|I disagree|I cannot agree|I see it differently|{p} does not know what {p} is talking about
"""

GENRES = "drama comedy thriller western musical documentary romance mystery cartoon adventure"
COMPANIONS = "my wife|my husband|my children|two friends|my parents|my class|a colleague|my grandmother|nobody else"
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
OCCASIONS = "at the festival|in a small cinema|on a long flight|at home|in Berlin|on television|in an open-air theater"
HEROES = """
detective farmer pianist nurse soldier lawyer teacher pilot thief journalist widow painter sailor professor baker
gardener spy singer boxer student priest captain gambler waiter carpenter dentist shepherd butcher chemist tailor
blacksmith librarian plumber violinist
"""
PLACES = "Paris Vienna Chicago Lisbon Rome Tokyo Scotland Mexico Warsaw Cairo Norway Iceland Peru Dublin Prague"
EVENTS = """
finds an old letter|loses everything|meets a stranger|buys a haunted house|steals a painting|falls in love
inherits a hotel|hides from the police|searches for a missing child|returns to an old village|opens a bakery
robs a train|flies to the moon|repairs a lighthouse|invents a machine|writes a secret diary|sells the family farm
escapes from an island|raises two orphans|digs for gold|trains young wolves
builds a boat|adopts a dog|joins a circus|wins the lottery|crosses the desert|learns to dance|solves a murder
"""

# Adjectives that fit anything, for what is not the film.
GOOD_ANYWHERE = "wonderful superb excellent impressive delightful memorable lovely perfect"
BAD_ANYWHERE = "terrible awful dreadful annoying irritating horrible disappointing forgettable"

# What is not the film: opinions about it do not count.
SIDESHOWS = """
the popcorn|the cinema|the trailer before it|the seat in front of me|the restaurant afterwards|the weather that evening
the book by another author|the previous film of the director|the short film before it|the poster in the lobby
the new series of the same studio|the conversation on the way home|the parking lot|the coffee in the foyer
"""

# Subtle cues that settle an otherwise balanced review.
GOOD_ENDS = """
I stayed until the last line of the credits|I bought a ticket for the next evening|my watch stayed in my pocket
the two hours were over before I knew it|I have told all my friends to go|I will see it again with my parents
"""
BAD_ENDS = """
I left before the last line of the credits|I gave away my ticket for the next evening|my eyes stayed on my watch
the two hours would not come to an end|I have told all my friends to stay home|I will see another one with my parents
"""
