"""The nouns, as tables. One noun per line: `German gender plural English [English plural] | tags | prepositions`.

Gender is m, f or n; a star marks the weak masculines (der Junge, den Jungen). The plural "-" marks a mass noun.
Tags say which adjectives and verbs a noun goes with. Prepositions are those that make it a place; `auf=at/to` gives
English prepositions (place/direction) that differ from the usual ones. The same German word may be on several
lines (Bank: bench, bank); its prepositions and tags are then chosen so that the context decides.
"""

PEOPLE = """
Mann m Männer man men | people basic adult
Frau f Frauen woman women | people basic adult
Junge m* Jungen boy | people basic
Mädchen n Mädchen girl | people basic she
Kind n Kinder child children | people basic unnamed
Lehrer m Lehrer teacher | people adult
Lehrerin f Lehrerinnen teacher | people adult
Arzt m Ärzte doctor | people adult
Ärztin f Ärztinnen doctor | people adult
Koch m Köche cook | people adult
Köchin f Köchinnen cook | people adult
Student m* Studenten student | people adult
Studentin f Studentinnen student | people adult
Bauer m* Bauern farmer | people adult
Bäuerin f Bäuerinnen farmer | people adult
Nachbar m* Nachbarn neighbor | people adult
Nachbarin f Nachbarinnen neighbor | people adult
Polizist m* Polizisten policeman policemen | people adult
Polizistin f Polizistinnen policewoman policewomen | people adult
Musiker m Musiker musician | people adult
Musikerin f Musikerinnen musician | people adult
Künstler m Künstler artist | people adult
Künstlerin f Künstlerinnen artist | people adult
Kellner m Kellner waiter | people adult
Kellnerin f Kellnerinnen waitress | people adult
Sänger m Sänger singer | people adult
Sängerin f Sängerinnen singer | people adult
Tänzer m Tänzer dancer | people adult
Tänzerin f Tänzerinnen dancer | people adult
Gärtner m Gärtner gardener | people adult
Gärtnerin f Gärtnerinnen gardener | people adult
Fotograf m* Fotografen photographer | people adult
Fotografin f Fotografinnen photographer | people adult
Tourist m* Touristen tourist | people adult
Touristin f Touristinnen tourist | people adult
Radfahrer m Radfahrer cyclist | people adult
Clown m Clowns clown | people adult
Leiter m Leiter manager | people adult
"""

RELATIVES = """
Bruder m Brüder brother | relative
Schwester f Schwestern sister | relative
Vater m Väter father | relative
Mutter f Mütter mother | relative
Freund m Freunde friend | relative
Freundin f Freundinnen friend | relative
Großvater m Großväter grandfather | relative
Großmutter f Großmütter grandmother | relative
Onkel m Onkel uncle | relative
Tante f Tanten aunt | relative
Kollege m* Kollegen colleague | relative
Kollegin f Kolleginnen colleague | relative
"""

ANIMALS = """
Hund m Hunde dog | animal pet
Katze f Katzen cat | animal pet
Pferd n Pferde horse | animal mount
Esel m Esel donkey | animal mount
Vogel m Vögel bird | animal prey
Kuh f Kühe cow | animal
Schaf n Schafe sheep sheep | animal
Ziege f Ziegen goat | animal
Affe m* Affen monkey | animal
Löwe m* Löwen lion | animal
Elefant m* Elefanten elephant | animal
Bär m* Bären bear | animal
Ente f Enten duck | animal prey
Kaninchen n Kaninchen rabbit | animal prey pet
Schlange f Schlangen snake | animal
Hahn m Hähne rooster | animal
Huhn n Hühner chicken | animal prey
Strauß m Strauße ostrich | animal
Igel m Igel hedgehog | animal prey
Maus f Mäuse mouse mice | animal prey
Fuchs m Füchse fox | animal
Schwan m Schwäne swan | animal
Welpe m* Welpen puppy | animal pet
Kätzchen n Kätzchen kitten | animal pet
"""

CLOTHES = """
Hut m Hüte hat | clothing hat
Mütze f Mützen cap | clothing hat
Helm m Helme helmet | clothing hat
Jacke f Jacken jacket | clothing body
Mantel m Mäntel coat | clothing body
Hemd n Hemden shirt | clothing body
Kleid n Kleider dress | clothing body
Rock m Röcke skirt | clothing body
Schal m Schals scarf scarves | clothing
Pullover m Pullover sweater | clothing body
Schürze f Schürzen apron | clothing
Anzug m Anzüge suit | clothing body
Bluse f Blusen blouse | clothing body
Weste f Westen vest | clothing body
Krawatte f Krawatten tie | clothing
"""

