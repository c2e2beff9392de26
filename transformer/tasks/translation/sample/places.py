"""Vehicles, furniture and places, and the parts of compounds.

The columns of the nouns are those of `nouns`; those of the compounds: `German English | heads | tags that replace the
head's`.
"""

VEHICLES = """
Auto n Autos car | vehicle car | in vor hinter neben
Lastwagen m Lastwagen truck | vehicle car | auf hinter neben
Bus m Busse bus | vehicle car | in vor hinter
Traktor m Traktoren tractor | vehicle car | auf hinter neben
Taxi n Taxis taxi | vehicle car | in neben
Zug m Züge train | vehicle rail | in
Boot n Boote boat | vehicle boat | in
Fahrrad n Fahrräder bicycle | vehicle bike | neben
Motorrad n Motorräder motorcycle | vehicle bike | neben auf
Roller m Roller scooter | vehicle bike | neben
Schlitten m Schlitten sled | vehicle cart | auf
Wagen m Wagen cart | vehicle cart | auf hinter neben
"""

FURNITURE = """
Bank f Bänke bench | furniture seat wood | auf
Stuhl m Stühle chair | furniture seat wood | auf
Hocker m Hocker stool | furniture seat wood | auf
Sessel m Sessel armchair | furniture seat | in
Sofa n Sofas sofa | furniture seat | auf hinter
Tisch m Tische table | furniture wood top | an auf unter
Regal n Regale shelf shelves | furniture wood top | auf
Schrank m Schränke cupboard | furniture wood lid | in vor
Bett n Betten bed | furniture wood bed | in neben unter
"""

PLACES = """
Park m Parks park | place outside | in
Garten m Gärten garden | place outside | in
Wald m Wälder forest | place outside | in
Hof m Höfe yard | place outside | in
Zoo m Zoos zoo | place outside | in
Fluss m Flüsse river | water outside | in an
See m Seen lake | water outside | in an
See f Seen sea | coast unique | an
Strand m Strände beach beaches | place coast outside | an
Brunnen m Brunnen fountain | water outside | an neben vor
Straße f Straßen street | place outside | auf
Wiese f Wiesen meadow | place outside | auf
Brücke f Brücken bridge | place outside buildable | auf unter
Platz m Plätze square | place outside | auf
Spielplatz m Spielplätze playground | place outside | auf
Markt m Märkte market | place outside | auf=at/to
Feld n Felder field | place outside | auf=in/into
Hügel m Hügel hill | place outside climbable | auf hinter
Bahnsteig m Bahnsteige platform | place | auf
Haltestelle f Haltestellen stop | place | an
Bühne f Bühnen stage | place | auf vor
Mauer f Mauern wall | place outside climbable buildable | auf hinter vor
Bahnhof m Bahnhöfe station | place building | in an vor
Küche f Küchen kitchen | place room | in
Zimmer n Zimmer room | place room | in
Keller m Keller cellar | place room | in
Wohnung f Wohnungen apartment | place room | in
Büro n Büros office | place room | in
Werkstatt f Werkstätten workshop | place room | in
Bäckerei f Bäckereien bakery | place building | in vor
Museum n Museen museum | place building sight | in vor
Schule f Schulen school | place building | in vor hinter
Supermarkt m Supermärkte supermarket | place building | in vor
Kirche f Kirchen church | place building sight | in vor hinter
Bibliothek f Bibliotheken library | place building | in vor
Restaurant n Restaurants restaurant | place building | in vor
Bank f Banken bank | place building | in
Schloss n Schlösser castle | place building sight | in vor hinter
Gericht n Gerichte court | building | vor
Haus n Häuser house | place building buildable | in vor hinter neben
Zelt n Zelte tent | place building | in vor neben
Scheune f Scheunen barn | place building buildable | in hinter
Turm m Türme tower | building sight climbable buildable | auf vor
Dach n Dächer roof | fixable climbable | auf
Schlange f Schlangen queue | waiting | in
"""

COMPOUNDS = """
Holz wooden | Bank Tisch Stuhl Brücke Zaun Kiste Boot Löffel Leiter Regal Haus Tür Schüssel Hocker Turm Puppe
Metall metal | Kiste Tisch Stuhl Zaun Tür Eimer Tor Leiter Regal
Stein stone | Brücke Mauer Haus Bank Turm Krug
Leder leather | Jacke Tasche Koffer Hut Weste Mantel Sessel Sofa Ball
Stroh straw | Hut Korb Dach Puppe
Glas glass | Tisch Tür Schüssel Vase Krug Flasche
Plastik plastic | Tasche Eimer Stuhl Flasche Schüssel Kiste Tisch Teller
Woll woolen | Mütze Pullover Schal Decke Mantel Rock
Garten garden | Stuhl Tisch Zaun Tor Haus
Küchen kitchen | Tisch Stuhl Regal Messer Lampe Fenster Uhr
Schul school | Bus Tasche Hof Garten
Winter winter | Jacke Mantel Mütze
Sommer summer | Kleid Hut Jacke Rock
Spielzeug toy | Auto Zug Boot Traktor | toy
Wasser water | Flasche Krug
Blumen flower | Wiese Vase Korb
Kartoffel potato | Suppe Salat Feld
Tomaten tomato | Suppe Salat
Apfel apple | Kuchen Saft Baum
Kirsch cherry | Kuchen Saft Baum
Bus bus | Haltestelle
Dorf village | Straße Platz Schule Kirche Brunnen
Stadt city | Park Bibliothek Bahnhof Museum Mauer Tor
"""
