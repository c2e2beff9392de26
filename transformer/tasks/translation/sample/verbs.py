"""The verbs, as tables. One verb per line: `particle+infinitive third-person English | objects`.

A plus sign separates a separable particle (auf+heben: hebt ... auf). In English a slash separates a particle that
pronouns precede (pick/up: picks it up) and an underscore joins what stays together (look_at). `=` before the English
marks a verb without a progressive form, `!` before the objects' tags one whose object is singular. Prepositional
verbs give the preposition and its case first. For movements, two more columns give the prepositions of the goal and
the tags of the nouns it is drawn from.
"""

PEOPLE_ALONE = """
schlafen schläft sleep
lachen lacht laugh
tanzen tanzt dance
singen singt sing
warten wartet wait
arbeiten arbeitet work
lächeln lächelt smile
weinen weint cry
spielen spielt play
pfeifen pfeift whistle
trainieren trainiert train
joggen joggt jog
zeichnen zeichnet draw
zu+schauen schaut watch
zu+hören hört listen
auf+stehen steht get_up
auf+wachen wacht wake_up
ein+schlafen schläft fall_asleep
fern+sehen sieht watch_television
telefonieren telefoniert talk_on_the_phone
frühstücken frühstückt have_breakfast
ein+kaufen kauft shop
"""

ANIMAL_ALONE = """
schlafen schläft sleep
spielen spielt play
warten wartet wait
zu+schauen schaut watch
auf+wachen wacht wake_up
ein+schlafen schläft fall_asleep
"""

POSTURES = """
sitzen sitzt sit
stehen steht stand
liegen liegt lie
"""

PEOPLE_MOVING = """
gehen geht walk | | in auf an vor | place coast
laufen läuft run | | in auf an hinter | place coast
rennen rennt race | | in auf an hinter | place coast
springen springt jump | | in | water boat bed
springen springt jump | | auf | climbable seat cart
klettern klettert climb | | auf | climbable cart
schleichen schleicht sneak | | in hinter | place room
marschieren marschiert march | | auf in an | outside coast
"""

ANIMAL_MOVING = """
laufen läuft run | | in auf an hinter | outside coast
rennen rennt race | | in auf hinter | outside
springen springt jump | | in auf | water seat bed climbable
schleichen schleicht sneak | | in hinter unter | room building plant furniture
"""

PEOPLE_ACTING = """
tragen trägt wear | ! clothing
tragen trägt carry | container furniture instrument
lesen liest read | ! reading
vor+lesen liest read/out | ! reading
schreiben schreibt write | ! paper
falten faltet fold | paper cloth
spielen spielt play | ! instrument
essen isst eat | food meal
auf+essen isst eat/up | food
trinken trinkt drink | drink
kochen kocht cook | cooked
backen backt bake | baked
probieren probiert taste | meal drink dish baked
schälen schält peel | fruit vegetable
schneiden schneidet cut | fruit vegetable baked
pflücken pflückt pick | fruit flowers
kaufen kauft buy | food clothing furniture instrument drink flowers thing printed
verkaufen verkauft sell | food clothing furniture instrument flowers thing
halten hält hold | thing toy natural flowers candle
heben hebt lift | container furniture natural
auf+heben hebt pick/up | toy natural thing paper
weg+werfen wirft throw/away | paper bulb thing natural
waschen wäscht wash | clothing vehicle fruit
putzen putzt clean | opening vehicle instrument
reparieren repariert repair | fixable vehicle seat instrument
aus+wechseln wechselt replace | bulb fixable
bauen baut build | buildable furniture boat
streichen streicht paint | surface furniture opening
zeichnen zeichnet draw | animal building plant people
fotografieren fotografiert photograph | animal building people flowers outside vehicle
beobachten beobachtet watch | animal people
suchen sucht look_for | animal thing toy clothing people
finden findet =find | thing toy natural clothing
sehen sieht =see | animal people vehicle building
an+sehen sieht look_at | animal people vehicle building reading
besuchen besucht visit | relative sight
besichtigen besichtigt tour | sight
streicheln streichelt pet | animal
füttern füttert feed | animal
reiten reitet ride | ! mount
umarmen umarmt hug | people relative
begrüßen begrüßt greet | people relative
an+rufen ruft call | people relative
ab+holen holt pick/up | people relative
ein+laden lädt invite | people relative
fahren fährt drive | ! car
fahren fährt ride | ! bike
ab+stellen stellt park | ! car bike
ziehen zieht pull | cart container toy
schieben schiebt push | cart bike furniture
an+ziehen zieht put/on | ! body
aus+ziehen zieht take/off | ! body
auf+setzen setzt put/on | ! hat
ab+nehmen nimmt take/off | ! hat
auf+hängen hängt hang/up | clothing thing
auf+machen macht open | opening lid
zu+machen macht close | opening lid
ein+packen packt pack/up | clothing toy printed
aus+packen packt unpack | luggage toy
mit+nehmen nimmt take/along | thing toy animal clothing
um+werfen wirft knock/over | container furniture
auf+pumpen pumpt pump/up | inflatable
auf+blasen bläst blow/up | balloon
an+zünden zündet light | candle
aus+blasen bläst blow/out | candle
ab+schneiden schneidet cut/off | stalk
auf+räumen räumt tidy/up | room
sammeln sammelt collect | natural printed
pflanzen pflanzt plant | plant vegetable
gießen gießt water | plant
"""

