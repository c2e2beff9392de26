"""Adjectives, adverbs, times and fixed clauses, as tables."""

# German[:stem] English | tags of the nouns it goes with. What English splits (groß: tall, big) has several lines.
ADJECTIVES = """
klein small | people animal thing container toy fixable furniture vehicle food fruit place room building plant
groß tall | people
groß big | animal thing toy furniture vehicle food place building surface container outside instrument
jung young | adult animal plant
alt old | adult relative animal clothing thing toy fixable furniture vehicle building reading instrument
alt old | opening wood cloth
neu new | clothing thing toy furniture vehicle reading instrument bulb cloth building
müde tired | people relative animal
fröhlich cheerful | people relative
blond blond | people
freundlich friendly | people relative
lustig funny | people relative
kräftig strong | people
elegant elegant | adult clothing
ernst serious | adult
stolz proud | people relative
neugierig curious | people animal
höflich polite | people
aufgeregt excited | people relative
glücklich happy | people
traurig sad | people relative
mutig brave | people
geduldig patient | people relative
fleißig hard-working | adult
hungrig hungry | people animal
rot red | clothing thing toy furniture vehicle fruit cloth flowers balloon opening instrument candle
blau blue | clothing thing toy furniture vehicle cloth opening flowers
grün green | clothing thing toy furniture vehicle cloth opening fruit
gelb yellow | clothing thing toy furniture vehicle cloth flowers candle
schwarz black | clothing thing animal vehicle furniture instrument
weiß white | clothing thing animal vehicle furniture cloth flowers surface candle
braun brown | clothing thing animal furniture instrument
grau gray | clothing animal vehicle surface
dunkel:dunkl dark | clothing room building surface outside
hell bright | room surface
bunt colorful | clothing toy cloth flowers thing
gestreift striped | clothing cloth
kariert checkered | clothing cloth
warm warm | clothing cloth meal baked
dick thick | clothing reading cloth natural
dick fat | animal
dünn thin | reading natural paper cloth
lang long | natural reading waiting
kurz short | reading
teuer:teur expensive | clothing instrument vehicle flowers reading
billig cheap | clothing vehicle instrument
schmutzig dirty | clothing animal container vehicle opening cloth
sauber clean | clothing container opening cloth
nass wet | clothing animal cloth natural seat
leer empty | container place
schwer heavy | container natural furniture paper
leicht light | container
rund round | top cloth
kaputt broken | fixable bulb vehicle seat
schön beautiful | flowers outside building instrument
hoch:hoh tall | building plant
modern modern | building room furniture
berühmt famous | building reading
ruhig quiet | place outside
verschneit snowy | outside
wild wild | animal
gefleckt spotted | animal
schnell fast | vehicle animal
langsam slow | vehicle animal
laut loud | instrument
interessant interesting | reading
spannend exciting | reading
langweilig boring | reading
frisch fresh | food meal baked flowers drink dish
reif ripe | fruit
süß sweet | fruit drink baked
saftig juicy | fruit
lecker delicious | meal baked dish
heiß hot | drink meal dish
kalt cold | drink meal water
tief deep | water
"""

# Adjectives of "weil er müde ist", uninflected.
PREDICATES = """
müde tired
hungrig hungry
durstig thirsty
glücklich happy
traurig sad
krank sick
nervös nervous
allein alone
nass wet
ungeduldig impatient
neugierig curious
wütend angry
verliebt in_love
erschöpft exhausted
"""

PACES = """
langsam slowly
schnell quickly
vorsichtig carefully
leise quietly
fröhlich cheerfully
"""

MANNERS = """
vorsichtig carefully
fröhlich cheerfully
leise quietly
geduldig patiently
stolz proudly
neugierig curiously
aufmerksam attentively
"""

# German | English, said of one occasion.
TIMES = """
am Morgen | in the morning
am Nachmittag | in the afternoon
am Abend | in the evening
in der Nacht | at night
im Winter | in winter
im Sommer | in summer
heute | today
an einem kalten Tag | on a cold day
an einem sonnigen Morgen | on a sunny morning
an einem warmen Abend | on a warm evening
bei Regen | in the rain
nach dem Essen | after the meal
vor der Arbeit | before work
"""

# German | English, said of a habit: English then has the simple present.
HABITS = """
jeden Tag | every day
jeden Morgen | every morning
jeden Abend | every evening
jede Woche | every week
jedes Jahr | every year
"""

# German | English; English puts these before the verb.
FREQUENCIES = """
oft | often
immer | always
manchmal | sometimes
selten | rarely
"""

# Verb-final clauses without their conjunction.
CIRCUMSTANCES = """
es regnet | it is raining
es schneit | it is snowing
die Sonne scheint | the sun is shining
es sehr kalt ist | it is very cold
es schon dunkel ist | it is already dark
der Wind weht | the wind is blowing
die Musik spielt | the music is playing
niemand zuhört | nobody is listening
das Licht ausgeht | the light is going out
der Regen aufhört | the rain is stopping
"""

# Plural words: German | English. Those in -e take -en in the dative; an adjective after them has strong endings.
QUANTITIES = """
zwei | two
drei | three
vier | four
fünf | five
sechs | six
einige | some
mehrere | several
viele | many
"""