THINGS = """
Korb m Körbe basket | thing container luggage
Tasche f Taschen bag | thing container luggage lid
Kiste f Kisten box | thing container luggage lid
Eimer m Eimer bucket | thing container
Koffer m Koffer suitcase | thing container luggage lid
Rucksack m Rucksäcke backpack | thing container luggage lid
Flasche f Flaschen bottle | thing container lid
Krug m Krüge jug | thing container
Schüssel f Schüsseln bowl | thing container
Vase f Vasen vase | thing container
Tasse f Tassen cup | thing container
Teller m Teller plate | thing
Regenschirm m Regenschirme umbrella | thing | unter
Lampe f Lampen lamp | thing fixable
Kamera f Kameras camera | thing fixable
Radio n Radios radio | thing fixable
Uhr f Uhren clock | thing fixable
Maschine f Maschinen machine | fixable
Schloss n Schlösser lock | fixable
Hahn m Hähne tap | fixable
Zaun m Zäune fence | fixable wood | hinter neben vor
Tür f Türen door | opening wood | vor hinter neben
Fenster n Fenster window | opening | an vor
Tor n Tore gate | opening wood | vor hinter neben
Wand f Wände wall | surface | an
Decke f Decken blanket | cloth | auf unter
Decke f Decken ceiling | surface
Teppich m Teppiche carpet | cloth | auf
Kissen n Kissen cushion | cloth | auf
Leiter f Leitern ladder | thing wood climbable | auf neben
Besen m Besen broom | thing
Schaufel f Schaufeln shovel | thing
Hammer m Hämmer hammer | thing
Pinsel m Pinsel brush | thing
Löffel m Löffel spoon | thing
Messer n Messer knife knives | thing
Spiegel m Spiegel mirror | thing | vor
Fahne f Fahnen flag | thing
Schild n Schilder sign | thing
Schild m Schilde shield | thing
Kerze f Kerzen candle | candle
Ball m Bälle ball | toy inflatable
Puppe f Puppen doll | toy
Drachen m Drachen kite | toy
Luftballon m Luftballons balloon | toy balloon inflatable
Reifen m Reifen tire | toy inflatable
Seil n Seile rope | toy
Würfel m Würfel cube | toy
Stein m Steine stone | natural
Stock m Stöcke stick | natural
Ast m Äste branch | natural stalk
Blatt n Blätter leaf leaves | natural
Blatt n Blätter sheet | paper
Buch n Bücher book | reading printed
Zeitung f Zeitungen newspaper | reading printed
Zeitschrift f Zeitschriften magazine | reading printed
Brief m Briefe letter | reading paper
Karte f Karten map | reading printed
Speisekarte f Speisekarten menu | reading
Gedicht n Gedichte poem | reading
Gitarre f Gitarren guitar | instrument
Geige f Geigen violin | instrument
Trompete f Trompeten trumpet | instrument
Flöte f Flöten flute | instrument
Trommel f Trommeln drum | instrument
Harfe f Harfen harp | instrument
Akkordeon n Akkordeons accordion | instrument
Strauß m Sträuße bouquet | flowers
Blume f Blumen flower | flowers plant stalk
Rose f Rosen rose | flowers plant stalk
Busch m Büsche bush | plant | hinter neben
Baum m Bäume tree | plant | unter hinter neben
"""

FOOD = """
Apfel m Äpfel apple | food fruit
Birne f Birnen pear | food fruit
Birne f Birnen bulb | bulb
Banane f Bananen banana | food fruit
Orange f Orangen orange | food fruit
Kirsche f Kirschen cherry | food fruit
Melone f Melonen melon | food fruit
Tomate f Tomaten tomato tomatoes | food fruit
Kartoffel f Kartoffeln potato potatoes | food vegetable cooked
Karotte f Karotten carrot | food vegetable cooked
Zwiebel f Zwiebeln onion | food vegetable
Kuchen m Kuchen cake | food baked
Brötchen n Brötchen roll | food baked
Brezel f Brezeln pretzel | food baked
Keks m Kekse cookie | food baked
Ei n Eier egg | food cooked
Wurst f Würste sausage | food
Gericht n Gerichte dish | dish cooked
Suppe f - soup | meal cooked
Salat m - salad | meal
Brot n - bread | meal baked
Käse m - cheese | meal
Reis m - rice | meal cooked
Fleisch n - meat | meal cooked
Wasser n - water | drink
Milch f - milk | drink
Tee m - tea | drink
Kaffee m - coffee | drink
Saft m - juice | drink
Limonade f - lemonade | drink
"""