ANIMAL_ACTING = """
fressen frisst eat | fruit vegetable baked
jagen jagt chase | animal toy
fangen fängt catch | prey toy
verfolgen verfolgt follow | animal vehicle people
beobachten beobachtet watch | animal people
tragen trägt carry | ! natural hat
an+sehen sieht look_at | animal people
um+werfen wirft knock/over | container furniture
auf+fressen frisst eat/up | fruit vegetable
"""

PEOPLE_HELPING = """
helfen hilft help | people relative
zu+hören hört listen_to | people relative
zu+sehen sieht watch | people relative animal
winken winkt wave_to | people relative
folgen folgt follow | people animal vehicle
danken dankt thank | people relative
nach+laufen läuft run_after | people animal vehicle
"""

PEOPLE_PREPOSITIONAL = """
auf acc warten wartet wait_for | people relative car rail
über acc lachen lacht laugh_at | people animal relative
mit dat spielen spielt play_with | toy animal
mit dat sprechen spricht talk_to | people relative
mit dat tanzen tanzt dance_with | people relative
von dat träumen träumt dream_of | animal vehicle coast relative
auf acc zeigen zeigt point_at | animal building vehicle thing people
an acc denken denkt think_of | people relative coast
um acc herum+laufen läuft run_around | plant building vehicle
"""

PEOPLE_GIVING = """
geben gibt give | food toy thing printed flowers
zeigen zeigt show | toy reading animal
schenken schenkt give | flowers clothing instrument printed
bringen bringt bring | food drink container reading
verkaufen verkauft sell | instrument clothing vehicle
"""

PEOPLE_PLACING = """
werfen wirft throw | toy natural | in auf | outside
legen legt put | toy printed clothing paper | auf unter | furniture cloth
stellen stellt put | container | auf neben vor | top seat plant building
tragen trägt carry | container instrument | in auf | place
schieben schiebt push | cart bike | in auf hinter | place
ziehen zieht pull | cart luggage | in auf | place
"""

PERCEIVING = """
sehen sieht =see
hören hört =hear
bemerken bemerkt =notice
hoffen hofft =hope
glauben glaubt =believe
sagen sagt =say
wissen weiß =know
"""

# German singular and plural, English singular and plural.
MODALS = """
will | wollen | wants to | want to
kann | können | can | can
muss | müssen | has to | have to
darf | dürfen | is allowed to | are allowed to
soll | sollen | is supposed to | are supposed to
"""
